"""Streams: order within one and between two, priorities, waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]
Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_S1_work_on_one_stream_runs_in_the_order_of_the_calls() -> None:
    s, ran = hs.Stream(), []
    for i in range(500):
        s.call(ran.append, i)
        if i % 7 == 0:
            s.nop()
    s.synchronize(timeout=LIMIT)
    assert ran == list(range(500))


def test_S1_a_held_operation_holds_what_comes_after(hold: Hold, settle: Callable[[], None]) -> None:
    s, ran = hs.Stream(), []
    s.call(ran.append, "before")
    gate = hold(s)
    s.call(ran.append, "after")
    settle()
    assert "after" not in ran
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert ran == ["before", "after"]


def test_S2_a_held_stream_holds_no_other(hold: Hold) -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    hold(a)
    a.call(ran.append, "a")
    b.call(ran.append, "b")
    b.synchronize(timeout=LIMIT)
    assert ran == ["b"]
    assert not a.query()


@pytest.mark.needs("held-streams")
def test_S2_many_held_streams_do_not_delay_other_streams(hold: Hold) -> None:
    # More closed gates than there are engines or threads.
    for _ in range(200):
        hold(hs.Stream())
    b = hs.Stream()
    b.delay(0.001)
    b.synchronize(timeout=LIMIT)
    assert b.query()


@pytest.mark.needs("held-streams")
def test_S2_functions_that_block_do_not_delay_other_streams() -> None:
    let_go = threading.Event()
    blocked = [hs.Stream() for _ in range(12)]
    free, ran = hs.Stream(), threading.Event()
    try:
        for s in blocked:
            s.call(let_go.wait, 60)
        free.call(ran.set)
        free.synchronize(timeout=LIMIT)
        assert ran.is_set()
        assert not any(s.query() for s in blocked)
    finally:
        let_go.set()
    for s in blocked:
        s.synchronize(timeout=LIMIT)


def test_S3_query_of_held_work_is_false_at_once(hold: Hold) -> None:
    s = hs.Stream()
    assert s.query()
    gate = hold(s)
    # A query that waited would never come back: nobody opens the gate meanwhile.
    assert s.query() is False
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert s.query() is True


def test_S3_query_is_false_while_an_operation_runs() -> None:
    # Probe A: the operation runs, nothing holds it.
    s = hs.Stream()
    e = hs.Event()
    s.delay(0.3)
    s.record(e)
    assert s.query() is False
    assert e.query() is False
    s.synchronize(timeout=LIMIT)
    assert s.query() is True
    assert e.query() is True


def test_S3_query_is_false_while_a_function_runs() -> None:
    s, inside, let_go = hs.Stream(), threading.Event(), threading.Event()
    s.call(lambda: (inside.set(), let_go.wait(60)))
    assert inside.wait(LIMIT)
    try:
        assert s.query() is False
    finally:
        let_go.set()
    s.synchronize(timeout=LIMIT)
    assert s.query() is True


def fail(text: str) -> None:
    raise ValueError(text)


def test_S4_synchronize_raises_the_first_error_once(unraisable: list[Any]) -> None:
    s, ran = hs.Stream(), []
    s.call_checked(fail, "first")
    s.call_checked(fail, "second")
    s.call(ran.append, "later")
    with pytest.raises(ValueError, match="first"):
        s.synchronize(timeout=LIMIT)
    assert ran == ["later"]
    s.synchronize(timeout=LIMIT)  # reported, so forgotten
    assert s.query()


def test_S4_query_reports_the_error_too_and_only_once() -> None:
    s = hs.Stream()
    s.call_checked(fail, "seen by query")
    e = s.record()
    e.synchronize(timeout=LIMIT)
    with pytest.raises(ValueError, match="seen by query"):
        s.query()
    assert s.query()
    s.synchronize(timeout=LIMIT)


def test_S4_an_error_stays_on_its_stream() -> None:
    a, b = hs.Stream(), hs.Stream()
    a.call_checked(fail, "on a")
    b.wait(a)
    b.synchronize(timeout=LIMIT)
    with pytest.raises(ValueError, match="on a"):
        a.synchronize(timeout=LIMIT)


def test_S6_wait_for_a_stream_takes_its_work_so_far(hold: Hold, settle: Callable[[], None]) -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    first = hold(a)
    b.wait(a)
    later = hold(a)
    b.call(ran.append, "b")
    settle()
    assert ran == []
    first.open()
    b.synchronize(timeout=LIMIT)
    assert ran == ["b"]
    assert not a.query()
    later.open()


def test_S7_priorities_are_clamped_and_lower_is_more_urgent() -> None:
    least, greatest = hs.Device(0).priority_range
    assert (least, greatest) == (0, greatest) and greatest < 0
    for asked, got in [(0, 0), (-1, -1), (5, 0), (greatest, greatest), (greatest - 1, greatest), (-(2**70), greatest)]:
        assert hs.Stream(priority=asked).priority == got


def test_S7_the_most_urgent_ready_function_runs_first(child: Child) -> None:
    # One thread for functions; while it is taken, three more become ready.
    done = child(
        """
        import threading, time, halstream as hs
        ran, inside, let_go = [], threading.Event(), threading.Event()
        first = hs.Stream()
        first.call(lambda: (inside.set(), let_go.wait(20)))
        assert inside.wait(10)
        streams = {p: hs.Stream(priority=p) for p in (0, -3, -7, -1)}
        # One thread makes the functions of a driver ready, so the four are ready
        # once it comes to a fifth.
        streams["fifth"] = hs.Stream()
        for p, s in streams.items():
            s.call(ran.append, p)
            end = time.monotonic() + 10
            while "that need the host" in s.describe() and time.monotonic() < end:
                pass
        let_go.set()
        for s in streams.values():
            s.synchronize(timeout=10)
        assert ran == [-7, -3, -1, 0, "fifth"], ran
        """,
        env={"HALSTREAM_HOST_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.needs("engines")
def test_S7_the_most_urgent_ready_operation_takes_the_next_engine(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        door = hs.Stream()
        gate = hs.testing.Gate(door)
        opened = door.record()
        streams = {p: hs.Stream(priority=p) for p in (0, -3, -7, -1)}
        ends = {}
        for p, s in streams.items():
            s.wait(opened)
            s.delay(0.005)
            ends[p] = hs.Event(timing=True)
            s.record(ends[p])
        zero = hs.Event(timing=True)
        hs.Stream().record(zero)
        # Both engines are taken until all four are ready, and one of them for
        # longer than all that follows.
        for seconds in (1.0, 3.0):
            hs.Stream().delay(seconds)
        gate.open()
        for s in streams.values():
            s.synchronize(timeout=10)
        order = sorted(ends, key=lambda p: zero.elapsed(ends[p]))
        assert order == [-7, -3, -1, 0], order
        """,
        env={"HALSTREAM_HOST_ENGINES": "2"},
    )
    assert done.returncode == 0, done.stderr


def test_S8_a_wait_with_a_limit_names_what_it_waits_for(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    gate = hold(a)
    b.wait(a.record())
    for s in (a, b):
        with pytest.raises(hs.WaitTimeoutError) as caught:
            s.synchronize(timeout=0.02)
        assert "stream" in str(caught.value)
    assert "gate" in str(_timeout(a))
    gate.open()
    a.synchronize(timeout=LIMIT)  # the work went on
    b.synchronize(timeout=LIMIT)


@pytest.mark.needs("reasons")
def test_S8_a_wait_with_a_limit_names_the_event_that_its_stream_waits_for(hold: Hold) -> None:
    a, b = hs.Stream(), hs.Stream()
    hold(a)
    b.wait(a.record())
    assert "event" in str(_timeout(b))


def _timeout(stream: hs.Stream) -> hs.WaitTimeoutError:
    with pytest.raises(hs.WaitTimeoutError) as caught:
        stream.synchronize(timeout=0)
    return caught.value


@pytest.mark.parametrize("limit", [-1, -0.001, float("nan"), float("inf"), float("-inf")])
def test_S8_a_limit_is_a_finite_number_of_seconds(limit: float) -> None:
    for wait in (hs.Stream().synchronize, hs.Event().synchronize, hs.Device(0).synchronize):
        with pytest.raises(hs.InvalidValueError):
            wait(timeout=limit)


@pytest.mark.parametrize("limit", ["1", True, [1], object()])
def test_S8_a_limit_of_another_type_is_a_type_error(limit: Any) -> None:
    for wait in (hs.Stream().synchronize, hs.Event().synchronize, hs.Device(0).synchronize):
        with pytest.raises(TypeError):
            wait(timeout=limit)


def blocking_stream() -> hs.Stream:
    """Return a stream whose calls come back when their work is done (paddle's `blocking`)."""
    s = hs.Stream.__new__(hs.Stream)
    s._create(0, 0, hs._core.BLOCK_HOST)
    return s


def test_S9_each_enqueue_returns_when_the_work_is_done() -> None:
    s, e, ran = blocking_stream(), hs.Event(), []
    for i in range(50):
        s.call(ran.append, i)
        assert ran == list(range(i + 1))
        s.record(e)
        assert e.query() and s.query()
    s.delay(0.01)
    assert s.query()


def test_S9_it_waits_for_what_the_work_waits_for(hold: Hold) -> None:
    s, default, returned = blocking_stream(), hs.Device(0).default_stream, []
    gate = hold(default)

    def enqueue() -> None:
        s.nop()
        returned.append(True)

    thread = threading.Thread(target=enqueue)
    thread.start()
    # The work stands on the stream, the call that put it there has not come back.
    limit = time.monotonic() + LIMIT
    while s.query():
        assert time.monotonic() < limit
    assert returned == []
    gate.open()
    thread.join(LIMIT)
    assert returned == [True]
    assert s.query()


def test_S9_the_default_stream_waits_for_it_in_turn(hold: Hold) -> None:
    s, default = blocking_stream(), hs.Device(0).default_stream
    gate = hold(s)  # a gate comes back at once, or nobody could open it
    default.nop()
    assert not default.query()
    gate.open()
    default.synchronize(timeout=LIMIT)
