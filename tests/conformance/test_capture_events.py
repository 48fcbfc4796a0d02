"""Events that a program makes, records and drops while a stream captures."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from capture_help import LIMIT, usable
from halstream import _native

Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def _record_later(s: hs.Stream) -> hs.Event:
    event = hs.Event()
    event.record(s)
    return event


#: How a program gets an event that stands for where a stream is.
WAYS: dict[str, Callable[[hs.Stream], hs.Event]] = {
    "record": lambda s: s.record(),
    "record None": lambda s: s.record(None),
    "record an event of no device": lambda s: s.record(hs.Event()),
    "record an event of the device": lambda s: s.record(hs.Event(device=s.device)),
    "record an event with timing": lambda s: s.record(hs.Event(timing=True)),
    "Event.record": _record_later,
}


@pytest.mark.parametrize("way", WAYS)
def test_G3_an_event_that_is_made_in_a_capture_joins_streams(way: str) -> None:
    a, b, new = hs.Stream(), hs.Stream(non_blocking=True), WAYS[way]
    with hs.capture(a) as graph:
        a.nop()
        b.wait(new(a))
        a.nop()
        b.nop()
        event = new(b)
        event.wait(a)
        a.nop()
        a.record(event)  # once more, of another stream
        b.wait(event)
        b.nop()
        a.wait(b)
    assert graph.edges == [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
    usable(a, b)


def test_G3_a_stream_without_nodes_of_its_own_need_not_be_joined() -> None:
    a, b = hs.Stream(), hs.Stream(non_blocking=True)
    with hs.capture(a) as graph:
        a.nop()
        b.wait(a)
        assert b.capturing
        a.nop()
    assert graph.edges == [(0, 1)]
    usable(a, b)
    with pytest.raises(hs.CaptureError, match="never rejoined"), hs.capture(a):
        b.wait(a)
        b.nop()
        a.wait(b)
        b.nop()  # which the origin does not wait for
    usable(a, b)


def test_G7_an_event_is_recorded_from_the_call_that_launches_on(hold: Hold, settle: Callable[[], None]) -> None:
    s, o, event, ran = hs.Stream(), hs.Stream(), hs.Event(), []
    with hs.capture(s) as graph:
        s.call(ran.append, "graph")
        s.record_external(event)
    run = graph.instantiate()
    for _ in range(2):  # the second time the event was recorded before
        ran.clear()
        gate = hold(s)
        run.launch(s)
        o.wait(event)
        o.call(ran.append, "other")
        settle()
        assert ran == [], "nothing comes before the record of a launch that has not begun"
        assert not event.query()
        gate.open()
        event.synchronize(timeout=LIMIT)
        o.synchronize(timeout=LIMIT)
        assert ran == ["graph", "other"]


@pytest.mark.parametrize("schedule", ["fifo", "latest", "earliest", "random 3", "starve 1"])
@pytest.mark.needs("schedules")
def test_G7_a_record_of_a_launch_is_waited_for_under_schedules(schedule: str, under: Callable[[str], None]) -> None:
    under(schedule)
    s, o, event, ran = hs.Stream(), hs.Stream(), hs.Event(), []
    with hs.capture(s) as graph:
        s.call(ran.append, "graph")
        s.record_external(event)
    run = graph.instantiate()
    limit = time.monotonic() + LIMIT
    for i in range(1, 4):
        run.launch(s)
        o.wait(event)
        o.call(ran.append, "other")
        if i < 3:
            event.synchronize(timeout=LIMIT)
        while not event.query():
            assert time.monotonic() < limit, "the launch does not run"
        assert ran.count("graph") == i
    o.synchronize(timeout=LIMIT)
    assert ran.count("other") == ran.count("graph") == 3
    for i in range(len(ran)):
        assert ran[:i].count("other") <= ran[:i].count("graph")


@pytest.mark.parametrize("schedule", ["fifo", "latest", "random 3", "random 7", "starve 1"])
@pytest.mark.needs("schedules")
def test_G7_a_program_that_only_queries_sees_the_record_of_a_launch(
    schedule: str, under: Callable[[str], None]
) -> None:
    under(schedule)
    s, event = hs.Stream(), hs.Event()
    with hs.capture(s) as graph:
        s.record_external(event)
    graph.instantiate().launch(s)
    limit = time.monotonic() + LIMIT
    while not event.query():
        assert time.monotonic() < limit, "the launch does not run"


@pytest.mark.parametrize("way", WAYS)
def test_G4_an_event_that_was_made_in_a_capture_is_recorded_again(way: str) -> None:
    s, o, new = hs.Stream(), hs.Stream(), WAYS[way]
    with hs.capture(s):
        first, later = new(s), new(s)
    assert later.recorded
    with pytest.raises(hs.CaptureError) as caught:
        o.wait(first)
    assert caught.value.code == 905
    with pytest.raises(hs.CaptureError):
        first.query()
    for event in (first, later):
        assert s.record(event) is event
        assert event.recorded
        o.wait(event)
        event.synchronize(timeout=LIMIT)
        assert event.query()


def test_G3_an_event_without_a_record_orders_nothing() -> None:
    s, before = hs.Stream(), hs.Event()
    with hs.capture(s) as graph:
        s.nop()
        s.wait(before)
        s.wait(hs.Event())
        hs.Event(timing=True).wait(s)
        s.nop()
    assert graph.edges == [(0, 1)]
    usable(s)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("work", [False, True])
def test_G4_a_record_from_before_a_capture_is_outside_of_it(way: str, work: bool) -> None:
    s, o = hs.Stream(), hs.Stream()
    if work:
        o.nop()
    before = WAYS[way](o)
    o.synchronize(timeout=LIMIT)
    with pytest.raises(hs.CaptureError, match="recorded outside of the capture"), hs.capture(s):
        s.wait(before)
    usable(s, o)
    assert before.query()


def test_G4_events_are_closed_that_are_dropped_in_a_capture() -> None:
    s = hs.Stream()
    gc.collect()
    with hs.capture(s):
        before = _native.live()
        for _ in range(1000):
            s.record()
            s.wait(hs.Event())
        assert _native.live() < before + 100
    usable(s)
