"""Events that only stand for a place of a busy stream's timeline, until the core has to know them."""

from __future__ import annotations

import contextlib
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


def waits(s: hs.Stream, e: hs.Event) -> list[int]:
    """Let a stream wait for an event, and return a list to which it appends after that."""
    out: list[int] = []
    s.wait(e)
    s.call(out.append, 1)
    return out


def test_E1_a_wait_for_a_record_on_a_stream_that_was_closed_since(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    e = a.record()
    a.close()
    out = waits(b, e)
    assert not e.query()
    assert not b.query()
    assert not out
    gate.open()
    b.synchronize(timeout=LIMIT)
    assert out == [1]
    assert e.query()


def test_E1_a_wait_for_a_record_on_a_stream_of_another_device(hold: Hold) -> None:
    if hs.device_count() < 2:
        pytest.skip("needs two devices: this backend has one")
    a, b = hs.Stream(0), hs.Stream(1)
    gate = hold(a)
    e = a.record()
    out = waits(b, e)
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)
    assert out == [1]


@pytest.mark.parametrize("closed", [False, True])
def test_E4_the_id_of_an_event_names_its_record_on_a_busy_stream(hold: Hold, closed: bool) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    e = a.record()
    a.nop()
    if closed:
        a.close()
    other = hs.Event.from_handle(e.handle)
    assert other.recorded
    assert not other.query()
    out = waits(b, other)
    with pytest.raises(hs.WaitTimeoutError):
        other.synchronize(timeout=0.001)
    assert not out
    gate.open()
    other.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)
    assert out == [1]
    assert e.query()
    assert other.query()


def test_E4_synchronize_of_a_record_on_a_busy_stream_returns_at_its_end(hold: Hold) -> None:
    s = hs.Stream()
    first = hold(s)
    e = s.record()
    second = hold(s)
    began = threading.Event()

    def open_first() -> None:
        began.wait(LIMIT)
        first.open()

    thread = threading.Thread(target=open_first)
    thread.start()
    began.set()
    e.synchronize()
    assert not s.query()
    assert e.query()
    thread.join(LIMIT)
    second.open()
    s.synchronize(timeout=LIMIT)


def test_E3_a_record_does_not_stand_for_functions_that_are_added_later() -> None:
    s = hs.Stream()
    started, go_on = threading.Event(), threading.Event()

    def hold_the_stream() -> None:
        started.set()
        assert go_on.wait(LIMIT)

    later = threading.Event()
    s.call(hold_the_stream)
    assert started.wait(LIMIT)
    s.call(lambda: None)
    e = s.record()
    s.call(later.wait, LIMIT)
    assert not e.query()
    go_on.set()
    e.synchronize(timeout=LIMIT)
    assert not s.query()
    later.set()
    s.synchronize(timeout=LIMIT)


def test_E3_a_wait_under_a_listener_keeps_the_record_that_was_made_before_it(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    e = a.record()
    with hs.testing.Trace():
        out = waits(b, e)
        assert not e.query()
        a.record(e)
        assert not out
        gate.open()
        b.synchronize(timeout=LIMIT)
        a.synchronize(timeout=LIMIT)
    assert out == [1]
    assert e.query()


def test_E3_a_record_that_the_core_knows_gives_way_to_one_that_it_does_not(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    first = hold(a)
    e = a.record()
    with contextlib.suppress(hs.WaitTimeoutError):
        e.synchronize(timeout=0)
    out = waits(b, e)
    second = hold(a)
    a.record(e)
    first.open()
    b.synchronize(timeout=LIMIT)
    assert out == [1]
    assert not e.query()
    second.open()
    a.synchronize(timeout=LIMIT)
    assert e.query()


def test_L5_events_of_busy_streams_leave_nothing_behind(hold: Hold) -> None:
    s, t = hs.Stream(), hs.Stream()
    gc.collect()
    hs._core.drain()
    before = _native.live()
    gate = hold(s)
    for _ in range(200):
        t.wait(s.record())
    events = [s.record() for _ in range(200)]
    assert _native.live() >= before + 200
    del events
    gate.open()
    s.synchronize(timeout=LIMIT)
    t.synchronize(timeout=LIMIT)
    del gate
    gc.collect()
    hs._core.drain()
    assert _native.live() == before


@pytest.mark.needs("reasons")
def test_O2_a_wait_names_the_record_that_it_waits_for(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    a.nop()
    b.wait(a.record())
    text = b.describe()
    assert "a wait for event" in text
    assert f"stream {a.index} of device 0" in text
    gate.open()
    b.synchronize(timeout=LIMIT)
