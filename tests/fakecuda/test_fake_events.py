"""Events of the look-alike driver."""

from __future__ import annotations

import time
from collections.abc import Callable
from ctypes import byref, c_float, c_uint64

import pytest
from fakecuda_help import (
    CONTEXT_IS_DESTROYED,
    DISABLE_TIMING,
    INTERPROCESS,
    INVALID_CONTEXT,
    INVALID_HANDLE,
    INVALID_VALUE,
    NOT_READY,
    Driver,
    Word,
)

Start = Callable[..., Driver]


def elapsed(driver: Driver, start: int, end: int) -> tuple[int, float]:
    place = c_float(-1)
    return driver.cuEventElapsedTime(byref(place), start, end), place.value


def test_an_event_is_done_when_the_work_before_it_is(cuda: Driver) -> None:
    stream, event = cuda.stream(), cuda.event()
    word = cuda.hold(stream)
    assert cuda.cuEventRecord(event, stream) == 0
    assert cuda.cuEventQuery(event) == NOT_READY
    word.value = 1
    assert [cuda.cuEventSynchronize(event), cuda.cuEventQuery(event)] == [0, 0]


def test_an_unrecorded_event_is_done(cuda: Driver) -> None:
    """Spec 6.3: an empty set; a wait for it does nothing."""
    stream, event = cuda.stream(), cuda.event()
    codes = [cuda.cuEventQuery(event), cuda.cuEventSynchronize(event), cuda.cuStreamWaitEvent(stream, event, 0)]
    assert [*codes, cuda.cuStreamQuery(stream)] == [0] * 4


def test_a_wait_holds_the_stream_and_not_the_host(cuda: Driver) -> None:
    one, two, event, word = cuda.stream(), cuda.stream(), cuda.event(), Word(cuda)
    gate = cuda.hold(one)
    cuda.cuEventRecord(event, one)
    assert cuda.cuStreamWaitEvent(two, event, 0) == 0
    cuda.cuStreamWriteValue32_v2(two, word.address, 1, 0)
    assert cuda.pending(two) and word.value == 0
    gate.value = 1
    assert cuda.cuStreamSynchronize(two) == 0 and word.value == 1


def test_a_wait_is_bound_to_the_record_at_its_call(cuda: Driver) -> None:
    """Spec 6.3: later records do not move it."""
    one, two, waiting, event = cuda.stream(), cuda.stream(), cuda.stream(), cuda.event()
    gate = cuda.hold(one)
    cuda.cuEventRecord(event, one)
    cuda.cuStreamWaitEvent(waiting, event, 0)
    cuda.hold(two)
    cuda.cuEventRecord(event, two)
    gate.value = 1
    assert cuda.cuStreamSynchronize(waiting) == 0
    assert cuda.cuEventQuery(event) == NOT_READY


def test_query_looks_at_the_newest_record(cuda: Driver) -> None:
    """Spec 6.3."""
    held, idle, event = cuda.stream(), cuda.stream(), cuda.event()
    cuda.hold(held)
    cuda.cuEventRecord(event, held)
    assert cuda.cuEventQuery(event) == NOT_READY
    cuda.cuEventRecord(event, idle)
    assert cuda.cuEventQuery(event) == 0


def test_synchronize_waits_for_the_record(cuda: Driver) -> None:
    stream, event = cuda.stream(), cuda.event()
    word = cuda.hold(stream)
    cuda.cuEventRecord(event, stream)
    assert cuda.waits("cuEventSynchronize", event, on=word)


def test_an_event_and_its_stream_are_of_one_context(start: Start) -> None:
    """Spec 6.3: 400 otherwise; the waiting stream may be of another."""
    driver = start()
    driver.context(1)
    other = driver.stream()
    driver.context(0)
    event, stream, word = driver.event(), driver.stream(), Word(driver)
    assert driver.cuEventRecord(event, other) == INVALID_HANDLE
    gate = driver.hold(stream)
    driver.cuEventRecord(event, stream)
    assert driver.cuStreamWaitEvent(other, event, 0) == 0
    driver.cuStreamWriteValue32_v2(other, word.address, 1, 0)
    assert driver.pending(other)
    gate.value = 1
    assert driver.cuStreamSynchronize(other) == 0 and word.value == 1


def test_a_pending_event_may_be_destroyed(cuda: Driver) -> None:
    """Spec 6.3: right after a wait; the wait stays."""
    one, two, event = cuda.stream(), cuda.stream(), cuda.event()
    gate = cuda.hold(one)
    cuda.cuEventRecord(event, one)
    cuda.cuStreamWaitEvent(two, event, 0)
    assert cuda.cuEventDestroy_v2(event) == 0
    assert {cuda.cuEventQuery(event), cuda.cuEventDestroy_v2(event)} <= {INVALID_HANDLE, CONTEXT_IS_DESTROYED}
    assert cuda.pending(two)
    gate.value = 1
    assert cuda.cuStreamSynchronize(two) == 0


def test_elapsed_time_is_that_of_the_work_between(cuda: Driver) -> None:
    stream, start, end = cuda.stream(), cuda.event(0), cuda.event(0)
    delay = cuda.function("halstream_delay", "u64")
    cuda.cuEventRecord(start, stream)
    assert cuda.launch(delay, stream, c_uint64(3_000_000)) == 0
    cuda.cuEventRecord(end, stream)
    assert cuda.cuEventSynchronize(end) == 0
    code, milliseconds = elapsed(cuda, start, end)
    assert code == 0 and milliseconds >= 2.99
    assert elapsed(cuda, end, start)[1] == -milliseconds


def test_elapsed_time_of_an_unrecorded_event_is_400(cuda: Driver) -> None:
    """Spec 6.4."""
    stream, recorded = cuda.stream(), cuda.event(0)
    cuda.cuEventRecord(recorded, stream)
    assert elapsed(cuda, recorded, cuda.event(0))[0] == INVALID_HANDLE


def test_elapsed_time_without_timing_is_400(cuda: Driver) -> None:
    """Spec 6.4."""
    stream, one, two = cuda.stream(), cuda.event(0), cuda.event(DISABLE_TIMING)
    cuda.cuEventRecord(one, stream), cuda.cuEventRecord(two, stream)
    assert elapsed(cuda, one, two)[0] == INVALID_HANDLE


def test_elapsed_time_of_a_pending_event_is_600(cuda: Driver) -> None:
    """Spec 6.4."""
    stream, one, two = cuda.stream(), cuda.event(0), cuda.event(0)
    cuda.cuEventRecord(one, stream)
    cuda.hold(stream)
    cuda.cuEventRecord(two, stream)
    assert elapsed(cuda, one, two)[0] == NOT_READY


def test_elapsed_time_between_devices_is_400(start: Start) -> None:
    """Spec 6.4."""
    driver, events = start(), []
    for device in (0, 1):
        driver.context(device)
        events.append(driver.event(0))
        driver.cuEventRecord(events[-1], driver.stream())
    assert elapsed(driver, *events)[0] == INVALID_HANDLE


@pytest.mark.parametrize("flags", [INTERPROCESS, 8])
def test_wrong_flags_are_refused(cuda: Driver, flags: int) -> None:
    """Spec 3.5: an event for other processes has no timing."""
    assert cuda.cuEventCreate(byref(c_uint64()), flags) == INVALID_VALUE
    assert cuda.cuEventCreate(byref(c_uint64()), INTERPROCESS | DISABLE_TIMING) == 0


def test_creating_and_recording_by_number_need_a_context(cuda: Driver) -> None:
    """Spec 6.7."""
    event = cuda.event()
    cuda.cuCtxSetCurrent(0)
    assert cuda.cuEventCreate(byref(c_uint64()), 0) == INVALID_CONTEXT
    assert cuda.cuEventRecord(event, 0) == INVALID_CONTEXT


def test_one_event_covers_all_work_of_a_context(cuda: Driver) -> None:
    """Spec 3.3: cuCtxRecordEvent."""
    context, event, gates = cuda.asked("cuCtxGetCurrent"), cuda.event(), []
    for _ in range(2):
        gates.append(cuda.hold(cuda.stream()))
    assert cuda.cuCtxRecordEvent(context, event) == 0
    gates[0].value = 1
    assert cuda.cuEventQuery(event) == NOT_READY
    gates[1].value = 1
    assert cuda.cuEventSynchronize(event) == 0


def test_all_later_work_of_a_context_waits(cuda: Driver) -> None:
    """Spec 3.3: cuCtxWaitEvent, for streams made afterwards, too."""
    context, source, before, event = cuda.asked("cuCtxGetCurrent"), cuda.stream(), cuda.stream(), cuda.event()
    gate = cuda.hold(source)
    cuda.cuEventRecord(event, source)
    assert cuda.cuCtxWaitEvent(context, event) == 0
    after = cuda.stream()
    words = [Word(cuda), Word(cuda)]
    for stream, word in zip((before, after), words, strict=True):
        assert cuda.cuStreamQuery(stream) == 0, "it has no work yet"
        assert cuda.cuStreamSynchronize(stream) == 0
        assert cuda.cuStreamWriteValue32_v2(stream, word.address, 1, 0) == 0
    # Every stream of the context waits, so no other one can show that the writes had time to run.
    time.sleep(0.02)
    assert [word.value for word in words] == [0, 0]
    assert [cuda.cuStreamQuery(before), cuda.cuStreamQuery(after)] == [NOT_READY] * 2
    gate.value = 1
    assert [cuda.cuStreamSynchronize(before), cuda.cuStreamSynchronize(after)] == [0, 0]
