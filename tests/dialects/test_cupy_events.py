"""cupy.cuda: events, waiting for them, and the time between two."""

from __future__ import annotations

import pickle
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Event, Stream, get_elapsed_time, runtime

pytestmark = pytest.mark.dialect("cupy")

LIMIT = 10.0


class Named:
    """Any object with a raw handle is taken for a stream or an event."""

    def __init__(self, ptr: Any) -> None:
        self.ptr = ptr


def test_new_event_is_done(backend: str) -> None:
    event = Event()
    assert event.done is True
    event.synchronize()
    assert isinstance(event.ptr, int) and event.ptr != 0
    assert Event.__module__.endswith("cupy.cuda.stream")
    assert repr(event).startswith("<halstream.cupy.cuda.stream.Event object at 0x")


def test_done_follows_the_last_record(hold: Any) -> None:
    s = Stream()
    event = Event()
    first = hold(s)
    assert event.record(s) is None
    second = hold(s)
    event.record(s)
    first.open()
    assert not event.done
    second.open()
    event.synchronize(timeout=LIMIT)
    assert event.done


def test_record_without_a_stream_takes_the_current_one(hold: Any) -> None:
    s = Stream(non_blocking=True)
    event = Event()
    gate = hold(s)
    event.record()
    event.synchronize(timeout=LIMIT)
    with s:
        event.record()
        assert not event.done
    gate.open()
    event.synchronize(timeout=LIMIT)


def test_stream_record_returns_its_event(backend: str) -> None:
    s = Stream()
    event = Event()
    assert s.record(event) is event
    new = s.record()
    assert type(new) is Event and new is not event
    new.synchronize(timeout=LIMIT)


def test_stream_record_makes_a_timed_event(backend: str) -> None:
    s = Stream()
    start, end = s.record(), s.record()
    end.synchronize(timeout=LIMIT)
    assert get_elapsed_time(start, end) >= 0


def test_wait_event_waits_for_the_record_of_its_call(hold: Any) -> None:
    source, sink = Stream(), Stream()
    event = Event(disable_timing=True)
    first = hold(source)
    event.record(source)
    assert sink.wait_event(event) is None
    second = hold(source)
    event.record(source)
    assert not sink.done
    first.open()
    sink.synchronize(timeout=LIMIT)
    assert not event.done
    second.open()
    event.synchronize(timeout=LIMIT)


def test_wait_for_an_unrecorded_event_does_nothing(backend: str) -> None:
    s = Stream()
    s.wait_event(Event())
    s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    "flags",
    [{}, {"block": True}, {"disable_timing": True}, {"block": True, "disable_timing": True}],
)
def test_flags(backend: str, flags: dict[str, bool]) -> None:
    event = Event(**flags)
    event.record(Stream())
    event.synchronize(timeout=LIMIT)
    assert event.done


def test_flags_are_taken_by_truth_but_not_none(backend: str) -> None:
    Event("yes", 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \|: 'NoneType'"):
        Event(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Timing must be disabled for interprocess events"):
        Event(interprocess=True)
    with pytest.raises(TypeError):
        Event(True, True, True, True)  # type: ignore[call-arg]


def test_identity_equality_and_no_pickle(backend: str) -> None:
    a, b = Event(), Event()
    assert a == a and a != b and len({a, b}) == 2
    with pytest.raises(TypeError, match="cannot pickle or copy"):
        pickle.dumps(a)


def test_elapsed_time(backend: str) -> None:
    s = Stream()
    start, end = Event(), Event()
    start.record(s)
    s.delay(0.02)
    end.record(s)
    end.synchronize(timeout=LIMIT)
    elapsed = get_elapsed_time(start, end)
    assert isinstance(elapsed, float) and 19 <= elapsed < 5000
    assert get_elapsed_time(end, start) == pytest.approx(-elapsed)


def status_of(start: Any, end: Any) -> int:
    with pytest.raises(runtime.CUDARuntimeError) as info:
        get_elapsed_time(start, end)
    return info.value.status


def test_elapsed_time_errors(hold: Any) -> None:
    s = Stream()
    start = s.record()
    gate = hold(s)
    end = s.record()
    assert status_of(start, end) == 600
    with pytest.raises(hs.NotReadyError) as info:
        get_elapsed_time(start, end)
    assert isinstance(info.value, runtime.CUDARuntimeError)
    assert str(info.value).startswith("cudaErrorNotReady: device not ready (")
    gate.open()
    end.synchronize(timeout=LIMIT)
    untimed = Event(disable_timing=True)
    s.record(untimed)
    untimed.synchronize(timeout=LIMIT)
    assert status_of(start, untimed) == 400
    assert status_of(start, Event()) == 400
    with pytest.raises(AttributeError, match="'int' object has no attribute 'ptr'"):
        get_elapsed_time(1, 1)


def test_two_devices(hold: Any) -> None:
    s0 = Stream()
    here = s0.record()
    with cuda.Device(1):
        s1 = Stream()
        there = Event()
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidResourceHandle"):
            there.record(s0)
        # A new event is one of the current device.
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidResourceHandle"):
            s0.record()
        s1.record(there)
    # No stream means the current device's, whatever the device of the event.
    with pytest.raises(runtime.CUDARuntimeError):
        there.record()
    gate = hold(s1)
    s1.record(there)
    s0.wait_event(there)
    assert not s0.done and not there.done
    gate.open()
    s0.synchronize(timeout=LIMIT)
    there.synchronize(timeout=LIMIT)
    assert here.done and status_of(here, there) == 400


def test_any_object_with_a_handle(hold: Any) -> None:
    s, sink = Stream(), Stream()
    event = Event()
    gate = hold(s)
    event.record(Named(s.ptr))
    assert not event.done
    named = Named(event.ptr)
    assert s.record(named) is named
    sink.wait_event(named)
    assert not sink.done
    gate.open()
    sink.synchronize(timeout=LIMIT)
    event.synchronize(timeout=LIMIT)
    assert get_elapsed_time(named, Named(event.ptr)) == 0


@pytest.mark.parametrize("wrong", [1, "x", 1.5, object()])
def test_objects_without_a_handle(backend: str, wrong: Any) -> None:
    text = f"'{type(wrong).__name__}' object has no attribute 'ptr'"
    with pytest.raises(AttributeError, match=text):
        Stream.null.record(wrong)
    with pytest.raises(AttributeError, match=text):
        Stream.null.wait_event(wrong)
    with pytest.raises(AttributeError, match=text):
        Event().record(wrong)


def test_none_is_no_event(backend: str) -> None:
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'ptr'"):
        Stream.null.wait_event(None)


@pytest.mark.parametrize("number", [987654321, -5])
def test_handles_of_destroyed_events(backend: str, number: int) -> None:
    s = Stream()
    for call in (lambda: s.wait_event(Named(number)), lambda: Event().record(Named(number))):
        with pytest.raises(runtime.CUDARuntimeError) as info:
            call()
        assert info.value.status == 400
    with pytest.raises(TypeError, match="an integer is required"):
        s.wait_event(Named("x"))


def test_capture_is_refused_on_default_streams() -> None:
    for null in (Stream.null, Stream(null=True)):
        with pytest.raises(RuntimeError, match=r"cannot capture on the default .legacy. stream"):
            null.begin_capture()
    s = Stream(non_blocking=True)
    assert s.is_capturing() is False and s.done
    with pytest.raises(NotImplementedError, match="must be created via stream capture"):
        cuda.Graph()


@pytest.mark.row(54)
def test_end_capture_of_a_stream_that_is_not_capturing(backend: str) -> None:
    s = Stream(non_blocking=True)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorIllegalState"):
        s.end_capture()
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorIllegalState"):
        runtime.streamEndCapture(s.ptr)
