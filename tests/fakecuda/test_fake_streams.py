"""Streams of the look-alike driver: order, default streams, handles."""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_uint, c_uint64

import pytest
from fakecuda_help import (
    INVALID_CONTEXT,
    INVALID_HANDLE,
    INVALID_VALUE,
    LEGACY,
    LIMIT,
    NON_BLOCKING,
    NOT_READY,
    PER_THREAD,
    Driver,
    Word,
    until,
)

Start = Callable[..., Driver]


def write(driver: Driver, stream: int, word: Word, value: int = 1) -> None:
    assert driver.cuStreamWriteValue32_v2(stream, word.address, value, 0) == 0


def test_work_of_a_stream_runs_late_and_in_order(cuda: Driver) -> None:
    """Spec 6.2: ordering is within the stream."""
    stream, seen = cuda.stream(), []
    word = cuda.hold(stream)
    for i in range(20):
        assert cuda.host_function(stream, lambda i=i: seen.append(i)) == 0
    assert cuda.pending(stream) and seen == []
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and seen == list(range(20))
    assert cuda.cuStreamQuery(stream) == 0


def test_streams_do_not_wait_for_each_other(cuda: Driver) -> None:
    one, two = cuda.stream(), cuda.stream()
    cuda.hold(one)
    word = Word(cuda)
    write(cuda, two, word)
    assert cuda.cuStreamSynchronize(two) == 0 and word.value == 1


@pytest.mark.parametrize("legacy", [0, LEGACY])
def test_legacy_work_waits_for_blocking_streams(cuda: Driver, legacy: int) -> None:
    """Spec 6.1: for all earlier work of every blocking stream."""
    blocking, word = cuda.stream(0), Word(cuda)
    gate = cuda.hold(blocking)
    write(cuda, legacy, word)
    assert cuda.pending(legacy) and word.value == 0
    gate.value = 1
    assert cuda.cuStreamSynchronize(legacy) == 0 and word.value == 1


def test_blocking_streams_wait_for_legacy_work(cuda: Driver) -> None:
    """Spec 6.1: later work of blocking streams waits; that of others does not."""
    blocking, free, held, word = cuda.stream(0), cuda.stream(), Word(cuda), Word(cuda)
    gate = cuda.hold(LEGACY)
    write(cuda, blocking, held)
    write(cuda, free, word)
    assert cuda.cuStreamSynchronize(free) == 0
    assert cuda.pending(blocking) and (word.value, held.value) == (1, 0)
    gate.value = 1
    assert cuda.cuStreamSynchronize(blocking) == 0 and held.value == 1


@pytest.mark.parametrize("how", ["value", "function"])
def test_a_record_that_only_the_legacy_order_holds_up_is_no_work_of_its_stream(cuda: Driver, how: str) -> None:
    """The event is pending, the stream is idle: measured on a GPU."""
    blocking, event, done = cuda.stream(0), cuda.event(), cuda.event()
    assert cuda.cuEventRecord(done, cuda.stream()) == 0
    if how == "value":
        gate = cuda.hold(LEGACY)
    else:
        gate = Word(cuda)
        assert cuda.host_function(LEGACY, lambda: until(lambda: gate.value == 1, "the release")) == 0
    assert cuda.cuStreamWaitEvent(blocking, done, 0) == 0
    assert cuda.cuEventRecord(event, blocking) == 0
    assert [cuda.cuStreamQuery(blocking), cuda.cuStreamSynchronize(blocking)] == [0, 0]
    assert cuda.cuEventQuery(event) == NOT_READY
    assert cuda.cuEventRecord(event, blocking) == 0
    assert [cuda.cuStreamQuery(blocking), cuda.cuEventQuery(event)] == [0, NOT_READY]
    gate.value = 1
    assert cuda.cuStreamSynchronize(LEGACY) == 0 and cuda.cuEventSynchronize(event) == 0


@pytest.mark.parametrize("first", ["work", "record"])
def test_work_that_the_legacy_order_holds_up_is_seen_beside_a_record(cuda: Driver, first: str) -> None:
    blocking, event, word = cuda.stream(0), cuda.event(), Word(cuda)
    gate = cuda.hold(LEGACY)
    if first == "record":
        assert cuda.cuEventRecord(event, blocking) == 0
    write(cuda, blocking, word)
    if first == "work":
        assert cuda.cuEventRecord(event, blocking) == 0
    assert cuda.pending(blocking) and word.value == 0 and cuda.cuEventQuery(event) == NOT_READY
    assert cuda.waits("cuStreamSynchronize", blocking, on=gate)
    assert cuda.cuEventSynchronize(event) == 0 and word.value == 1


def test_a_wait_for_a_record_that_the_legacy_order_holds_up_is_work(cuda: Driver) -> None:
    blocking, free, event = cuda.stream(0), cuda.stream(), cuda.event()
    gate = cuda.hold(LEGACY)
    assert cuda.cuEventRecord(event, blocking) == 0
    assert cuda.cuStreamWaitEvent(free, event, 0) == 0
    assert cuda.pending(free)
    assert cuda.waits("cuStreamSynchronize", free, on=gate)


def test_legacy_work_does_not_wait_for_non_blocking_streams(cuda: Driver) -> None:
    """Spec 6.1: they take no part in either direction."""
    cuda.hold(cuda.stream(NON_BLOCKING))
    word = Word(cuda)
    write(cuda, LEGACY, word)
    assert cuda.cuStreamSynchronize(LEGACY) == 0 and word.value == 1


def test_synchronizing_the_legacy_stream_waits_for_blocking_streams(cuda: Driver) -> None:
    """Spec 6.1: although nothing was given to it."""
    word = cuda.hold(cuda.stream(0))
    assert cuda.pending(0)
    assert cuda.waits("cuStreamSynchronize", 0, on=word)


def test_the_per_thread_stream_is_a_blocking_one(cuda: Driver) -> None:
    """Spec 6.1: it serialises with legacy work."""
    gate, word = cuda.hold(LEGACY), Word(cuda)
    write(cuda, PER_THREAD, word)
    assert cuda.pending(PER_THREAD) and word.value == 0
    gate.value = 1
    assert cuda.cuStreamSynchronize(PER_THREAD) == 0 and word.value == 1


def test_every_thread_has_a_per_thread_stream_of_its_own(cuda: Driver) -> None:
    """Spec 6.1: one per thread and context."""
    context, ids = cuda.asked("cuCtxGetCurrent"), []

    def other() -> None:
        cuda.cuCtxSetCurrent(context)
        ids.extend(cuda.asked("cuStreamGetId", PER_THREAD) for _ in range(2))

    other()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join(LIMIT)
    assert ids[0] == ids[1] != ids[2] == ids[3]


def test_the_per_thread_stream_is_of_the_context_that_is_there_now(cuda: Driver) -> None:
    first = cuda.asked("cuStreamGetId", PER_THREAD)
    cuda.cuDevicePrimaryCtxRelease_v2(0)
    cuda.context()
    assert cuda.cuStreamQuery(PER_THREAD) == 0 and cuda.asked("cuStreamGetId", PER_THREAD) != first


def test_special_handles_are_of_the_current_context(start: Start) -> None:
    """Spec 6.1: they carry no context; with none current they give 201."""
    driver = start()
    one, zero = driver.context(1), driver.context(0)
    assert driver.asked("cuStreamGetCtx", LEGACY) == zero
    driver.cuCtxSetCurrent(one)
    assert driver.asked("cuStreamGetCtx", LEGACY) == one
    driver.cuCtxSetCurrent(0)
    assert [driver.cuStreamQuery(handle) for handle in (0, 1, 2)] == [INVALID_CONTEXT] * 3


def test_a_stream_belongs_to_the_context_where_it_was_made(start: Start) -> None:
    driver = start()
    one = driver.context(1)
    stream = driver.stream()
    driver.context(0)
    assert driver.asked("cuStreamGetCtx", stream) == one
    assert driver.asked("cuStreamGetDevice", stream, type=c_int) == 1


def test_creating_needs_a_current_context(cuda: Driver) -> None:
    """Spec 6.7."""
    cuda.cuCtxSetCurrent(0)
    assert cuda.cuStreamCreate(byref(c_uint64()), 0) == INVALID_CONTEXT


@pytest.mark.parametrize(("asked", "given"), [(0, 0), (-3, -3), (-100, -5), (100, 0)])
def test_priorities_are_clamped(cuda: Driver, asked: int, given: int) -> None:
    """Spec 3.4: silently."""
    stream = cuda.made("cuStreamCreateWithPriority", NON_BLOCKING, asked)
    assert cuda.asked("cuStreamGetPriority", stream, type=c_int) == given


def test_flags_of_a_stream_are_returned(cuda: Driver) -> None:
    assert [cuda.asked("cuStreamGetFlags", cuda.stream(f), type=c_uint) for f in (0, 1)] == [0, 1]
    assert cuda.cuStreamCreate(byref(c_uint64()), 2) == INVALID_VALUE


def test_a_destroyed_stream_finishes_its_work(cuda: Driver) -> None:
    """Spec 6.10: destroy returns at once; others still wait for its work."""
    stream, other, event, word = cuda.stream(), cuda.stream(), cuda.event(), Word(cuda)
    gate = cuda.hold(stream)
    write(cuda, stream, word)
    assert cuda.cuEventRecord(event, stream) == 0
    assert cuda.cuStreamDestroy_v2(stream) == 0
    assert cuda.cuStreamWaitEvent(other, event, 0) == 0
    assert cuda.pending(other) and word.value == 0
    gate.value = 1
    assert cuda.cuStreamSynchronize(other) == 0 and word.value == 1


def test_the_handle_of_a_destroyed_stream_is_invalid(cuda: Driver) -> None:
    stream = cuda.stream()
    assert cuda.cuStreamDestroy_v2(stream) == 0
    assert [cuda.cuStreamQuery(stream), cuda.cuStreamDestroy_v2(stream)] == [INVALID_HANDLE] * 2


def test_handles_come_back_but_ids_do_not(cuda: Driver) -> None:
    """Spec 6.10: compare streams by their ids."""
    first = cuda.stream()
    first_id = cuda.asked("cuStreamGetId", first)
    cuda.cuStreamDestroy_v2(first)
    second = cuda.stream()
    assert second == first and cuda.asked("cuStreamGetId", second) != first_id


@pytest.mark.parametrize("handle", [0, LEGACY, PER_THREAD])
def test_special_handles_cannot_be_destroyed(cuda: Driver, handle: int) -> None:
    assert cuda.cuStreamDestroy_v2(handle) == INVALID_HANDLE


def test_nothing_captures(cuda: Driver) -> None:
    """Spec 3.9: the out parameter is required."""
    stream = cuda.stream()
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == 0
    assert cuda.cuStreamIsCapturing(stream, None) == INVALID_VALUE


def test_many_threads_share_streams_and_nothing_is_lost(cuda: Driver) -> None:
    """Spec 6.7: the API is thread-safe."""
    context, streams, words = cuda.asked("cuCtxGetCurrent"), [cuda.stream() for _ in range(4)], [Word(cuda)] * 4
    event, failures = cuda.event(), []

    def work(n: int) -> None:
        cuda.cuCtxSetCurrent(context)
        for i in range(200):
            stream = streams[(n + i) % 4]
            codes = [
                cuda.cuStreamWriteValue32_v2(stream, words[n].address, i, 0),
                cuda.cuEventRecord(event, stream),
                cuda.cuStreamWaitEvent(streams[n], event, 0),
                cuda.cuEventDestroy_v2(cuda.event()),
                cuda.cuStreamDestroy_v2(cuda.stream(0)),
            ]
            failures.extend(code for code in codes if code)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert cuda.cuCtxSynchronize() == 0 and failures == []
    until(lambda: cuda.count("live.streams") == 4, "the end of all closed streams")
