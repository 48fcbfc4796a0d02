"""mindspore: memory figures, their table, and several tensors in one block."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.mindspore as ms
import numpy as np
import pytest
from halstream.mindspore import Tensor, hal, ops, runtime
from halstream.mindspore._memory import _table
from halstream.mindspore.hal.contiguous_tensors_handle import (
    ContiguousTensorsHandle,
    combine_tensor_list_contiguous,
)
from mindspore_help import ascend, on_target, reserve_pinned_memory

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

__all__ = ["ascend", "on_target"]

Hold = Callable[[Any], Any]
#: 1 MiB of Float32.
LARGE = (256, 1024)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> None:
    """Drop what earlier tests left in cycles, so that figures change by this test only."""
    gc.collect()
    hal.synchronize()
    hal.empty_cache()


@pytest.mark.row(92)
@pytest.mark.parametrize("module", [hal, runtime])
def test_types_of_the_figures(module: Any) -> None:
    (ops.ones((1, 2)) + 1).asnumpy()
    assert type(module.memory_stats()) is dict
    assert type(module.memory_summary()) is str
    for name in ("memory_reserved", "memory_allocated", "max_memory_reserved", "max_memory_allocated"):
        figure = getattr(module, name)()
        assert type(figure) is int
        assert figure > 0 or name == "memory_allocated"


def test_tensors_count_in_blocks_of_512_bytes(ascend: None) -> None:
    before = hal.memory_allocated()
    a = ops.ones(1)
    assert hal.memory_allocated() - before == 512
    b = ops.ones(129)
    assert hal.memory_allocated() - before == 512 + 1024
    a += 1  # in place: nothing more
    assert hal.memory_allocated() - before == 512 + 1024
    hal.synchronize()
    del a, b
    assert hal.memory_allocated() == before


def test_tensors_of_pending_work_count_until_they_are_dropped(hold: Hold) -> None:
    t = ops.ones(LARGE)
    reserve_pinned_memory(t, 4)
    before = hal.memory_allocated()
    gate = hold(hal.current_stream())
    u = t + t
    v = u * 2
    assert hal.memory_allocated() - before == 2 << 20
    del u, v
    assert hal.memory_allocated() == before
    gate.open()
    hal.synchronize()
    assert hal.memory_allocated() == before


def test_memory_of_a_dropped_tensor_is_not_used_under_work_of_another_stream(hold: Hold) -> None:
    s = hal.Stream()
    a = ops.ones(LARGE)
    reserve_pinned_memory(a, 6)
    before = hal.memory_allocated()
    gate = hold(s)
    with hal.StreamCtx(s):
        result = a + 1
    del a
    assert hal.memory_allocated() == before  # one was dropped, one was made
    others = [ops.zeros(LARGE) for _ in range(4)]
    hal.default_stream().synchronize()
    gate.open()
    s.synchronize()
    assert (result.asnumpy() == 2).all()
    del others


def test_memory_of_a_dropped_tensor_is_used_again_in_the_order_of_its_stream(hold: Hold) -> None:
    t = ops.ones(LARGE)
    reserve_pinned_memory(t, 6)
    gate = hold(hal.current_stream())
    first = t + t
    result = first + 1
    reserved = hal.memory_reserved()
    del first
    second = t * 7
    assert hal.memory_reserved() == reserved
    gate.open()
    assert (result.asnumpy() == 3).all()
    assert (second.asnumpy() == 7).all()


def peaks() -> tuple[int, int]:
    return hal.max_memory_reserved(), hal.max_memory_allocated()


def high_water() -> tuple[int, int]:
    """Make both peaks higher than what is held; return what is held."""
    hal.empty_cache()
    kept = ops.ones(LARGE)
    more = [ops.ones(LARGE) for _ in range(3)]
    hal.synchronize()
    del kept, more
    hal.empty_cache()
    held = hal.memory_reserved(), hal.memory_allocated()
    assert peaks()[0] >= held[0] + (4 << 20)
    assert peaks()[1] >= held[1] + (4 << 20)
    return held


@pytest.mark.row(93)
def test_reset_peak_memory_stats_makes_the_peaks_what_is_held() -> None:
    held = high_water()
    assert hal.reset_peak_memory_stats() is None
    assert peaks() == held


@pytest.mark.row(94)
@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("module", [hal, runtime])
def test_each_single_reset_leaves_the_other_peak(module: Any, blocking: bool) -> None:
    if blocking:
        ms.runtime.launch_blocking()
    held = high_water()
    before = peaks()
    module.reset_max_memory_reserved()
    assert peaks() == (held[0], before[1])
    module.reset_max_memory_allocated()
    assert peaks() == held
    held = high_water()
    before = peaks()
    module.reset_max_memory_allocated()
    assert peaks() == (before[0], held[1])
    a = ops.ones((4 * LARGE[0] + 1, LARGE[1]))
    hal.synchronize()
    assert peaks()[0] >= before[0]
    assert peaks()[1] >= held[1] + a.nbytes


@pytest.mark.row(95)
def test_empty_cache_frees_unused_memory() -> None:
    kept = ops.ones(LARGE)
    held = [ops.ones(LARGE) for _ in range(3)]
    hal.synchronize()
    del held
    assert hal.memory_reserved() >= 4 << 20
    assert hal.empty_cache() is None
    assert hal.memory_reserved() == hal.memory_allocated() >= 1 << 20
    assert kept.asnumpy().all()
    before = hal.memory_reserved()
    del kept
    runtime.empty_cache()
    assert before - hal.memory_reserved() == 1 << 20


@pytest.mark.row(96)
def test_set_memory_limits_what_tensors_take() -> None:
    runtime.set_memory(max_size="0.001GB", increase_size="1GB")
    with pytest.raises(hs.OutOfMemoryError, match="the process allows"):
        ops.ones((1024, 1024))
    with pytest.raises(RuntimeError, match="The 'set_memory' can not be set repeatedly"):
        runtime.set_memory()
    assert ops.ones(4).tolist() == [1, 1, 1, 1]


def test_set_memory_refuses_what_is_no_size() -> None:
    for name in ("init_size", "increase_size", "max_size", "huge_page_reserve_size", "optimize_level"):
        with pytest.raises(TypeError, match=name):
            runtime.set_memory(**{name: 2})
    for name in ("init_size", "increase_size", "max_size"):
        for size in ("2", "2MB", "GB", "-1GB", "0GB", "0.0GB"):
            with pytest.raises(ValueError, match=name):
                runtime.set_memory(**{name: size})
    with pytest.raises(ValueError, match="O2"):
        runtime.set_memory(optimize_level="O2")
    with pytest.raises(hs.NotSupportedError, match="huge"):
        runtime.set_memory(huge_page_reserve_size="1GB")
    runtime.set_memory()


@pytest.mark.row(98)
def test_idle_memory_of_three_deleted_tensors() -> None:
    small = [ops.ones(2) for _ in range(3)]
    hal.synchronize()
    hal.empty_cache()
    before = hal.memory_stats()["total_idle_memory"]
    del small
    assert hal.memory_stats()["total_idle_memory"] - before == 3 * 512


@pytest.mark.row(99)
def test_keys_of_memory_stats() -> None:
    a = ops.ones(2)
    stats = hal.memory_stats()
    assert list(stats) == [
        "total_reserved_memory",
        "total_allocated_memory",
        "total_idle_memory",
        "total_eager_free_memory",
        "max_reserved_memory",
        "max_allocated_memory",
        "commom_mem_pool_stats",
        "persistent_mem_pool_stats",
        "common_mem_pool_stats",
    ]
    assert stats["total_reserved_memory"] == stats["total_allocated_memory"] + stats["total_idle_memory"]
    assert list(stats["commom_mem_pool_stats"]) == ["block_unit_size", "block_counts", "blocks_info"]
    assert list(stats["persistent_mem_pool_stats"]) == ["block_counts", "block_unit_size", "blocks_info"]
    assert stats["common_mem_pool_stats"] is stats["commom_mem_pool_stats"]
    for block in stats["commom_mem_pool_stats"]["blocks_info"].values():
        assert block == {"block_stream_id": 0, "block_memory_size": stats["total_reserved_memory"]}
    del a


@pytest.mark.row(99)
def test_layout_of_memory_summary() -> None:
    ops.ones(2)
    lines = hal.memory_summary().split("\n")
    assert len(lines) == 18
    assert lines[17] == ""
    assert {len(line) for line in lines[:17]} == {47}
    assert lines[:17:2] == ["|" + "=" * 45 + "|"] * 2 + ["|" + "-" * 45 + "|"] * 6 + ["|" + "=" * 45 + "|"]
    assert lines[1] == "|               Memory summary                |"
    names = [line[2:22].rstrip() for line in lines[3:17:2]]
    assert names == [
        "Metric",
        "Reserved memory",
        "Allocated memory",
        "Idle memory",
        "Eager free memory",
        "Max reserved memory",
        "Max allocated memory",
    ]


@pytest.mark.row(99)
@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [
        (0, "     0 B"),
        (786431, "786431 B"),
        (786432, "   768 KB"),
        (1 << 30, "  1024 MB"),
        ((1 << 30) - 1024, "  1023 MB"),
        (3 << 40, "  3072 GB"),
        (1 << 60, "  1024 PB"),
        (1 << 70, "1048576 PB"),
    ],
)
def test_sizes_in_the_table(nbytes: int, shown: str) -> None:
    assert _table((("Reserved memory", nbytes),)).split("\n")[5] == f"| Reserved memory      | {shown:<20} |"


def test_before_the_device_is_used(child: Callable[..., Any]) -> None:
    done = child(
        """
        from halstream.mindspore import hal, runtime

        print(hal.memory_stats(), runtime.memory_stats()["total_reserved_memory"], hal.memory_reserved())
        print(hal.max_memory_allocated(), hal.reset_peak_memory_stats(), hal.empty_cache())
        print(hal.is_initialized("CPU"), hal.memory_summary().count(" 0 B"))
        """
    )
    expected = "{} 0 0\n0 None None\nFalse 6\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


def test_an_unused_device_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from halstream.mindspore.hal import _memory

    monkeypatch.setattr(_memory, "in_use", set())
    with caplog.at_level(logging.WARNING):
        assert hal.memory_stats() == {}
    assert len(caplog.records) == 1


def test_targets_are_checked_in_hal_and_unknown_in_runtime() -> None:
    for name in [n for n in hal.__all__ if "memory" in n]:
        function = getattr(hal, name)
        with pytest.raises(TypeError, match=f"hal.{name}.*device_target"):
            function(1)
        with pytest.raises(ValueError, match=f"hal.{name}.*must be one of"):
            function("cuda")
        function("CPU")
        with pytest.raises(TypeError):
            getattr(runtime, name)("CPU")
    with pytest.raises(hs.NotSupportedError, match="memory_replay"):
        runtime.memory_replay("trace")


def test_tensors_in_one_block(hold: Hold) -> None:
    x, y = Tensor([1, 2, 3], ms.float32), Tensor([[4], [5]], ms.float32)
    gate = hold(hal.default_stream())
    handle = combine_tensor_list_contiguous([x, y])
    assert hal.default_stream().query() is False
    gate.open()
    assert isinstance(handle, ContiguousTensorsHandle)
    assert (handle[0].shape, handle[0].tolist()) == ((1,), [1])
    assert handle[1:3].tolist() == [2, 3]
    assert not handle[3:128].asnumpy().any()
    assert handle[128:130].tolist() == [4, 5]
    assert handle.slice_by_tensor_index(1).tolist() == [4, 5]
    assert handle.slice_by_tensor_index().shape == (130,)
    assert str(handle) == "Handle total size: 1024\nTensor[0]: [1. 2. 3.]\nTensor[1]: [4. 5.]"
    close = ContiguousTensorsHandle((x, y), False)
    assert close[:].tolist() == close.slice_by_tensor_index(0, 2).tolist() == [1, 2, 3, 4, 5]


def test_a_block_of_tensors_refuses_what_is_outside() -> None:
    handle = ContiguousTensorsHandle([Tensor([1.0, 2.0])], False)
    for index in (1.0, "0", slice("a", 2), None):
        with pytest.raises(TypeError):
            handle[index]  # type: ignore[index]
    for index in (-1, 2, slice(0, 3), slice(1, 1), slice(-2, 2)):
        with pytest.raises(ValueError, match="0 to 2"):
            handle[index]
    with pytest.raises(ValueError, match="0 to 1"):
        handle.slice_by_tensor_index(1)
    with pytest.raises(TypeError):
        handle.slice_by_tensor_index("a")
    for wrong in (Tensor([1.0]), [1.0], [np.ones(2)], [], [Tensor([1.0]), Tensor([1])]):
        with pytest.raises(TypeError):
            ContiguousTensorsHandle(wrong)
    with pytest.raises(TypeError, match="enable_mem_align"):
        ContiguousTensorsHandle([Tensor([1.0])], 1)  # type: ignore[arg-type]


def test_contents_for_no_room_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "full", lambda *shape: pytest.fail("made before there was room"))
    with pytest.raises(hs.OutOfMemoryError):
        ops.ones(1 << 40)
