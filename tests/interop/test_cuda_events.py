"""Events of the runtime in the hands of other libraries, by their handles in the driver."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_float, c_void_p
from typing import Any

import halstream as hs
import pytest
from other_library import NOT_READY, Library

LIMIT = 10.0
Hold = Callable[[Any], Any]
Make = Callable[..., Library]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("cuda-driver")]


def shared(device: int = 0, **options: Any) -> tuple[hs.Event, c_void_p]:
    event = hs.Event(device=device, **options)
    return event, c_void_p(event.handle)


def test_E9_another_library_queries_waits_and_synchronizes(library: Make, hold: Hold) -> None:
    theirs, s = library(), hs.Stream(non_blocking=True)
    event = s.record()
    handle, stream = c_void_p(event.handle), theirs.stream()
    gate = hold(s)
    s.record(event)
    assert event.handle == handle.value
    theirs.check(theirs.call("cuStreamWaitEvent", c_void_p(stream), handle, 0))
    assert theirs.call("cuEventQuery", handle) == theirs.query(stream) == NOT_READY
    gate.open()
    theirs.check(theirs.call("cuEventSynchronize", handle))
    theirs.check(theirs.call("cuStreamSynchronize", c_void_p(stream)))
    event.synchronize(timeout=LIMIT)
    theirs.destroy(stream)


def test_E9_a_record_of_another_library_counts(library: Make, hold: Hold) -> None:
    theirs, held, waits = library(), hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    event, handle = shared()
    assert event.query(), "it was never recorded"
    gate = hold(held)
    theirs.check(theirs.call("cuEventRecord", handle, c_void_p(held.handle)))
    assert not event.query()
    with pytest.raises(hs.WaitTimeoutError):
        event.synchronize(timeout=0.02)
    waits.wait(event)
    waits.nop()
    assert not waits.query()
    gate.open()
    event.synchronize(timeout=LIMIT)
    waits.synchronize(timeout=LIMIT)
    assert event.query()


def test_E9_their_record_after_ours_is_the_latest(library: Make, hold: Hold) -> None:
    theirs, idle, held = library(), hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    event, handle = shared()
    idle.record(event)
    gate = hold(held)
    theirs.check(theirs.call("cuEventRecord", handle, c_void_p(held.handle)))
    assert not event.query()
    idle.record(event)
    event.synchronize(timeout=LIMIT)
    assert event.query() and theirs.call("cuEventQuery", handle) == 0, "ours replaced it"
    gate.open()


def test_E9_times_between_records_of_both(library: Make) -> None:
    theirs, s = library(), hs.Stream(non_blocking=True)
    start, first = shared(timing=True)
    end, second = shared(timing=True)
    s.record(start)
    s.delay(0.002)
    theirs.check(theirs.call("cuEventRecord", second, c_void_p(s.handle)))
    end.synchronize(timeout=LIMIT)
    asked = c_float()
    theirs.check(theirs.call("cuEventElapsedTime", byref(asked), first, second))
    assert start.elapsed(end) == pytest.approx(asked.value) and asked.value >= 2.0


def test_E9_a_handle_names_its_event_until_it_is_closed() -> None:
    event, handle = shared()
    number = int(handle.value or 0)
    same = hs.Event.from_handle(number)
    assert same.handle == number
    del same
    event.close()
    with pytest.raises(hs.InvalidHandleError):
        hs.Event.from_handle(number)


@pytest.mark.parametrize("dialect", ["torch", "cupy"])
def test_E9_dialects_give_the_drivers_handle(dialect: str, library: Make, hold: Hold) -> None:
    theirs = library()
    if dialect == "torch":
        from halstream.torch import cuda

        stream, event = cuda.Stream(), cuda.Event()
        event.record(stream)
        handle = c_void_p(event.cuda_event)
    else:
        from halstream import cupy

        stream, event = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Event()
        handle = c_void_p(event.ptr)
    gate = hold(stream)
    event.record(stream)
    assert theirs.call("cuEventQuery", handle) == NOT_READY
    gate.open()
    theirs.check(theirs.call("cuEventSynchronize", handle))
    if dialect == "cupy":
        cupy.cuda.runtime.eventRecord(event.ptr, stream.ptr)
        cupy.cuda.runtime.eventSynchronize(event.ptr)
