"""Launches of kernels: where their programs are loaded, what is no kernel, and launches in captures."""

from __future__ import annotations

import halstream as hs
import numpy as np
import pytest
from halstream._kernel import _launch
from test_kernel_packing import FILL

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("kernels")]


@pytest.fixture
def fill() -> hs.Kernel:
    kernel = hs.Kernel(FILL, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    kernel.load(0)
    return kernel


def test_K2_a_kernel_is_loaded_on_each_device_and_again_after_its_programs_were_unloaded(fill: hs.Kernel) -> None:
    for device in (0, 1):
        s, x = hs.Stream(device), hs.empty(8, np.uint32, device=device)
        s.launch(fill, 1, 8, x, 3 + device, 8)
        assert x.numpy(s).tolist() == [3 + device] * 8
    _launch.forget()
    for device in (0, 1):
        s, x = hs.Stream(device), hs.empty(8, np.uint32, device=device)
        s.launch(fill, 1, 8, x, 5, 8)
        s.launch(fill, 1, 8, x, 6, 4)
        assert x.numpy(s).tolist() == [6] * 4 + [5] * 4


def test_K1_what_is_no_kernel_is_refused_by_name() -> None:
    s = hs.Stream()
    with pytest.raises(TypeError, match=r"launch\(\) takes a Kernel, not int"):
        s.launch(5, 1, 8)
    with pytest.raises(TypeError, match="missing"):
        s.launch()  # type: ignore[call-arg]


@pytest.mark.needs("graphs")
def test_G5_launches_become_nodes_that_keep_their_arguments(fill: hs.Kernel) -> None:
    s, arrays = hs.Stream(), [hs.zeros(4, np.uint32) for _ in range(12)]
    with hs.capture(s) as graph:
        for i, x in enumerate(arrays):
            s.launch(fill, 1, 4, x, i + 1, 4)
    assert [node.kind for node in graph.nodes] == ["kernel"] * 12
    assert arrays[3].numpy(s).tolist() == [0] * 4
    graph.instantiate().launch(s)
    assert [x.numpy(s).tolist() for x in arrays] == [[i + 1] * 4 for i in range(12)]
