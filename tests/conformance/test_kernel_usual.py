"""The usual launch of a kernel, which is made in C, does what the general one does, and every other launch is that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core._work import Work
from halstream._kernel import _launch
from test_kernel_packing import FILL

LIMIT = 10.0

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("kernels")]


@pytest.fixture
def fill() -> hs.Kernel:
    kernel = hs.Kernel(FILL, name="fill_u32", signature="out uint32 *x, uint32 v, uint32 n")
    kernel.load(0)
    return kernel


@pytest.fixture
def general_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that gets the arguments of each launch which Python's code makes."""
    calls: list[Any] = []
    original = Work._launch

    def _launch(self: Any, *args: Any, **keywords: Any) -> None:
        calls.append(args)
        original(self, *args, **keywords)

    monkeypatch.setattr(Work, "_launch", _launch)
    return calls


def outcome(call: Callable[..., None], x: hs.Array, s: hs.Stream, *args: Any, **options: Any) -> Any:
    """Return what a launch does to an array, or how it fails."""
    x.fill(0, s)
    try:
        call(*args, **options)
    except Exception as exc:
        return type(exc), str(exc)
    return x.numpy(s).tolist()


@pytest.mark.parametrize(
    ("usual", "grid", "block", "values", "options"),
    [
        (True, 1, 8, (7, 8), {}),
        (True, (2, 1), (4, 1, 1), (np.uint32(7), np.uint32(5)), {}),
        (True, 1, 8, (2**32 - 1, 3), {}),
        (False, 1, 8, (7, 8), {"shared": 16}),
        (False, 1, 8, (7, 8), {"shared": -1}),
        (False, 1, 8, (7, 8), {"cooperative": 2}),
        (False, 1, 8, (7, 8), {"cluster": 0}),
        (False, 1, 8, (7, 8), {"other": 0}),
        (False, 1, 8, (7,), {}),
        (False, 1, 8, (7, 8, 9), {}),
        (False, 1, 8, (-1, 8), {}),
        (False, 1, 8, (2**32, 8), {}),
        (False, 1, 8, (7.0, 8), {}),
        (False, 1, 8, (True, 8), {}),
        (False, 1, 8, (np.int64(7), 8), {}),
        (False, np.int64(1), [8], (7, 8), {}),
        (False, 0, 8, (7, 8), {}),
        (False, (1, 65536), 8, (7, 8), {}),
        (False, 1, (32, 33), (7, 8), {}),
        (False, 1, (1, 1, 65), (7, 8), {}),
        (False, 1, (), (7, 8), {}),
        (False, 1.0, 8, (7, 8), {}),
    ],
)
def test_K1_a_launch_does_what_the_general_one_does(
    fill: hs.Kernel, general_calls: list[Any], usual: bool, grid: Any, block: Any, values: Any, options: Any
) -> None:
    s, x = hs.Stream(), hs.empty(8, np.uint32)
    found = outcome(s.launch, x, s, fill, grid, block, x, *values, **options)
    assert len(general_calls) == (not usual)
    assert found == outcome(s._launch, x, s, fill, grid, block, x, *values, **options)
    assert (type(found) is list and sum(found) > 0) or found[0] in (hs.KernelArgumentError, TypeError), found


@pytest.mark.parametrize(
    "array", ["freed", "of another device", "pageable", "too long", "of another dtype", "no array"]
)
def test_D4_memory_that_the_stream_cannot_use_fails_as_in_the_general_launch(fill: hs.Kernel, array: str) -> None:
    s, x = hs.Stream(0), hs.empty(8, np.uint32, device=0)
    gone = hs.empty(8, np.uint32, device=0)
    gone.free()
    others = [hs.empty(8, np.uint32, device=0) for _ in range(4)]  # one may have the address of what was freed
    wrong: Any = {
        "freed": gone,
        "of another device": hs.empty(8, np.uint32, device=1) if array == "of another device" else None,
        "pageable": np.zeros(8, np.uint32),
        "too long": hs.Array(x._memory, x.ptr, (2**20,), x.dtype),
        "of another dtype": hs.empty(8, np.int32, device=0),
        "no array": 5,
    }[array]
    found = outcome(s.launch, x, s, fill, 1, 8, wrong, 1, 8)
    assert issubclass(found[0], hs.HalError), found
    assert found == outcome(s._launch, x, s, fill, 1, 8, wrong, 1, 8)
    del others


def test_K1_a_closed_stream_and_one_of_a_dialect_fail_as_in_the_general_launch(fill: hs.Kernel) -> None:
    from halstream.cupy import cuda as cupy

    x = hs.empty(8, np.uint32)
    for cls in (hs.Stream, cupy.Stream):
        s, other = cls(), hs.Stream()
        s.launch(fill, 1, 8, x, 1, 8)
        s.synchronize()
        hs._native.close(s._id)
        found = outcome(s.launch, x, other, fill, 1, 8, x, 1, 8)
        assert "closed" in found[1]
        assert found == outcome(s._launch, x, other, fill, 1, 8, x, 1, 8)


def test_K2_a_kernel_is_loaded_on_each_device_and_again_after_its_programs_were_unloaded(
    fill: hs.Kernel, general_calls: list[Any]
) -> None:
    for device in (0, 1):
        s, x = hs.Stream(device), hs.empty(8, np.uint32, device=device)
        s.launch(fill, 1, 8, x, 3 + device, 8)
        assert x.numpy(s).tolist() == [3 + device] * 8
    assert len(general_calls) == 1, "device 1 did not have it"
    _launch.forget()
    for device in (0, 1):
        s, x = hs.Stream(device), hs.empty(8, np.uint32, device=device)
        s.launch(fill, 1, 8, x, 5, 8)
        s.launch(fill, 1, 8, x, 6, 4)
        assert x.numpy(s).tolist() == [6] * 4 + [5] * 4
    assert len(general_calls) == 3


def test_K1_what_is_no_kernel_is_refused_by_name() -> None:
    s = hs.Stream()
    for call in (s.launch, s._launch):
        with pytest.raises(TypeError, match=r"launch\(\) takes a Kernel, not int"):
            call(5, 1, 8)
        with pytest.raises(TypeError, match="missing"):
            call()


@pytest.mark.needs("graphs")
def test_G5_usual_launches_become_nodes_that_keep_their_arguments(fill: hs.Kernel, general_calls: list[Any]) -> None:
    s, arrays = hs.Stream(), [hs.zeros(4, np.uint32) for _ in range(12)]
    with hs.capture(s) as graph:
        for i, x in enumerate(arrays):
            s.launch(fill, 1, 4, x, i + 1, 4)
    assert not general_calls
    assert [node.kind for node in graph.nodes] == ["kernel"] * 12
    assert arrays[3].numpy(s).tolist() == [0] * 4
    graph.instantiate().launch(s)
    assert [x.numpy(s).tolist() for x in arrays] == [[i + 1] * 4 for i in range(12)]
