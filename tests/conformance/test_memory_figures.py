"""Figures of memory, running out of it, recorded streams, and what pools hold."""

from __future__ import annotations

import gc
import itertools
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory as memory
from halstream._core import _reap

LIMIT = 10.0
MIB = 1 << 20
Hold = Callable[[Any], Any]
Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Start with nothing that earlier tests left in the pool."""
    gc.collect()
    hs.synchronize()
    memory.empty_cache()
    yield


def figures() -> tuple[int, int, int]:
    stats = memory.memory_stats()
    return stats["allocated"], stats["active"], stats["reserved"]


@pytest.mark.needs("host")
@pytest.mark.parametrize("ordered", [False, True])
def test_M15_an_array_that_a_pending_function_gets_counts_until_it_is_dropped(hold: Hold, ordered: bool) -> None:
    s = hs.Stream()
    before = figures()
    array = hs.empty(MIB, np.uint8, stream=s) if ordered else hs.empty(MIB, np.uint8)
    seen: list[Any] = []
    gate = hold(s)
    s.call(seen.append, array)
    s.call(lambda _: None, array[: MIB // 2], reads=[array])
    assert change(before)[:2] == (MIB, MIB)
    del array
    assert change(before)[:2] == (0, MIB)
    gate.open()
    s.synchronize(timeout=LIMIT)
    # What the function kept of it stays: nothing else gets the memory.
    others = [hs.zeros(MIB, np.uint8, stream=s) for _ in range(4)]
    seen[0][:] = 7
    s.synchronize(timeout=LIMIT)
    assert not any(other.numpy(s).any() for other in others)
    assert change(before)[:2] == (4 * MIB, 5 * MIB)
    del others
    seen.clear()
    assert change(before)[0] == 0
    memory.empty_cache()
    assert change(before) == (0, 0, 0)


@pytest.mark.needs("host")
@pytest.mark.parametrize("ordered", [False, True])
def test_M15_an_array_in_a_cycle_that_a_function_got_is_given_back_once(ordered: bool) -> None:
    s = hs.Stream()
    before = figures()
    for _ in range(3):
        array = hs.empty(MIB, np.uint8, stream=s) if ordered else hs.empty(MIB, np.uint8)
        s.call(lambda _: None, array)
        s.synchronize(timeout=LIMIT)
        cycle: list[Any] = [array]
        cycle.append(cycle)
        del array, cycle
        gc.collect()
        assert change(before)[0] == 0
    memory.empty_cache()
    assert change(before) == (0, 0, 0)


@pytest.mark.needs("host")
def test_M15_explicitly_freed_memory_that_a_function_got_counts_once() -> None:
    s = hs.Stream()
    before = figures()
    array = hs.empty(MIB, np.uint8)
    s.call(lambda _: None, array)
    s.synchronize(timeout=LIMIT)
    array._memory.free()
    assert change(before)[0] == 0
    del array
    memory.empty_cache()
    assert change(before) == (0, 0, 0)


def change(before: tuple[int, int, int]) -> tuple[int, ...]:
    return tuple(now - then for now, then in zip(figures(), before, strict=True))


@pytest.mark.parametrize("ordered", [False, True], ids=["without a stream", "on a stream"])
def test_M15_a_block_counts_until_it_is_freed_and_used_no_more(hold: Hold, ordered: bool) -> None:
    stream = hs.Stream()
    before = figures()
    array = hs.empty(MIB, np.uint8, stream=stream if ordered else None)
    assert change(before) == (MIB, MIB, MIB)
    gate = hold(stream)
    other = hs.Stream()
    hold_other = hold(other)
    array.fill(1, other)
    del array
    assert change(before) == (0, MIB, MIB)
    gate.open()
    hold_other.open()
    other.synchronize(timeout=LIMIT)
    stream.synchronize(timeout=LIMIT)
    assert change(before)[:2] == (0, 0)
    memory.empty_cache()
    assert change(before) == (0, 0, 0)


def test_M15_peaks_are_reset_one_by_one() -> None:
    stream = hs.Stream()
    memory.reset_pool_peaks()
    array = hs.empty(MIB, np.uint8, stream=stream)
    del array
    memory.trim_pool()
    stats = memory.pool_stats()
    memory.reset_pool_peaks(used=True, reserved=False)
    after = memory.pool_stats()
    assert after["used_high"] == after["used"]
    assert after["reserved_high"] == stats["reserved_high"]


@pytest.mark.needs("memory-size")
def test_M16_functions_that_hold_their_arguments_are_waited_for(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs, numpy as np
        from halstream.testing import Gate
        stream, opened = hs.Stream(), threading.Event()
        array = hs.empty(5 << 20, np.uint8)
        stream.call(opened.wait, 10)
        stream.call(len, array._as_host() if hs.backend() == "host" else [array])
        stream.call(lambda kept: None, [array])
        del array
        threading.Timer(0.2, opened.set).start()
        again = hs.empty(5 << 20, np.uint8)
        assert opened.is_set()
        stream.synchronize(timeout=10)
        try:
            hs.empty(5 << 20, np.uint8)
        except hs.OutOfMemoryError as exc:
            assert f"out of memory. Tried to allocate {5 << 20} bytes" in str(exc), exc
        else:
            raise SystemExit("no error")
        """,
        env=dict.fromkeys(("HALSTREAM_HOST_MEMORY", "FAKECUDA_MEMORY", "FAKEACL_MEMORY"), str(8 * MIB)),
    )
    assert done.returncode == 0, done.stderr


def test_M17_a_recorded_stream_that_was_closed_is_waited_for(hold: Hold) -> None:
    mine, other = hs.Stream(), hs.Stream()
    array = hs.empty(MIB, np.uint8, stream=mine)
    address = array.ptr
    array.record_stream(other)
    gate = hold(other)
    other.close()
    del array
    again = hs.empty(MIB, np.uint8, stream=mine)
    assert again.ptr != address
    gate.open()
    hs.synchronize(timeout=LIMIT)
    third = hs.empty(MIB, np.uint8, stream=mine)
    assert third.ptr == address


def test_M18_sizes_that_grow_reserve_what_is_in_use_at_one_time() -> None:
    stream = hs.Stream()
    memory.reset_pool_peaks()
    start = memory.pool_stats()["reserved"]
    for size in range(512, MIB + 1, 2048):
        hs.empty(size, np.uint8, stream=stream)
        stream.synchronize(timeout=LIMIT)
    assert memory.pool_stats()["reserved_high"] - start <= 2 * MIB


def test_M18_sizes_that_grow_while_work_is_pending_reserve_a_few_times_the_largest(hold: Hold) -> None:
    stream = hs.Stream()
    memory.reset_pool_peaks()
    start = memory.pool_stats()["reserved"]
    gate = hold(stream)
    for size in range(2048, MIB + 1, 2048):
        memory.PooledMemory(size, stream).free()
    assert memory.pool_stats()["reserved_high"] - start <= 4 * MIB
    gate.open()
    stream.synchronize(timeout=LIMIT)


def test_M18_live_blocks_share_no_byte() -> None:
    streams = [hs.Stream(), hs.Stream()]
    random = np.random.default_rng(1)
    live: list[memory.PooledMemory] = []
    for _ in range(1000):
        if live and random.integers(2):
            live.pop(int(random.integers(len(live))))
        else:
            live.append(memory.PooledMemory(int(random.integers(1, 4096)), streams[int(random.integers(2))]))
    ranges = sorted((block.ptr, block.ptr + block.nbytes) for block in live)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ranges))


def test_M2_a_block_that_was_freed_by_its_address_is_not_freed_again() -> None:
    block = memory.DeviceMemory(64)
    hs._native.mem_free(block.ptr)
    other = memory.DeviceMemory(64)  # at the same address, as a rule
    with pytest.raises(hs.HalError):
        block.free()
    del block
    gc.collect()
    assert memory.lookup(other.ptr)[1] == other.ptr


def test_a_signal_handler_may_allocate_while_memory_is_drained(hold: Hold) -> None:
    stream = hs.Stream()
    gate = hold(stream)
    seen: list[int] = []

    def handler(number: int, frame: object) -> None:
        seen.append(hs.empty(512, np.uint8).ptr)

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        for turn in itertools.count(1):
            if len(seen) >= 50:
                break
            if turn % 256 == 0:  # a driver has room for about a thousand operations of a held stream
                gate.open()
                stream.synchronize(timeout=LIMIT)
                gate = hold(stream)
            array = hs.empty(512, np.uint8)
            array.record_stream(stream)
            del array
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    gate.open()
    stream.synchronize(timeout=LIMIT)


def test_an_unconsumed_capsule_frees_its_memory() -> None:
    before = figures()
    array = hs.empty(MIB, np.uint8)
    capsule = array.__dlpack__(max_version=(1, 0))
    del array
    assert change(before)[0] == MIB
    del capsule
    assert change(before)[0] == 0
    assert not _reap.lent


def test_threads_that_free_and_allocate_lose_nothing() -> None:
    before = figures()

    def work() -> None:
        stream = hs.Stream()
        for size in range(1, 200):
            hs.empty(size, np.uint8, stream=stream)
            hs.empty(size, np.uint8)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    hs.synchronize(timeout=LIMIT)
    memory.empty_cache()
    assert change(before) == (0, 0, 0)


@pytest.mark.needs("schedules")
def test_X7_a_later_run_does_not_see_what_an_earlier_one_left() -> None:
    def program() -> list[int]:
        mine, other = hs.Stream(), hs.Stream()
        array = hs.empty(4, np.int64, stream=mine)
        array.fill(7, mine)
        out = array.numpy(other)  # the wait for `mine` is missing
        hs.synchronize()
        return list(map(int, out))

    results = []
    for _ in range(3):
        with hs.testing.schedule("latest"):
            results.append(program())
    assert results[0] == results[1] == results[2]


HELD = """
    import threading
    import halstream as hs, numpy as np
    from halstream._memory._stream_values import wait_value
    from halstream._native._constants import CONDITION_EQUAL
    s = hs.Stream()
    flag = hs.pinned_empty(1, np.uint64)
    flag[0] = 0
    x = hs.zeros(6 << 20, np.uint8)
    hs.synchronize()
    {hold}
    x.fill(1, s)
    del x
"""


# The last one is not what the stream waits for yet when the allocation looks.
@pytest.mark.needs("memory-size")
@pytest.mark.parametrize(
    "hold",
    [
        "gate = hs.testing.Gate(s)",
        "wait_value(s, flag.ctypes.data, 1, CONDITION_EQUAL)",
        "s.call(threading.Event().wait, 0.5); gate = hs.testing.Gate(s)",
    ],
    ids=["gate", "value", "gate_behind_a_function"],
)
def test_M16_an_allocation_behind_work_that_waits_for_the_host_fails_with_the_reason(child: Child, hold: str) -> None:
    done = child(
        HELD.format(hold=hold)
        + """
    try:
        hs.empty(6 << 20, np.uint8)
    except hs.OutOfMemoryError as exc:
        assert "a stream waits for the host" in str(exc), exc
    else:
        raise SystemExit("it had memory")
    gate.open() if "gate" in globals() else flag.fill(1)
    hs.empty(6 << 20, np.uint8)
    """,
        env=dict.fromkeys(("HALSTREAM_HOST_MEMORY", "FAKECUDA_MEMORY", "FAKEACL_MEMORY"), str(8 << 20)),
    )
    assert done.returncode == 0, done.stderr
