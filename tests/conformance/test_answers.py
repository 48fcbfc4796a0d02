"""Calls that are answered without entering the core, and those that must not be."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream import _native

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def done(event: Any) -> bool:
    """Wait for an event, or a stream, with nothing before it; the device may be a vendor's."""
    event.synchronize(timeout=LIMIT)
    return event.query() is True


def test_E4_a_record_on_an_idle_stream_is_overwritten_by_one_on_a_busy_stream(hold: Hold) -> None:
    idle, busy = hs.Stream(), hs.Stream()
    e = idle.record()
    assert done(e)
    gate = hold(busy)
    assert busy.record(e) is e
    assert not e.query()
    idle.record(e)
    assert done(e)
    busy.record(e)
    assert not e.query()
    gate.open()
    e.synchronize(timeout=LIMIT)
    assert e.query()


def test_E3_a_wait_keeps_its_record_when_the_event_is_recorded_on_an_idle_stream(
    hold: Hold, settle: Callable[[], None]
) -> None:
    idle, busy, waits = hs.Stream(), hs.Stream(), hs.Stream()
    gate = hold(busy)
    e = busy.record()
    waits.wait_event(e)
    idle.record(e)
    e.synchronize(timeout=LIMIT)  # a device takes a moment, also when its stream is idle
    del e
    gc.collect()
    waits.nop()
    settle()
    assert not waits.query()
    gate.open()
    waits.synchronize(timeout=LIMIT)


def test_E1_a_wait_for_a_record_that_is_done_adds_nothing(hold: Hold, backend: str) -> None:
    held, other = hs.Stream(), hs.Stream()
    gate = hold(held)
    e = held.record()
    gate.open()
    held.synchronize(timeout=LIMIT)
    other.wait_event(e)
    e.wait(other)
    other.wait_stream(held)
    other.wait_stream(other)
    # A device may take a moment to see that a record is done; the host one takes none.
    assert other.query() if backend == "host" else done(other)


def test_S3_a_query_counts_work_of_every_thread(hold: Hold) -> None:
    s = hs.Stream()
    gate = hold(s)
    assert not s.query()
    adder = threading.Thread(target=s.nop)
    adder.start()
    adder.join(LIMIT)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert s.query()


@pytest.mark.parametrize("ask", ["query", "synchronize"])
def test_S4_an_error_is_reported_once_by_a_stream_that_became_idle(ask: str) -> None:
    s, after = hs.Stream(), hs.Stream()
    e = s.record()

    def fail() -> None:
        raise ValueError("on the stream")

    s.call_checked(fail)
    after.wait_stream(s)
    after.synchronize(timeout=LIMIT)
    assert e.query()
    with pytest.raises(ValueError, match="on the stream"):
        getattr(s, ask)()
    assert s.query()
    s.synchronize()


def test_S5_a_record_on_an_ordered_stream_comes_after_work_of_the_default_stream(hold: Hold) -> None:
    ordered, free = hs.Stream(), hs.Stream(non_blocking=True)
    gate = hold(hs.Device(0).default_stream)
    assert done(free.record())
    e = ordered.record()
    assert not e.query()
    gate.open()
    e.synchronize(timeout=LIMIT)
    assert done(ordered.record())


def test_D4_an_event_stays_on_the_device_of_its_first_record() -> None:
    first, second = hs.Stream(0), hs.Stream(1)
    e = first.record()
    with pytest.raises(hs.WrongDeviceError):
        second.record(e)
    with pytest.raises(hs.WrongDeviceError):
        e.record(second)
    with pytest.raises(hs.WrongDeviceError):
        hs.Stream(0).record(hs.Event(1))
    first.record(e)
    assert done(e)


def test_L3_a_closed_stream_answers_nothing_also_when_later_ones_have_its_words(hold: Hold) -> None:
    closed = hs.Stream()
    e = closed.record()
    closed.query()
    closed.close()
    for _ in range(3):
        later = [hs.Stream() for _ in range(100)]
        for s in later:
            s.nop()
            s.synchronize(timeout=LIMIT)
        for call in (closed.query, closed.synchronize, closed.nop, closed.record, lambda: closed.record(e)):
            with pytest.raises(hs.ClosedError):
                call()
        with pytest.raises(hs.ClosedError):
            later[0].wait_stream(closed)
        for s in later:
            s.close()
        del later, s
        gc.collect()
    assert e.query()


def test_L3_a_closed_event_answers_nothing(hold: Hold) -> None:
    s = hs.Stream()
    never, recorded, pending = hs.Event(), s.record(), hs.Event()
    gate = hold(s)
    s.record(pending)
    for e in (never, recorded, pending):
        assert not e.closed
        e.close()
        e.close()
        assert e.closed
        for call in (e.query, e.synchronize, lambda e=e: s.record(e), lambda e=e: s.wait_event(e)):
            with pytest.raises(hs.ClosedError):
                call()
    gate.open()


def test_H3_nothing_is_answered_inside_a_function(hold: Hold) -> None:
    s, idle = hs.Stream(), hs.Stream()
    e = idle.record()
    e.synchronize(timeout=LIMIT)  # a vendor's device takes a moment
    refused: list[str] = []

    def ask() -> None:
        calls = (e.query, e.synchronize, idle.query, idle.synchronize, idle.record, lambda: idle.record(e))
        for call in (*calls, lambda: idle.wait_event(e), lambda: e.wait(idle), hs.Event):
            try:
                call()
            except hs.CallInHostFunctionError as exc:
                refused.append(str(exc))

    s.call(ask)
    s.synchronize(timeout=LIMIT)
    assert len(refused) == 9
    assert e.query()
    idle.synchronize(timeout=LIMIT)
    assert idle.query()


def test_L5_events_count_as_alive_until_they_are_dropped() -> None:
    s = hs.Stream()
    gc.collect()
    hs._core.drain()
    before = _native.live()
    events = [s.record() for _ in range(100)] + [hs.Event() for _ in range(100)]
    assert _native.live() == before + 200
    assert events[0].handle
    assert events[150].handle == 0  # it has no device yet
    assert _native.live() == before + 200
    events[1].close()
    assert _native.live() == before + 199
    events.clear()
    gc.collect()
    hs._core.drain()
    assert _native.live() == before


def test_L5_dropped_events_that_the_core_knew_are_closed_in_batches(hold: Hold) -> None:
    s = hs.Stream()
    hs._core.drain()
    before = _native.live()
    gate = hold(s)
    for _ in range(1000):
        s.record()
    assert _native.live() < before + 100
    gate.open()
    s.synchronize(timeout=LIMIT)


def test_L5_an_event_that_lives_on_in_its_finalizer_stays_open() -> None:
    kept: list[Any] = []

    class Kept(hs.Event):
        def __del__(self) -> None:
            kept.append(self)

    s = hs.Stream()
    e = Kept()
    s.record(e)
    number = e.handle
    del e
    gc.collect()
    hs._core.drain()
    s.synchronize(timeout=LIMIT)
    assert kept[0].query()
    assert kept[0].handle == number
    assert not kept[0].closed
    kept[0].close()
    kept.clear()


def test_L5_events_in_a_cycle_are_dropped() -> None:
    s = hs.Stream()
    hs._core.drain()
    before = _native.live()
    for _ in range(50):
        e: Any = s.record()
        e.itself = e
    del e
    gc.collect()
    hs._core.drain()
    assert _native.live() == before


def test_E5_an_event_with_timing_keeps_the_time_of_its_record() -> None:
    s = hs.Stream()
    first, second, plain = hs.Event(timing=True), hs.Event(timing=True), s.record()
    s.record(first)
    s.delay(0.002)
    s.record(second)
    second.synchronize(timeout=LIMIT)
    assert first.elapsed(second) >= 1.9
    with pytest.raises(hs.TimingDisabledError):
        plain.elapsed(second)
    with pytest.raises(hs.UnrecordedError):
        hs.Event(timing=True).elapsed(second)


def test_L5_an_event_of_a_handle_shares_its_records(hold: Hold) -> None:
    busy, idle = hs.Stream(), hs.Stream()
    gate = hold(busy)
    e = busy.record()
    assert not e.query()
    other = hs.Event.from_handle(e.handle)
    idle.record(other)
    assert done(e)
    busy.record(e)
    assert not other.query()
    busy.record(other)
    assert not e.query()
    gate.open()
    e.synchronize(timeout=LIMIT)
    assert other.query()


@pytest.mark.needs("schedules")
def test_X1_what_was_recorded_before_a_schedule_is_done_under_it() -> None:
    s, later = hs.Stream(), hs.Stream()
    before, never = s.record(), hs.Event()
    _native.schedule_set("random 1")
    try:
        assert before.query()
        assert never.query()
        later.wait_event(before)
        later.synchronize(timeout=LIMIT)
        pending = later.record()
        pending.synchronize(timeout=LIMIT)
        assert pending.query()
    finally:
        hs.synchronize()
        _native.schedule_set("parallel")
    assert before.query()
    later.record(before)
    assert before.query()


def test_O1_listeners_that_come_later_see_all_calls_from_then_on() -> None:
    s, other = hs.Stream(), hs.Stream()
    before = s.record()
    data = bytearray(64)
    with hs.sanitize(on="collect") as report:
        s.call(lambda: None, writes=[data])
        s.record(before)
        other.wait_event(before)
        other.call(lambda: None, reads=[data])
        other.synchronize(timeout=LIMIT)
        s.synchronize(timeout=LIMIT)
    assert list(report) == []
    with hs.sanitize(on="collect") as report:
        s.call(lambda: None, writes=[data])
        other.call(lambda: None, reads=[data])
        other.synchronize(timeout=LIMIT)
        s.synchronize(timeout=LIMIT)
    assert len(list(report)) == 1


def test_E6_many_threads_record_and_ask_the_same_events() -> None:
    streams = [hs.Stream() for _ in range(3)]
    events = [hs.Event() for _ in range(4)]
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for i in range(300):
                s, e = streams[(seed + i) % 3], events[i * seed % 4]
                s.nop()
                s.record(e)
                streams[i % 3].wait_event(e)
                e.query()
                fresh = s.record()
                fresh.synchronize()
                assert fresh.query()
                e.handle if i % 50 == 0 else e.recorded
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert failed == []
    for s in streams:
        s.synchronize(timeout=LIMIT)
    assert all(e.query() for e in events)


def test_L5_records_on_busy_and_idle_streams_in_turn_leave_nothing_behind(hold: Hold) -> None:
    idle, busy = hs.Stream(), hs.Stream()
    hs._core.drain()
    before = _native.live()
    gate = hold(busy)
    e = hs.Event()
    for _ in range(200):
        busy.record(e)
        idle.record(e)
    del e
    gc.collect()
    hs._core.drain()
    assert _native.live() == before
    gate.open()


def test_L5_an_event_that_the_core_knew_leaves_it_at_a_record_on_an_idle_stream(hold: Hold) -> None:
    idle, busy = hs.Stream(), hs.Stream()
    hs._core.drain()
    before = _native.live()
    gate = hold(busy)
    events = [hs.Event() for _ in range(3)]
    for e in events:
        busy.call(int)  # functions that follow each other are one operation, which ends before the record
        busy.record(e)
        idle.record(e)
        assert done(e)
    hs._core.drain()
    assert _native.live() == before + len(events)  # each counts once
    del e
    events.clear()
    hs._core.drain()
    assert _native.live() == before
    gate.open()
