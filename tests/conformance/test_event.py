"""Events: points on a timeline that only grows."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_E1_an_unrecorded_event_is_complete() -> None:
    e = hs.Event()
    assert e.query() is True
    assert not e.recorded
    e.synchronize(timeout=LIMIT)


def test_E1_waiting_for_an_unrecorded_event_does_nothing(hold: Hold) -> None:
    a, b, e = hs.Stream(), hs.Stream(), hs.Event()
    a.wait(e)
    a.nop()
    # The later record must not reach back.
    hold(b)
    b.record(e)
    a.synchronize(timeout=LIMIT)
    assert not e.query()


def test_E2_wait_does_not_block_the_host(hold: Hold, settle: Callable[[], None]) -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    gate = hold(a)
    e = a.record()
    b.wait(e)  # would never return if it waited here
    b.call(ran.append, 1)
    settle()
    assert not b.query()
    assert ran == []
    gate.open()
    b.synchronize(timeout=LIMIT)
    assert ran == [1]


def test_E2_waiting_crosses_devices(hold: Hold, settle: Callable[[], None]) -> None:
    a, b = hs.Stream(device=0), hs.Stream(device=1)
    gate = hold(a)
    b.wait(a.record())
    b.nop()
    settle()
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)


def test_E3_wait_uses_the_last_record_before_it(hold: Hold, settle: Callable[[], None]) -> None:
    a, b, e = hs.Stream(), hs.Stream(), hs.Event()
    a.record(e)  # done at once
    gate = hold(a)
    a.record(e)  # the last one before the wait
    b.wait(e)
    b.nop()
    settle()
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)


def test_E3_a_later_record_does_not_hold_an_earlier_wait(hold: Hold) -> None:
    # Probe C.
    a, b, e = hs.Stream(), hs.Stream(), hs.Event()
    first = hold(a)
    a.record(e)
    b.wait(e)
    b.nop()
    second = hold(a)
    a.record(e)
    first.open()
    b.synchronize(timeout=LIMIT)
    assert not e.query()
    second.open()
    e.synchronize(timeout=LIMIT)


def test_E3_a_record_on_another_stream_does_not_release_an_earlier_wait(hold: Hold, settle: Callable[[], None]) -> None:
    a, b, c, e = hs.Stream(), hs.Stream(), hs.Stream(), hs.Event()
    gate = hold(a)
    a.record(e)
    b.wait(e)
    b.nop()
    c.record(e)
    e.synchronize(timeout=LIMIT)  # the second record is done
    settle()
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)


def test_E3_one_event_can_be_used_again_and_again_between_two_streams() -> None:
    # Probe D.
    a, b, e, ran = hs.Stream(), hs.Stream(), hs.Event(), []
    for i in range(300):
        a.call(ran.append, 2 * i)
        a.record(e)
        b.wait(e)
        b.call(ran.append, 2 * i + 1)
        b.record(e)
        a.wait(e)
    a.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)
    assert ran == list(range(600))


def test_E4_record_overwrites(hold: Hold) -> None:
    # Probe B: the state is that of the last record.
    s, e = hs.Stream(), hs.Event()
    first = hold(s)
    s.record(e)
    between = s.record()
    second = hold(s)
    s.record(e)
    assert not e.query()
    first.open()
    between.synchronize(timeout=LIMIT)
    assert not e.query()
    with pytest.raises(hs.WaitTimeoutError):
        e.synchronize(timeout=0.01)
    second.open()
    e.synchronize(timeout=LIMIT)
    assert e.query()


def test_E4_a_completed_event_is_pending_after_the_next_record(hold: Hold) -> None:
    s, e = hs.Stream(), hs.Event()
    s.record(e)
    e.synchronize(timeout=LIMIT)
    assert e.query()
    gate = hold(s)
    s.record(e)
    assert not e.query()
    gate.open()
    e.synchronize(timeout=LIMIT)


def test_E5_elapsed_is_milliseconds_between_the_records() -> None:
    s = hs.Stream()
    start, end = hs.Event(timing=True), hs.Event(timing=True)
    s.record(start)
    s.delay(0.02)
    s.record(end)
    s.synchronize(timeout=LIMIT)
    # Twenty milliseconds of work, and far less than a thousand times that.
    assert 19.0 <= start.elapsed(end) < 10_000.0
    assert end.elapsed(start) == pytest.approx(-start.elapsed(end))
    assert start.elapsed(start) == 0.0


def test_E5_elapsed_names_each_error(hold: Hold) -> None:
    s = hs.Stream()
    timed, untimed, unrecorded = hs.Event(timing=True), hs.Event(), hs.Event(timing=True)
    s.record(timed)
    s.record(untimed)
    s.synchronize(timeout=LIMIT)
    for start, end in ((timed, untimed), (untimed, timed)):
        with pytest.raises(hs.TimingDisabledError):
            start.elapsed(end)
    for start, end in ((timed, unrecorded), (unrecorded, timed)):
        with pytest.raises(hs.UnrecordedError):
            start.elapsed(end)
    hold(s)
    pending = hs.Event(timing=True)
    s.record(pending)
    for start, end in ((timed, pending), (pending, timed)):
        with pytest.raises(hs.NotReadyError):
            start.elapsed(end)


def test_E5_elapsed_of_two_devices_is_an_error() -> None:
    a, b = hs.Stream(device=0), hs.Stream(device=1)
    start, end = hs.Event(timing=True), hs.Event(timing=True)
    a.record(start)
    b.record(end)
    a.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)
    with pytest.raises(hs.WrongDeviceError):
        start.elapsed(end)


def test_E6_many_threads_may_synchronize_one_event(hold: Hold) -> None:
    s, e = hs.Stream(), hs.Event()
    gate = hold(s)
    s.record(e)
    released, ready = [], threading.Barrier(9)

    def wait() -> None:
        ready.wait(LIMIT)
        e.synchronize(timeout=LIMIT)
        released.append(e.query())

    threads = [threading.Thread(target=wait) for _ in range(8)]
    for thread in threads:
        thread.start()
    ready.wait(LIMIT)
    assert released == []
    gate.open()
    for thread in threads:
        thread.join(LIMIT)
    assert released == [True] * 8


def test_E7_an_event_is_recorded_only_on_its_device() -> None:
    s0, s1 = hs.Stream(device=0), hs.Stream(device=1)
    bound = hs.Event(device=0)
    with pytest.raises(hs.WrongDeviceError):
        s1.record(bound)
    with pytest.raises(hs.WrongDeviceError):
        bound.record(s1)
    assert not bound.recorded
    s0.record(bound)
    late = hs.Event()
    late.record(s1)  # bound by its first record
    with pytest.raises(hs.WrongDeviceError):
        s0.record(late)


def test_E8_waiting_for_an_event_of_the_same_stream_does_nothing(hold: Hold) -> None:
    s = hs.Stream()
    gate = hold(s)
    e = s.record()
    s.wait(e)
    s.wait(s)
    gate.open()
    s.synchronize(timeout=LIMIT)


def test_E9_an_event_has_one_handle() -> None:
    s, e, other = hs.Stream(), hs.Event(), hs.Event()
    assert e.handle == 0, "it has no device yet"
    s.record(e)
    s.record(other)
    number = e.handle
    s.record(e)
    assert e.handle == number != other.handle and number > 2
    same = hs.Event.from_handle(number)
    assert same.handle == number
    s.synchronize()
    assert same.query()
