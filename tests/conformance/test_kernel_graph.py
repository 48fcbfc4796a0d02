"""Kernels as nodes of graphs, where kernels are CUDA programs."""

from __future__ import annotations

import halstream as hs
import pytest

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs", "kernels")]

PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry fill_u32(.param .u64 x, .param .u32 v, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .u32 %r<3>;
    .reg .u64 %d<4>;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [n];
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra done;
    ld.param.u64 %d1, [x];
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    ld.param.u32 %r2, [v];
    st.global.u32 [%d3], %r2;
done:
    ret;
}
"""


def test_K1_a_captured_kernel_runs_at_each_launch_of_its_graph() -> None:
    kernel = hs.Kernel(PTX, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    kernel.load()
    s, x = hs.Stream(), hs.zeros(4, "uint32")
    x.fill(0, s)
    with hs.capture(s) as graph:
        s.launch(kernel, 1, 4, x, 7, 4)
    assert [node.kind for node in graph.nodes] == ["kernel"]
    assert x.numpy(s).tolist() == [0] * 4
    run = graph.instantiate()
    for _ in range(2):
        x.fill(0, s)
        run.launch(s)
        assert x.numpy(s).tolist() == [7] * 4
