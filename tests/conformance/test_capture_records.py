"""Records in captures: what they stand for, and what their events are refused."""

from __future__ import annotations

import gc
from collections.abc import Callable

import halstream as hs
import pytest
from capture_help import LIMIT

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def test_G3_an_event_stands_for_its_latest_record_in_a_capture() -> None:
    s, o = hs.Stream(), hs.Stream()
    with hs.capture(s) as graph:
        event = s.record()
        s.nop()
        s.nop()
        s.record(event)
        s.nop()
        o.wait(event)
        o.nop()
        o.record(event)
        s.wait(event)
        s.nop()
    assert graph.edges == [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4)]


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        pytest.param(hs.Event.query, id="query"),
        pytest.param(lambda e: e.synchronize(timeout=LIMIT), id="synchronize"),
        pytest.param(lambda e: e.elapsed(e), id="elapsed"),
    ],
)
def test_G4_nothing_is_told_of_an_event_before_it_is_recorded_outside(
    call: Callable[[hs.Event], object], *, ended: bool
) -> None:
    s = hs.Stream()

    def refused() -> None:
        with pytest.raises(hs.CaptureError, match=f"in a capture of stream {s.index} .*record it outside") as info:
            call(event)
        assert info.value.code == 907

    try:
        with hs.capture(s):
            s.record()
            event = s.record(hs.Event(timing=True))
            if not ended:
                refused()
    except hs.CaptureError as exc:
        assert not ended and "was invalidated" in str(exc)
    if ended:
        refused()
    s.record(event)
    s.synchronize(timeout=LIMIT)
    assert event.query()


@pytest.mark.parametrize("wait", [hs.Stream.wait, lambda o, e: e.wait(o)], ids=["of the stream", "of the event"])
def test_G3_a_wait_for_an_event_of_a_capture_pulls_a_stream_in_until_its_end(
    wait: Callable[[hs.Stream, hs.Event], None],
) -> None:
    s, o = hs.Stream(), hs.Stream()
    with hs.capture(s) as graph:
        s.nop()
        event = s.record()
        wait(o, event)
        o.nop()
        wait(s, o.record())
    assert graph.edges == [(0, 1)]
    with pytest.raises(hs.CaptureError, match="has ended; record it again") as info:
        wait(o, event)
    assert info.value.code == 905
    o.record().synchronize(timeout=LIMIT)  # it does not capture


def test_G4_an_event_of_a_capture_that_has_ended_cannot_join_the_next_one() -> None:
    s, o = hs.Stream(), hs.Stream()
    with hs.capture(s):
        s.nop()
        old = s.record()
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(o):
        o.nop()
        o.record()
        with pytest.raises(hs.CaptureError, match="has ended; record it again") as info:
            o.wait(old)
        assert info.value.code == 905
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(s):
        s.record()
        with pytest.raises(hs.CaptureError, match="has ended; record it again"):
            s.wait(old)


def test_G4_no_record_is_added_to_a_capture_that_was_invalidated_or_has_ended() -> None:
    s = hs.Stream()
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(s):
        s.record()
        event = s.record()
        with pytest.raises(hs.CaptureError, match="query"):
            s.query()
        for call in (s.record, lambda: s.record(event), lambda: event.record(s), lambda: s.wait(event)):
            with pytest.raises(hs.CaptureError, match="was invalidated"):
                call()
    for outside in (s.record(), s.record(event)):
        outside.synchronize(timeout=LIMIT)
        assert outside.query()


def test_G3_records_of_two_captures_at_once_are_kept_apart() -> None:
    a, b = hs.Stream(), hs.Stream()
    with hs.capture(a) as one, hs.capture(b) as two:
        events: dict[hs.Stream, list[hs.Event]] = {a: [], b: []}
        for i in range(6):
            s = a if i % 4 < 2 else b
            s.nop()
            events[s].append(s.record())
        forks = {s: hs.Stream() for s in events}
        for s, fork in forks.items():
            fork.wait(events[s][0])
            fork.nop()
            s.wait(fork.record())
            s.nop()
    assert sorted(one.edges) == [(0, 1), (0, 4), (1, 2), (2, 3), (3, 5), (4, 5)]
    assert sorted(two.edges) == [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_G3_events_of_a_capture_may_be_dropped_and_asked_about_in_any_order() -> None:
    s = hs.Stream()
    with hs.capture(s) as graph:
        kept = [s.record() for _ in range(5000)]
        del kept[:1000]
        s.nop()
        other = hs.Stream()
        other.wait(kept[1500])  # before the node
        other.nop()
        s.wait(other.record())
        del kept[1000:]
        gc.collect()
        s.nop()
    assert graph.edges == [(0, 2), (1, 2)]
    with pytest.raises(hs.CaptureError, match="record it outside"):
        kept[500].query()


@pytest.mark.parametrize("before", [False, True])
def test_G4_an_event_shows_itself_in_a_capture_as_elsewhere(*, before: bool) -> None:
    s, event = hs.Stream(), hs.Event()
    assert not event.recorded
    if before:
        s.record(event)
    handle = event.handle if before else None
    with hs.capture(s) as graph:
        s.record(event)
        assert event.recorded
        assert repr(event) == "<halstream.Event recorded>"
        inside = event.handle
        s.nop()
    assert len(graph.nodes) == 1
    assert event.recorded
    assert handle in (None, inside)
    assert event.handle == inside


def test_G4_a_record_in_a_capture_counts_whoever_keeps_it() -> None:
    s, kept, known, external = hs.Stream(), hs.Event(), hs.Event(), hs.Event()
    _ = known.handle
    with hs.capture(s):
        s.record(kept)
        s.record(known)
        s.record_external(external)
        assert [event.recorded for event in (kept, known, external)] == [True] * 3
    assert [event.recorded for event in (kept, known, external)] == [True] * 3


def test_G7_an_external_record_takes_the_place_of_an_earlier_one() -> None:
    s, o, event = hs.Stream(), hs.Stream(), hs.Event()
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(s):
        s.record(event)
        s.nop()
        s.record_external(event)
        o.wait(s)
        with pytest.raises(hs.CaptureError, match="recorded outside") as info:
            o.wait(event)
        assert info.value.code == 905
