"""mindspore: events."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream.mindspore import hal, runtime

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
Hold = Callable[[Any], Any]


@pytest.mark.row(58, 60)
def test_events_can_be_made() -> None:
    for e in (
        hal.Event(),
        hal.Event(enable_timing=True, blocking=True),
        hal.Event(True, False),
        runtime.Event(),
    ):
        assert e is not None
        assert bool(e) is True


@pytest.mark.row(59)
def test_time_between_two_events() -> None:
    s = hal.Stream()
    start, end = hal.Event(enable_timing=True), hal.Event(enable_timing=True)
    start.record(s)
    s.delay(0.005)
    end.record(s)
    start.synchronize(timeout=LIMIT)
    end.synchronize(timeout=LIMIT)
    assert start.elapsed_time(end) > 0


@pytest.mark.row(61, 62)
def test_events_around_work_that_is_held(hold: Hold) -> None:
    stream = hal.Stream()
    ev1, ev2 = hal.Event(True, False), hal.Event(True, False)
    ev1.record(stream)
    with hal.StreamCtx(stream):
        gate = hold(stream)
        stream.delay(0.002)
    stream.record_event(ev2)
    assert ev2.query() is False
    assert stream.query() is False
    gate.open()
    ev1.synchronize(timeout=LIMIT)
    ev2.synchronize(timeout=LIMIT)
    assert ev2.query() is True
    assert ev1.elapsed_time(ev2) > 0
    stream.synchronize(timeout=LIMIT)
    assert stream.query() is True


@pytest.mark.row(64)
def test_record_and_wait_mean_the_stream_of_the_context(hold: Hold) -> None:
    s1, s2, e = hal.Stream(), hal.Stream(), hal.Event()
    gate = hold(s1)
    with hal.StreamCtx(s1):
        e.record()
    assert e.query() is False
    with hal.StreamCtx(s2):
        e.wait()
    assert s2.query() is False
    gate.open()
    s2.synchronize(timeout=LIMIT)
    assert e.query() is True


@pytest.mark.row(65)
def test_an_empty_interval_can_be_measured_again_and_again() -> None:
    start, end = hal.Event(enable_timing=True), hal.Event(enable_timing=True)
    for _ in range(1000):
        start.record()
        end.record()
        start.synchronize()
        end.synchronize()
        assert start.elapsed_time(end) >= 0


@pytest.mark.row(69)
def test_a_synchronized_stream_has_its_events_done(hold: Hold) -> None:
    s1 = hal.Stream()
    gate = hold(s1)
    with hal.StreamCtx(s1):
        ev = s1.record_event()
    assert not ev.query()
    gate.open()
    s1.synchronize(timeout=LIMIT)
    assert ev.query()


@pytest.mark.row(70)
@pytest.mark.parametrize(
    ("kwargs", "name", "got"),
    [
        ({"enable_timing": 1}, "enable_timing", "int"),
        ({"enable_timing": None}, "enable_timing", "NoneType"),
        ({"blocking": "x"}, "blocking", "str"),
        ({"blocking": 0}, "blocking", "int"),
    ],
)
def test_flags_must_be_bools(kwargs: dict[str, Any], name: str, got: str) -> None:
    with pytest.raises(TypeError) as info:
        hal.Event(**kwargs)
    assert str(info.value) == f"For 'Event', the '{name}' must be a bool, but got {got}."


def test_no_other_arguments() -> None:
    with pytest.raises(TypeError, match="takes from 1 to 3 positional arguments but 4"):
        hal.Event(True, True, True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'interprocess'"):
        hal.Event(interprocess=True)  # type: ignore[call-arg]


@pytest.mark.row(71)
def test_an_event_never_recorded_is_done() -> None:
    e = hal.Event()
    assert e.query() is True
    assert e.wait() is None
    assert e.synchronize() is None


@pytest.mark.row(72)
@pytest.mark.parametrize("timing", [False, True])
@pytest.mark.parametrize("recorded", [(0, 0), (1, 0), (0, 1)])
def test_no_time_without_records(timing: bool, recorded: tuple[int, int]) -> None:
    pair = hal.Event(timing), hal.Event(timing)
    for event, wanted in zip(pair, recorded, strict=True):
        if wanted:
            event.record()
            event.synchronize(timeout=LIMIT)
    with pytest.raises(RuntimeError, match="recorded") as info:
        pair[0].elapsed_time(pair[1])
    assert str(info.value) == (
        "event_ or other_event has not been recorded yet, "
        f"event is created:{recorded[0]}other_event is created:{recorded[1]}"
    )
    assert isinstance(info.value, hs.UnrecordedError)


@pytest.mark.row(73)
@pytest.mark.parametrize("value", [None, 3, "x"])
def test_elapsed_time_refuses_what_is_no_event(value: Any) -> None:
    e = hal.Event(True)
    e.record()
    with pytest.raises(TypeError) as info:
        e.elapsed_time(value)
    assert str(info.value) == (f"For 'elapsed_time', the argument 'end_event' should be Event, but got {type(value)}.")
    with pytest.raises(TypeError, match="should be Event"):
        e.elapsed_time(hal.Stream())  # type: ignore[arg-type]


@pytest.mark.row(74)
def test_no_time_from_events_without_timing() -> None:
    timed, plain = hal.Event(True), hal.Event()
    timed.record()
    plain.record()
    hal.synchronize()
    for start, end in ((timed, plain), (plain, timed), (plain, plain)):
        with pytest.raises(RuntimeError):
            start.elapsed_time(end)


def test_no_time_from_pending_events(hold: Hold) -> None:
    s = hal.Stream()
    start, end = hal.Event(True), hal.Event(True)
    start.record(s)
    gate = hold(s)
    end.record(s)
    with pytest.raises(RuntimeError) as info:
        start.elapsed_time(end)
    assert isinstance(info.value, hs.NotReadyError)
    gate.open()
    end.synchronize(timeout=LIMIT)
    assert start.elapsed_time(end) >= 0
    assert end.elapsed_time(start) <= 0


@pytest.mark.row(75)
@pytest.mark.parametrize("method", ["record", "wait"])
def test_record_and_wait_arguments(method: str, hold: Hold) -> None:
    e = hal.Event()
    for value in (5, "x", hal.Event()):
        with pytest.raises(TypeError) as info:
            getattr(e, method)(value)
        assert str(info.value) == (f"For '{method}', the argument 'stream' should be Stream, but got {type(value)}.")
    s = hal.Stream()
    gate = hold(s)
    held = s.record_event()
    with hal.StreamCtx(s):
        assert e.record(None) is None
    assert e.query() is False, "None is the current stream"
    other = hal.Stream()
    with hal.StreamCtx(other):
        assert held.wait(None) is None
    assert other.query() is False, "None is the current stream"
    gate.open()


@pytest.mark.row(76)
def test_recording_again_moves_the_event(hold: Hold) -> None:
    s1, s2, e = hal.Stream(), hal.Stream(), hal.Event()
    first, second = hold(s1), hold(s2)
    e.record(s1)
    waiter = hal.Stream()
    waiter.wait_event(e)
    e.record(s2)
    first.open()
    waiter.synchronize(timeout=LIMIT)
    assert e.query() is False, "the newest record counts"
    second.open()
    e.synchronize(timeout=LIMIT)
    assert e.query() is True


@pytest.mark.row(77)
def test_elapsed_time_is_in_milliseconds() -> None:
    s = hal.Stream()
    start, end = hal.Event(True), hal.Event(True)
    start.record(s)
    s.delay(0.02)
    end.record(s)
    end.synchronize(timeout=LIMIT)
    elapsed = start.elapsed_time(end_event=end)
    assert type(elapsed) is float
    assert 19.0 < elapsed < 10_000.0


@pytest.mark.row(78)
def test_texts() -> None:
    assert repr(hal.Event()) == "Event(enable_timing=0, blocking:0, is_created:0, event:0)"
    e = hal.Event(True, True)
    assert str(e) == "Event(enable_timing=1, blocking:1, is_created:0, event:0)"
    assert "enable_timing=0, blocking:1" in repr(hal.Event(blocking=True))
    e.record()
    pattern = r"Event\(enable_timing=1, blocking:1, is_created:1, event:0x[0-9a-f]+\)"
    assert re.fullmatch(pattern, repr(e))


@pytest.mark.row(79)
def test_equality_is_identity() -> None:
    e = hal.Event()
    assert e == e
    assert (e == 3) is False
    assert (e == None) is False  # noqa: E711
    assert e != hal.Event()
    assert len({e, e, hal.Event()}) == 2


def test_events_of_other_dialects_are_events() -> None:
    s, e = hal.Stream(), hs.Event()
    assert s.record_event(e) is e
    s.wait_event(e)
    s.synchronize(timeout=LIMIT)


def test_a_dropped_event_still_holds_its_waiter(hold: Hold) -> None:
    s1, s2 = hal.Stream(), hal.Stream()
    gate = hold(s1)
    e = s1.record_event()
    s2.wait_event(e)
    del e
    for _ in range(100):
        hal.Event()
    assert s2.query() is False
    gate.open()
    s2.synchronize(timeout=LIMIT)


@pytest.mark.needs("graphs")
def test_an_event_shows_itself_in_a_capture() -> None:
    stream = hal.Stream()
    with hs.capture(stream):
        event = stream.record_event()
        assert "is_created:1" in repr(event)
