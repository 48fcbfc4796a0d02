"""Python functions on streams."""

from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream._core._context import Context, ReportQueue

LIMIT = 10.0
Hold = Callable[[Any], Any]
Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_H1_each_function_runs_exactly_once_and_in_order() -> None:
    streams = [hs.Stream() for _ in range(4)]
    ran: list[list[int]] = [[] for _ in streams]
    for i in range(300):
        for s, out in zip(streams, ran, strict=True):
            s.call(out.append, i)
    for s in streams:
        s.synchronize(timeout=LIMIT)
    assert ran == [list(range(300))] * 4


def test_H1_functions_enqueued_by_many_threads_all_run_once() -> None:
    s, ran = hs.Stream(), []
    threads = [threading.Thread(target=lambda k=k: [s.call(ran.append, (k, i)) for i in range(100)]) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    s.synchronize(timeout=LIMIT)
    assert sorted(ran) == [(k, i) for k in range(8) for i in range(100)]
    for k in range(8):
        assert [i for who, i in ran if who == k] == list(range(100))


def test_H1_a_function_runs_on_another_thread_with_its_arguments() -> None:
    s, seen = hs.Stream(), []
    s.call(lambda *a, **k: seen.append((a, k, threading.get_ident())), 1, "two", three=3)
    s.synchronize(timeout=LIMIT)
    [(args, kwargs, thread)] = seen
    assert (args, kwargs) == ((1, "two"), {"three": 3})
    assert thread != threading.get_ident()


def test_H1_arguments_live_until_the_function_has_run_and_no_longer(hold: Hold) -> None:
    class Thing:
        pass

    s, thing = hs.Stream(), Thing()
    alive = weakref.ref(thing)
    gate = hold(s)
    s.call(lambda t: None, thing)
    del thing
    gc.collect()
    assert alive() is not None
    gate.open()
    s.synchronize(timeout=LIMIT)
    # The dispatcher lets go right after it reported; another function comes after that.
    s.call(lambda: None)
    s.synchronize(timeout=LIMIT)
    gc.collect()
    assert alive() is None


def broken(text: str) -> None:
    raise LookupError(text)


def test_H2_an_exception_is_reported_counted_and_later_work_runs(unraisable: list[Any]) -> None:
    s, ran = hs.Stream(), []
    s.call(broken, "lost key")
    s.call(ran.append, "later")
    s.synchronize(timeout=LIMIT)  # an unchecked function's error is not the stream's
    assert ran == ["later"]
    assert s.failures == 1
    [report] = unraisable
    assert report.type is LookupError
    assert report.message == "lost key"
    assert "in broken" in report.traceback


def test_H2_a_checked_function_raises_its_own_exception_at_synchronize(unraisable: list[Any]) -> None:
    s = hs.Stream()
    error = LookupError("kept")

    def fail() -> None:
        raise error

    s.call_checked(fail)
    with pytest.raises(LookupError) as caught:
        s.synchronize(timeout=LIMIT)
    assert caught.value is error
    assert unraisable == []
    assert s.failures == 1


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_H2_exceptions_that_end_programs_do_not_end_the_dispatcher(
    kind: type[BaseException], unraisable: list[Any]
) -> None:
    s, ran = hs.Stream(), []

    def leave() -> None:
        raise kind

    s.call(leave)
    s.call(ran.append, 1)
    s.synchronize(timeout=LIMIT)
    assert ran == [1]
    assert [report.type for report in unraisable] == [kind]


FORBIDDEN: dict[str, Callable[[hs.Stream, hs.Event], object]] = {
    "synchronize": lambda s, e: s.synchronize(),
    "synchronize with a limit": lambda s, e: s.synchronize(timeout=1.0),
    "query": lambda s, e: s.query(),
    "record": lambda s, e: s.record(e),
    "wait": lambda s, e: s.wait(e),
    "call": lambda s, e: s.call(print),
    "nop": lambda s, e: s.nop(),
    "event query": lambda s, e: e.query(),
    "event synchronize": lambda s, e: e.synchronize(),
    "new stream": lambda s, e: hs.Stream(),
    "new event": lambda s, e: hs.Event(device=0),
    "device": lambda s, e: hs.synchronize(0),
    "gate": lambda s, e: hs.testing.Gate(s),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_H3_a_function_may_not_call_the_runtime(name: str) -> None:
    s, other, e = hs.Stream(), hs.Stream(), hs.Event(device=0)
    caught: list[BaseException] = []

    def call() -> None:
        try:
            FORBIDDEN[name](other, e)
        except BaseException as exc:
            caught.append(exc)

    s.call(call)
    s.synchronize(timeout=LIMIT)
    assert [type(exc) for exc in caught] == [hs.CallInHostFunctionError]
    assert "function" in str(caught[0])
    other.synchronize(timeout=LIMIT)


def test_H3_a_function_may_not_take_a_report() -> None:
    context = Context(0)
    queue, reported = ReportQueue(), context.stream()
    queue.subscribe(reported)
    ran: list[str] = []
    queue.launch(reported, lambda: ran.append("report"), block=True)
    s, caught = hs.Stream(), []

    def call() -> None:
        try:
            queue.process(LIMIT)
        except BaseException as exc:
            caught.append(exc)

    s.call(call)
    s.synchronize(timeout=LIMIT)
    assert [type(exc) for exc in caught] == [hs.CallInHostFunctionError]
    assert ran == []
    queue.process(LIMIT)
    reported.synchronize(timeout=LIMIT)
    assert ran == ["report"]
    queue.unsubscribe(reported)
    context.destroy()


def test_H3_a_function_may_open_a_gate(hold: Hold) -> None:
    held, s = hs.Stream(), hs.Stream()
    gate = hold(held)
    s.call(gate.open)
    held.synchronize(timeout=LIMIT)
    assert gate.opened


def test_H4_pending_functions_run_after_close(hold: Hold) -> None:
    s, ran, done = hs.Stream(), [], threading.Event()
    gate = hold(s)
    for i in range(10):
        s.call(ran.append, i)
    s.call(done.set)
    s.close()
    assert ran == []
    gate.open()
    assert done.wait(LIMIT)
    assert ran == list(range(10))


def test_H4_pending_functions_run_after_the_stream_was_collected(hold: Hold) -> None:
    s, ran, done = hs.Stream(), [], threading.Event()
    gate = hs.testing.Gate(s)
    s.call(ran.append, 1)
    s.call(done.set)
    del s
    gc.collect()
    hs.Stream().synchronize(timeout=LIMIT)  # an ordinary call, which closes what was collected
    assert ran == []
    gate.open()
    assert done.wait(LIMIT)
    assert ran == [1]


@pytest.mark.needs("held-streams")
def test_H5_below_the_limit_there_is_a_thread_for_the_next_function() -> None:
    let_go, inside = threading.Event(), threading.Semaphore(0)
    streams = [hs.Stream(non_blocking=True) for _ in range(20)]
    try:
        for s in streams:
            s.call(lambda: (inside.release(), let_go.wait(60)))
        # All twenty are inside at the same time.
        for _ in streams:
            assert inside.acquire(timeout=LIMIT)
    finally:
        let_go.set()
    for s in streams:
        s.synchronize(timeout=LIMIT)


def test_H5_at_the_limit_the_most_urgent_runs_first_and_holders_are_named(child: Child) -> None:
    done = child(
        """
        import threading, halstream as hs
        let_go, inside, ran = threading.Event(), threading.Semaphore(0), []
        holders = [hs.Stream() for _ in range(3)]
        for s in holders:
            s.call(lambda: (inside.release(), let_go.wait(20)))
        for s in holders:
            assert inside.acquire(timeout=10)
        late = {p: hs.Stream(priority=p) for p in (0, -2, -7)}
        for p, s in late.items():
            s.call(ran.append, p)
        try:
            late[0].synchronize(timeout=0.05)
        except hs.WaitTimeoutError as exc:
            # The text says that all threads are taken, and by whom.
            assert "3 threads" in str(exc), exc
            assert all(f"stream {s.index}" in str(exc) for s in holders), exc
        else:
            raise SystemExit("no timeout")
        assert ran == []
        let_go.set()
        for s in late.values():
            s.synchronize(timeout=10)
        assert sorted(ran) == [-7, -2, 0]
        """,
        env={"HALSTREAM_HOST_THREADS": "3"},
    )
    assert done.returncode == 0, done.stderr


def look_at_the_frames_of_other_threads() -> None:
    """Do what a debugger does, and a report of what a program waits for."""
    for ident, frame in sys._current_frames().items():
        at = frame if ident != threading.get_ident() else None
        while at is not None:
            assert at.f_locals is not None
            at = at.f_back


def test_arguments_are_released_although_the_frame_was_inspected() -> None:
    class Argument:
        pass

    argument = Argument()
    gone = weakref.ref(argument)
    inside, leave = threading.Event(), threading.Event()

    def function(_: Argument) -> None:
        inside.set()
        leave.wait(LIMIT)

    stream = hs.Stream()
    stream.call(function, argument)
    assert inside.wait(LIMIT)
    look_at_the_frames_of_other_threads()
    leave.set()
    stream.synchronize(LIMIT)
    del argument
    gc.collect()
    assert gone() is None


def test_H2_each_exception_of_a_checked_function_is_raised_or_reported_once(unraisable: list[Any]) -> None:
    s = hs.Stream()
    for i in range(5):
        s.call_checked(broken, str(i))
    with pytest.raises(LookupError, match=r"^0$"):
        s.synchronize(timeout=LIMIT)
    dispatch_until(lambda: len(unraisable) >= 4)
    assert sorted(report.message for report in unraisable) == ["1", "2", "3", "4"]


def test_H2_exceptions_of_checked_functions_of_a_closed_stream_are_reported(unraisable: list[Any]) -> None:
    s = hs.Stream()
    s.call_checked(broken, "kept by the stream")
    e = s.record()
    e.synchronize(timeout=LIMIT)
    with hs.testing.Gate(s):
        s.call_checked(broken, "after the close")
        s.close()
    dispatch_until(lambda: len(unraisable) >= 2)
    assert sorted(report.message for report in unraisable) == ["after the close", "kept by the stream"]


def test_H2_checked_exceptions_that_are_not_read_keep_no_objects_alive(unraisable: list[Any]) -> None:
    class Held:
        pass

    held = Held()
    alive = weakref.ref(held)

    def fail(value: Held) -> None:
        raise LookupError("nobody asks")

    s = hs.Stream()
    for _ in range(3):
        s.call_checked(fail, held)
    s.record().synchronize(timeout=LIMIT)
    s.close()
    del held

    def all_reported() -> bool:
        gc.collect()
        return len(unraisable) >= 3 and alive() is None

    dispatch_until(all_reported)
    assert len(unraisable) == 3
    assert alive() is None


def dispatch_until(reached: Callable[[], bool]) -> None:
    """Run functions until something holds; a dispatcher reports exceptions when it asks for the next one."""
    probe = hs.Stream(non_blocking=True)
    deadline = time.monotonic() + LIMIT
    while not reached() and time.monotonic() < deadline:
        probe.call(int)
        probe.synchronize(timeout=LIMIT)
