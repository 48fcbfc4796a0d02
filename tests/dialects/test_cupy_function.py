"""cupy's Function, Module and RawModule with a program in PTX, which the look-alike of the driver launches as well."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory, cupy
from halstream.cupy import RawModule, cuda
from halstream.cupy.cuda.driver import CUDADriverError

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("kernels")]

# n numbers at x become v; a variable of four numbers.
FILL = """.version 6.0
.target sm_50
.address_size 64

.visible .global .align 4 .b8 numbers[16];

.visible .entry fill_u32(
	.param .u64 fill_x,
	.param .u32 fill_v,
	.param .u32 fill_n
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<7>;
	.reg .b64 %d<5>;

	ld.param.u64 %d1, [fill_x];
	ld.param.u32 %r1, [fill_v];
	ld.param.u32 %r2, [fill_n];
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.u32 %r6, %r3, %r4, %r5;
	setp.ge.u32 %p1, %r6, %r2;
	@%p1 bra FILL_END;
	cvta.to.global.u64 %d2, %d1;
	mul.wide.u32 %d3, %r6, 4;
	add.u64 %d4, %d2, %d3;
	st.global.u32 [%d4], %r1;
FILL_END:
	ret;
}
"""
# out[i] = a[i] + b[i], n numbers each.
ADD = """.version 6.0
.target sm_50
.address_size 64

.visible .entry add_f32(
	.param .u64 add_out,
	.param .u64 add_a,
	.param .u64 add_b,
	.param .u32 add_n
)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	.reg .f32 %f<4>;
	.reg .b64 %d<11>;

	ld.param.u64 %d1, [add_out];
	ld.param.u64 %d2, [add_a];
	ld.param.u64 %d3, [add_b];
	ld.param.u32 %r1, [add_n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r5, %r2, %r3, %r4;
	setp.ge.u32 %p1, %r5, %r1;
	@%p1 bra ADD_END;
	cvta.to.global.u64 %d4, %d1;
	cvta.to.global.u64 %d5, %d2;
	cvta.to.global.u64 %d6, %d3;
	mul.wide.u32 %d7, %r5, 4;
	add.u64 %d8, %d5, %d7;
	add.u64 %d9, %d6, %d7;
	add.u64 %d10, %d4, %d7;
	ld.global.f32 %f1, [%d8];
	ld.global.f32 %f2, [%d9];
	add.f32 %f3, %f1, %f2;
	st.global.f32 [%d10], %f3;
ADD_END:
	ret;
}
"""


@pytest.fixture
def module() -> cuda.Module:
    made = cuda.Module()
    made.load(FILL.encode())
    return made


def test_a_function_is_launched_in_stream_order(module: cuda.Module, hold: Callable[[Any], Any]) -> None:
    fill = module.get_function("fill_u32")
    x = cupy.zeros(100, "I")
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    held = hold(s)
    fill((4,), (32,), (x, 7, 100), stream=s)
    with s:
        fill.linear_launch(50, (x.data, np.uint32(8), np.int32(50)))
        fill((1,), (32,), (x.data.ptr + 4, 9, 1))
    assert not s.done
    held.open()
    assert x.get(s).tolist() == [8, 9, *[8] * 48, *[7] * 50]


def test_K4_a_module_from_a_file_has_variables_of_its_own(tmp_path: Path, module: cuda.Module) -> None:
    path = tmp_path / "fill.ptx"
    path.write_text(FILL)
    modules = [RawModule(path=str(path)) for _ in range(2)]
    numbers = [cupy.ndarray((4,), "I", m.get_global("numbers")) for m in modules]
    fill = modules[0].get_function("fill_u32")
    for value, x in enumerate(numbers):
        fill((1,), (4,), (x, 5 + value, 4))
    assert [x.tolist() for x in numbers] == [[5] * 4, [6] * 4]
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        modules[0].get_global("none")
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        modules[0].get_function("none")
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        module.get_global_var("none")


def test_K2_wrong_launches_are_refused_and_the_stream_goes_on(module: cuda.Module) -> None:
    fill, x = module.get_function("fill_u32"), cupy.zeros(4, "I")
    for grid, block, args in (
        ((1,), (2000,), (x, 1, 4)),
        ((1, 70000), (1,), (x, 1, 4)),
        ((1,), (4,), (x, 1)),
        ((1,), (4,), (x, 1, 4, 4)),
    ):
        with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE"):
            fill(grid, block, args)
    with pytest.raises(TypeError, match="argument 2: the parameter has 4 bytes, and a floating-point number of 8"):
        fill((1,), (4,), (x, 1.5, 4))
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_PTX"):
        cuda.Module().load(FILL.replace("ret;", "syntax_error_here").encode())
    fill((1,), (4,), (x, 3, 4))
    assert x.tolist() == [3] * 4


@pytest.mark.needs("graphs")
def test_a_captured_launch_keeps_its_program_and_its_memory(module: cuda.Module) -> None:
    fill, x = module.get_function("fill_u32"), cupy.zeros(4, "I")
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    with s:
        s.begin_capture()
        fill((1,), (4,), (x, 3, 4))
        graph = s.end_capture()
        data, nbytes = x.data, x.nbytes
        del fill, module, x
        graph.launch()
        again = cupy.ndarray((nbytes // 4,), "I", data)
        assert again.get(s).tolist() == [3] * 4


def test_K4_a_program_is_kept_as_long_as_a_pointer_to_its_variable(tmp_path: Path) -> None:
    path = tmp_path / "fill.ptx"
    path.write_text(FILL)
    x = cupy.ndarray((4,), "I", RawModule(path=str(path)).get_global("numbers"))
    gc.collect()
    cuda.Stream.null.synchronize()
    x.fill(4)
    assert x.tolist() == [4] * 4
    address = x.data.ptr
    assert _memory.kind_of(address) == _memory.DEVICE
    del x
    gc.collect()
    cupy.zeros(1)  # closes what was collected
    assert _memory.kind_of(address) == _memory.PAGEABLE


@pytest.mark.needs("graphs")
@pytest.mark.row(61)
def test_the_drawing_of_a_graph_has_the_names_of_kernels(module: cuda.Module) -> None:
    fill, x = module.get_function("fill_u32"), cupy.zeros(4, "I")
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    with s:
        s.begin_capture()
        fill((1,), (4,), (x, 3, 4))
        graph = s.end_capture()
    text, verbose = graph.debug_dot_str(), graph.debug_dot_str(cuda.runtime.cudaGraphDebugDotFlagsVerbose)
    assert "fill_u32" in text and "fill_u32" in verbose and text != verbose


@pytest.mark.parametrize("written", [False, True], ids=["read", "written"])
def test_V1_two_kernels_may_read_one_array_and_not_write_it(written: bool) -> None:
    module = cuda.Module()
    module.load(ADD.encode())
    add = module.get_function("add_f32")
    with hs.sanitize(on="collect") as report:
        a, b, c, d = (cupy.ones(8, "f") for _ in range(4))
        cuda.Device().synchronize()
        streams = [cuda.Stream(non_blocking=True) for _ in range(2)]
        add((1,), (8,), (c, a, b, 8), stream=streams[0])
        add((1,), (8,), (a if written else d, a, b, 8), stream=streams[1])
        cuda.Device().synchronize()
    texts = [finding.text for finding in report]
    assert len(texts) == written, texts
    assert all("32 bytes" in text for text in texts), texts
