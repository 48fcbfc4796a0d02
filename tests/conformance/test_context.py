"""Contexts per thread, event kinds and report queues: what Ascend's model needs of the core."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import halstream as hs
import pytest
from halstream import _native, _records
from halstream._core import TIMING, _context
from halstream._core._context import KIND_FUTURE, KIND_RECORDED, NOT_WAITABLE, Context, ReportQueue

LIMIT = 10.0
Hold = Callable[[Any], Any]
R = TypeVar("R")

pytestmark = pytest.mark.usefixtures("backend")


def on_thread(function: Callable[[], R]) -> R:
    """Return what a function gives on a new thread; raise what it raises."""
    out: list[Any] = []

    def run() -> None:
        try:
            out.append((True, function()))
        except BaseException as exc:
            out.append((False, exc))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(30)
    [(fine, value)] = out
    if not fine:
        raise value
    return value  # type: ignore[no-any-return]


@pytest.fixture
def context(request: pytest.FixtureRequest) -> Iterator[Context]:
    """A context of device 0, current here; afterwards this thread has none."""
    made = Context(0)
    yield made
    for thing in (made,):
        try:
            thing.make_current()
            thing.destroy()
        except hs.HalError:
            pass


def test_A1_a_context_is_current_on_the_thread_that_made_it_only(context: Context) -> None:
    assert Context.current() == context
    with pytest.raises(hs.NoContextError):
        on_thread(Context.current)


def test_A1_streams_take_work_only_where_their_context_is_current(context: Context) -> None:
    s, default = context.stream(), context.default_stream
    for stream in (s, default):
        stream.nop()
        stream.synchronize(timeout=LIMIT)
        with pytest.raises(hs.NoContextError):
            on_thread(stream.nop)

    def elsewhere() -> None:
        other = Context(0)
        try:
            with pytest.raises(hs.WrongContextError):
                s.nop()
            context.make_current()
            s.nop()
        finally:
            other.destroy()

    on_thread(elsewhere)
    s.synchronize(timeout=LIMIT)


def test_A1_a_contexts_default_stream_is_outside_the_legacy_order(context: Context, hold: Hold) -> None:
    hold(hs.Device(0).default_stream)
    default, s = context.default_stream, context.stream()
    for stream in (default, s):
        stream.nop()
        stream.synchronize(timeout=LIMIT)
    gate = hs.testing.Gate(default)
    s.nop()
    s.synchronize(timeout=LIMIT)
    gate.open()


def test_A1_synchronizing_a_context_waits_for_its_streams(context: Context) -> None:
    s = context.stream()
    gate = hs.testing.Gate(s)
    with pytest.raises(hs.WaitTimeoutError):
        context.synchronize(timeout=0.02)
    gate.open()
    context.synchronize(timeout=LIMIT)
    assert s.query()


def test_A1_a_destroyed_context_ends_its_streams() -> None:
    context = Context(0)
    s = context.stream()
    s.nop()
    context.destroy()
    with pytest.raises(hs.HalError):
        s.nop()
    with pytest.raises(hs.NoContextError):
        Context.current()
    with pytest.raises(hs.HalError):
        context.make_current()


def test_A1_a_stream_of_a_destroyed_context_is_closed() -> None:
    context = Context(0)
    s, default = context.stream(), context.default_stream
    assert not s.closed
    context.destroy()
    assert s.closed
    assert default.closed
    s.close()  # again does nothing


def test_A2_a_wait_for_a_future_event_waits_for_its_record(context: Context, settle: Callable[[], None]) -> None:
    a, b, e = context.stream(), context.stream(), context.event(KIND_FUTURE)
    b.wait(e)
    b.nop()
    settle()
    assert not b.query()
    a.record(e)
    b.synchronize(timeout=LIMIT)


def test_A3_waiting_for_an_unrecorded_event_of_the_recorded_kind_is_an_error(context: Context) -> None:
    s, e = context.stream(), context.event(KIND_RECORDED)
    with pytest.raises(hs.UnrecordedError):
        s.wait(e)
    s.record(e)
    s.wait(e)
    s.synchronize(timeout=LIMIT)


def test_A3_an_event_can_be_made_that_no_stream_may_wait_for(context: Context) -> None:
    s, e = context.stream(), context.event(NOT_WAITABLE)
    s.record(e)
    with pytest.raises(hs.NotSupportedError):
        s.wait(e)
    e.synchronize(timeout=LIMIT)


def test_A4_reset_makes_later_waits_wait_again(context: Context, settle: Callable[[], None]) -> None:
    a, b, e = context.stream(), context.stream(), context.event(KIND_FUTURE)
    a.record(e)
    b.wait(e)
    _context.reset_event(b, e)
    b.synchronize(timeout=LIMIT)
    b.wait(e)
    b.nop()
    settle()
    assert not b.query()
    a.record(e)
    b.synchronize(timeout=LIMIT)


def test_A4_without_reset_a_future_event_stays_set(context: Context) -> None:
    a, b, e = context.stream(), context.stream(), context.event(KIND_FUTURE)
    a.record(e)
    for _ in range(3):
        b.wait(e)
        b.synchronize(timeout=LIMIT)


def test_A4_only_future_events_can_be_reset(context: Context) -> None:
    s = context.stream()
    for kind in (_context.KIND_STANDARD, KIND_RECORDED):
        with pytest.raises(hs.NotSupportedError):
            _context.reset_event(s, context.event(kind))


def test_A5_unrecorded_events_of_the_other_kinds_are_pending(context: Context) -> None:
    for kind in (KIND_FUTURE, KIND_RECORDED):
        e = context.event(kind)
        assert e.query() is False
        e.synchronize(timeout=LIMIT)  # but there is nothing to wait for
    assert context.event().query() is True


def test_A5_waits_pending_counts_the_waits_not_passed(context: Context) -> None:
    a, b, c = context.stream(), context.stream(), context.stream()
    e = context.event(KIND_RECORDED)
    gate = hs.testing.Gate(a)
    a.record(e)
    assert _context.waits_pending(e) == 0
    b.wait(e)
    c.wait(e)
    assert _context.waits_pending(e) == 2
    gate.open()
    b.synchronize(timeout=LIMIT)
    c.synchronize(timeout=LIMIT)
    assert _context.waits_pending(e) == 0
    with pytest.raises(hs.NotSupportedError):
        _context.waits_pending(context.event())


def test_A6_a_wait_with_a_limit_lets_the_stream_go_on_with_an_error(context: Context) -> None:
    s, e, ran = context.stream(), context.event(KIND_FUTURE), []
    _context.wait_limited(s, e, 0.05)
    s.call(ran.append, 1)
    with pytest.raises(hs.WaitTimeoutError, match="event"):
        s.synchronize()
    assert ran == [1]
    s.synchronize(timeout=LIMIT)
    assert s.query()


def test_A6_a_wait_that_ends_in_time_leaves_no_error(context: Context) -> None:
    a, s, e = context.stream(), context.stream(), context.event(KIND_FUTURE)
    _context.wait_limited(s, e, 60)
    a.record(e)
    s.synchronize(timeout=LIMIT)


def test_A6_the_limit_begins_when_the_wait_is_at_the_head_of_its_stream(context: Context) -> None:
    for limit in (0.2, 1.0, 5.0):  # on a machine that is busy the record may be late for a short one
        try:
            _let_most_of_a_limit_pass(context, limit)
        except hs.WaitTimeoutError:
            continue
        return
    pytest.fail("the limit began before")


def _let_most_of_a_limit_pass(context: Context, limit: float) -> None:
    a, s, e, before = context.stream(), context.stream(), context.event(KIND_FUTURE), context.event()
    gate = hs.testing.Gate(s)
    s.record(before)
    _context.wait_limited(s, e, limit)
    with pytest.raises(hs.WaitTimeoutError):
        s.synchronize(timeout=1.1 * limit)
    gate.open()
    before.synchronize(timeout=LIMIT)
    # The limit is over since the call, and most of it is left since the head.
    a.delay(0.1 * limit)
    a.record(e)
    s.synchronize(timeout=LIMIT)


def test_A7_a_timestamp_needs_a_completed_record_with_timing(context: Context) -> None:
    s = context.stream()
    first, second = context.event(TIMING), context.event(TIMING)
    with pytest.raises(hs.UnrecordedError):
        _context.timestamp_us(first)
    s.record(first)
    s.delay(0.01)
    s.record(second)
    s.synchronize(timeout=LIMIT)
    assert _context.timestamp_us(second) - _context.timestamp_us(first) >= 9_500
    untimed = context.event()
    s.record(untimed)
    s.synchronize(timeout=LIMIT)
    with pytest.raises(hs.TimingDisabledError):
        _context.timestamp_us(untimed)


@pytest.mark.needs("abort")
def test_A8_abort_drops_what_has_not_begun(context: Context, settle: Callable[[], None]) -> None:
    s, ran = context.stream(), []
    gate = hs.testing.Gate(s)
    for i in range(5):
        s.call(ran.append, i)
    assert _context.abort(s) >= 5
    s.synchronize(timeout=LIMIT)
    settle()
    assert ran == []
    gate.open()
    s.call(ran.append, "after")
    s.synchronize(timeout=LIMIT)
    assert ran == ["after"]


@pytest.mark.needs("abort")
def test_A8_abort_lets_a_running_function_end(context: Context) -> None:
    s, ran, inside, let_go = context.stream(), [], threading.Event(), threading.Event()

    def running() -> None:
        inside.set()
        let_go.wait(30)
        ran.append("ended")

    s.call(running)
    s.call(ran.append, "dropped")
    assert inside.wait(LIMIT)
    assert _context.abort(s) >= 1
    assert not s.query()
    let_go.set()
    s.synchronize(timeout=LIMIT)
    assert ran == ["ended"]


@pytest.mark.needs("abort")
def test_A8_an_abort_is_heard_by_a_thread_that_is_about_to_handle_signals(context: Context) -> None:
    s, heard = context.stream(), []
    hs.testing.Gate(s)

    def wait() -> None:
        try:
            s.synchronize()
        except hs.HalError as exc:
            heard.append(exc)

    waiting = threading.Thread(target=wait)
    usual = sys.getswitchinterval()
    waiting.start()
    try:
        # Between two parts of its wait the other thread needs the lock of Python, which
        # this one keeps from here on.
        sys.setswitchinterval(100)
        end = time.monotonic() + LIMIT
        while not _records.decode(_native.stall_waits()) and time.monotonic() < end:
            pass
        _context.abort(s)
    finally:
        sys.setswitchinterval(usual)
        waiting.join(LIMIT)
    assert [type(exc) for exc in heard] == [hs.AbortedError]


@pytest.fixture
def unused_primary() -> None:
    """No user of device 0's primary context is left by what ran before in this process."""
    with contextlib.suppress(hs.InvalidValueError):  # there was none
        on_thread(lambda: _context.release_primary(0, force=True))


@pytest.mark.usefixtures("unused_primary")
def test_A9_the_primary_context_is_shared_by_counting() -> None:
    def work() -> None:
        first = Context.primary(0)
        assert Context.primary(0) == first
        with pytest.raises(hs.InvalidValueError):
            first.destroy()
        _context.release_primary(0)
        assert Context.current() == first  # one user is left
        s = first.stream()
        s.nop()
        _context.release_primary(0)
        with pytest.raises(hs.NoContextError):
            Context.current()
        with pytest.raises(hs.InvalidValueError):
            _context.release_primary(0)

    on_thread(work)


def test_A9_release_with_force_ends_it_for_all() -> None:
    def work() -> None:
        Context.primary(1)
        Context.primary(1)
        _context.release_primary(1, force=True)
        with pytest.raises(hs.NoContextError):
            Context.current()

    on_thread(work)


def test_A10_callbacks_run_on_the_thread_that_calls_process_report(context: Context) -> None:
    s, queue, ran = context.stream(), ReportQueue(), []
    queue.subscribe(s)
    s.nop()
    queue.launch(s, lambda: ran.append(threading.get_ident()), block=True)
    s.nop()

    def serve() -> int:
        queue.process(LIMIT)
        return threading.get_ident()

    who = on_thread(serve)
    s.synchronize(timeout=LIMIT)
    assert ran == [who]
    queue.unsubscribe(s)


def test_A10_a_blocking_report_holds_the_stream_and_a_passing_one_does_not(
    context: Context, settle: Callable[[], None]
) -> None:
    s, queue, ran = context.stream(), ReportQueue(), []
    queue.subscribe(s)
    queue.launch(s, lambda: ran.append("passing"), block=False)
    s.synchronize(timeout=LIMIT)  # done, though nobody asked for the report yet
    queue.launch(s, lambda: ran.append("blocking"), block=True)
    settle()
    assert not s.query()
    queue.process(LIMIT)
    while len(ran) < 2:
        queue.process(LIMIT)
    s.synchronize(timeout=LIMIT)
    assert ran == ["passing", "blocking"]
    queue.unsubscribe(s)


def test_A10_a_stream_has_one_subscriber(context: Context) -> None:
    s, queue = context.stream(), ReportQueue()
    with pytest.raises(hs.NotSubscribedError):
        queue.launch(s, print, block=False)
    with pytest.raises(hs.NotSubscribedError):
        queue.unsubscribe(s)
    queue.subscribe(s)
    with pytest.raises(hs.NotSubscribedError):
        ReportQueue().subscribe(s)
    with pytest.raises(hs.WaitTimeoutError):
        queue.process(0.01)
    queue.unsubscribe(s)


def test_A10_functions_that_are_no_reports_run_beside_a_subscription(context: Context) -> None:
    s, other, queue, ran = context.stream(), context.stream(), ReportQueue(), []
    queue.subscribe(s)
    s.call(ran.append, "call")
    s.synchronize(timeout=LIMIT)
    assert ran == ["call"]
    with pytest.raises(hs.NotSubscribedError):
        _context.host_function(s, ran.append, 1)
    _context.host_function(other, ran.append, "host function")
    other.synchronize(timeout=LIMIT)
    assert ran == ["call", "host function"]
    with pytest.raises(hs.NotSubscribedError):
        queue.subscribe(other)
    queue.unsubscribe(s)


def test_A10_a_closed_stream_leaves_its_queue(context: Context) -> None:
    s, queue = context.stream(), ReportQueue()
    queue.subscribe(s)
    assert ReportQueue.of(s) is queue
    assert not queue.unused
    s.close()
    assert queue.unused


def test_A10_a_queue_is_in_use_until_its_reports_have_ended(context: Context) -> None:
    s, queue, seen = context.stream(), ReportQueue(), []
    queue.subscribe(s)
    gate = _context.gate(s)
    queue.launch(s, lambda: seen.append(queue.unused), block=False)
    queue.unsubscribe(s)
    assert not queue.unused  # the stream has not come to the report
    _context.open_gate(gate)
    queue.process(LIMIT)
    assert seen == [False]
    assert queue.unused


def test_A10_functions_of_reports_may_call_the_runtime(context: Context) -> None:
    s, other, queue, ran = context.stream(), hs.Stream(), ReportQueue(), []
    queue.subscribe(s)

    def report() -> None:
        other.nop()
        other.synchronize(timeout=LIMIT)
        ran.append(other.query())

    queue.launch(s, report, block=True)
    queue.process(LIMIT)
    s.synchronize(timeout=LIMIT)
    assert ran == [True]
    queue.unsubscribe(s)
