"""mindspore: what streams and events order, held by gates."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from halstream.mindspore import hal

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
Hold = Callable[[Any], Any]


@pytest.mark.row(5)
def test_a_stream_with_work_pending_is_not_done(hold: Hold) -> None:
    s = hal.Stream()
    with hal.StreamCtx(s):
        hold(s)
        assert not s.query()


@pytest.mark.row(6, 7)
def test_a_synchronized_stream_is_done(hold: Hold) -> None:
    s = hal.Stream()
    gate = hold(s)
    assert s.query() is False
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert s.query() is True


@pytest.mark.row(8)
def test_wait_stream_orders_two_products(hold: Hold) -> None:
    a = np.arange(9.0).reshape(3, 3)
    b, c = np.zeros((3, 3)), np.zeros((3, 3))
    s1, s2 = hal.Stream(), hal.Stream()
    gate = hold(s1)
    s1.call(np.matmul, a, a, out=b)
    s2.wait_stream(s1)
    s2.call(np.matmul, b, b, out=c)
    assert s2.query() is False
    gate.open()
    hal.synchronize()
    assert np.allclose(b, a @ a)
    assert np.allclose(c, a @ a @ a @ a)


@pytest.mark.row(9)
def test_record_and_wait_event_order_two_products(hold: Hold) -> None:
    a = np.arange(9.0).reshape(3, 3)
    b, c = np.zeros((3, 3)), np.zeros((3, 3))
    s1, s2, ev = hal.Stream(), hal.Stream(), hal.Event()
    gate = hold(s1)
    s1.call(np.matmul, a, a, out=b)
    ev.record(s1)
    s2.wait_event(ev)
    s2.call(np.matmul, b, b, out=c)
    assert ev.query() is False
    gate.open()
    hal.synchronize()
    assert ev.query() is True
    assert np.allclose(c, a @ a @ a @ a)


@pytest.mark.row(16)
def test_events_work_outside_any_context(hold: Hold) -> None:
    s1, s2 = hal.Stream(), hal.Stream()
    gate = hold(s1)
    s2.wait_event(s1.record_event())
    assert s2.query() is False
    gate.open()
    s2.synchronize(timeout=LIMIT)
    assert s1.query() is True


@pytest.mark.row(13)
def test_current_and_default_stream_record_outside_any_context() -> None:
    for e in (hal.current_stream().record_event(), hal.default_stream().record_event()):
        assert type(e) is hal.Event
        e.synchronize(timeout=LIMIT)
        assert e.query() is True


@pytest.mark.row(21)
def test_a_hundred_waits_for_one_held_stream(hold: Hold) -> None:
    other = hal.Stream()
    gate = hold(other)
    current = hal.Stream()
    with hal.StreamCtx(current):
        for _ in range(100):
            current.wait_stream(other)
            current.record_event()
        done = current.record_event()
    for _ in range(100):
        event = current.record_event()
        with hal.StreamCtx(other):
            other.wait_event(event)
    assert done.query() is False
    gate.open()
    hal.synchronize()
    assert done.query() is True
    assert other.query() is True


@pytest.mark.row(33)
def test_record_event_refuses_what_is_no_event() -> None:
    s = hal.Stream()
    for value in (5, s, "x", 1.5):
        with pytest.raises(TypeError) as info:
            s.record_event(value)
        text = f"For 'record_event', the argument 'event' should be Event, but got {type(value)}."
        assert str(info.value) == text


@pytest.mark.row(34)
def test_record_event_returns_what_it_was_given() -> None:
    s, e = hal.Stream(), hal.Event()
    assert s.record_event(e) is e
    assert s.record_event(event=e) is e


@pytest.mark.row(35)
def test_a_new_event_of_record_event_has_no_timing() -> None:
    s = hal.Stream()
    a, b = s.record_event(), s.record_event(None)
    assert a is not b
    s.synchronize(timeout=LIMIT)
    with pytest.raises(RuntimeError):
        a.elapsed_time(b)


@pytest.mark.row(36, 37)
@pytest.mark.parametrize("method", ["wait_event", "wait_stream"])
def test_waits_refuse_what_they_do_not_wait_for(method: str) -> None:
    s = hal.Stream()
    argument, expected, wrong = {
        "wait_event": ("event", "Event", s),
        "wait_stream": ("stream", "Stream", hal.Event()),
    }[method]
    for value in (None, 1, wrong):
        with pytest.raises(TypeError) as info:
            getattr(s, method)(value)
        assert str(info.value) == (
            f"For '{method}', the argument '{argument}' should be {expected}, but got {type(value)}."
        )


@pytest.mark.row(38)
def test_a_stream_may_wait_for_itself(hold: Hold) -> None:
    s = hal.Stream()
    gate = hold(s)
    s.wait_stream(s)
    gate.open()
    s.synchronize(timeout=LIMIT)


@pytest.mark.row(39)
def test_waiting_for_an_event_never_recorded_does_nothing() -> None:
    s = hal.Stream()
    assert s.wait_event(hal.Event()) is None
    s.nop()
    s.synchronize(timeout=LIMIT)


@pytest.mark.row(40)
def test_waits_return_while_what_they_wait_for_is_pending(hold: Hold) -> None:
    s1, s2 = hal.Stream(), hal.Stream()
    gate = hold(s1)
    e = s1.record_event()
    assert s2.wait_event(e) is None
    assert s2.wait_stream(s1) is None
    assert e.wait(s2) is None
    assert s1.query() is False
    assert s2.query() is False
    gate.open()
    assert s2.synchronize(timeout=LIMIT) is None


def test_wait_stream_covers_only_what_was_enqueued_before(hold: Hold) -> None:
    s1, s2 = hal.Stream(), hal.Stream()
    s2.wait_stream(s1)
    hold(s1)
    s2.synchronize(timeout=LIMIT)
    assert s1.query() is False


@pytest.mark.row(66)
def test_an_event_waited_for_on_its_own_stream_does_not_hang(hold: Hold) -> None:
    s, ev = hal.Stream(), hal.Event()
    with hal.StreamCtx(s):
        gate = hold(s)
        ev.record()
        ev.wait()
        gate.open()
        s.synchronize(timeout=LIMIT)
    assert ev.query() is True


@pytest.mark.row(67)
def test_blocking_events_order_a_copy_stream_and_a_compute_stream(hold: Hold) -> None:
    copying, compute = hal.Stream(), hal.Stream()
    ready = hal.Event(blocking=True)
    source, target = np.ones(4), np.zeros(4)
    gate = hold(copying)
    copying.call(np.copyto, target, source)
    ready.record(copying)
    ready.wait(compute)
    compute.call(np.multiply, target, 2.0, out=target)
    assert compute.query() is False
    gate.open()
    compute.synchronize(timeout=LIMIT)
    assert target.tolist() == [2.0] * 4


@pytest.mark.row(63)
def test_events_recorded_and_waited_for_in_contexts(hold: Hold) -> None:
    a = np.arange(4.0).reshape(2, 2)
    b, c = np.zeros((2, 2)), np.zeros((2, 2))
    s1, s2, ev1, ev2 = hal.Stream(), hal.Stream(), hal.Event(), hal.Event()
    gate = hold(s1)
    with hal.StreamCtx(s1):
        s1.call(np.matmul, a, a, out=b)
        ev1.record()
    with hal.StreamCtx(s2):
        ev1.wait()
        s2.call(np.matmul, b, b, out=c)
        ev2.record()
    ev2.wait()
    assert ev2.query() is False
    assert hal.current_stream().query() is False
    gate.open()
    ev2.synchronize(timeout=LIMIT)
    assert ev1.query() is True
    assert ev2.query() is True
    assert np.allclose(c, a @ a @ a @ a)


@pytest.mark.row(68)
def test_the_default_stream_waits_for_an_event_of_another(hold: Hold) -> None:
    c, d = np.zeros(2), np.zeros(2)
    s1, event = hal.Stream(), hal.Event()
    gate = hold(s1)
    with hal.StreamCtx(s1):
        s1.call(np.copyto, c, 2.0)
        event.record()
    event.wait()
    hal.default_stream().call(np.add, c, 2.0, out=d)
    assert hal.default_stream().query() is False
    gate.open()
    hal.synchronize()
    assert d.tolist() == [4.0, 4.0]


@pytest.mark.row(105)
def test_the_host_may_stand_between_two_streams(hold: Hold) -> None:
    c, d, e = np.ones(2), np.zeros(2), np.zeros(2)
    s1, s2 = hal.Stream(), hal.Stream()
    start, end = hal.Event(enable_timing=True), hal.Event(enable_timing=True)
    gate = hold(s1)
    with hal.StreamCtx(s1):
        s1.call(np.copyto, d, 2.0)
        start.record()
    hal.default_stream().call(np.add, c, 2.0, out=c)
    end.record()
    with hal.StreamCtx(s2):
        assert start.query() is False
        gate.open()
        start.synchronize(timeout=LIMIT)
        end.synchronize(timeout=LIMIT)
        s2.call(np.add, c, d, out=e)
    hal.synchronize()
    assert e.tolist() == [5.0, 5.0]
    assert isinstance(start.elapsed_time(end), float)


@pytest.mark.row(102)
def test_a_side_stream_copies_while_the_current_stream_computes(hold: Hold) -> None:
    saved: list[int] = []
    saver = hal.Stream()
    gate = hold(saver)
    with hal.StreamCtx(saver):
        saver.call(saved.append, 1)
    current = hal.Stream()
    current.nop()
    current.synchronize(timeout=LIMIT)
    assert saved == []
    gate.open()
    hal.synchronize()
    assert saved == [1]


def test_synchronize_waits_for_every_stream(hold: Hold) -> None:
    streams = [hal.Stream() for _ in range(4)]
    gates = [hold(s) for s in streams]
    assert not any(s.query() for s in streams)
    for gate in gates:
        gate.open()
    assert hal.synchronize() is None
    assert all(s.query() for s in streams)


def test_the_private_drain_waits_for_every_stream(hold: Hold) -> None:
    from halstream.mindspore.common.api import _pynative_executor

    s = hal.Stream()
    gate = hold(s)
    gate.open()
    _pynative_executor.sync()
    assert s.query() is True


@pytest.mark.row(49)
@pytest.mark.parametrize("function", ["synchronize", "current_stream", "default_stream", "communication_stream"])
def test_functions_without_parameters_take_none(function: str) -> None:
    text = re.escape(f"{function}() takes 0 positional arguments but 1 was given")
    with pytest.raises(TypeError, match=text):
        getattr(hal, function)(0)
