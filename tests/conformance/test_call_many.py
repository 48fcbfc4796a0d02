"""Functions that follow each other on a stream, and `Stream.call_many`."""

from __future__ import annotations

import gc
import inspect
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._core._context import abort

LIMIT = 10.0
Hold = Callable[[Any], Any]
Child = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("backend")


def broken(text: str) -> None:
    raise LookupError(text)


def begin(s: hs.Stream) -> threading.Event:
    """Enqueue a function that runs until the event that this returns is set, and wait until it has begun."""
    began, leave = threading.Event(), threading.Event()
    s.call(lambda: (began.set(), leave.wait(LIMIT)))
    assert began.wait(LIMIT)
    return leave


def test_H6_an_event_between_functions_completes_before_the_later_ones() -> None:
    s, ran = hs.Stream(), []
    first = begin(s)
    for i in range(5):
        s.call(ran.append, i)
    between = s.record()
    leave = threading.Event()
    s.call(leave.wait, LIMIT)
    for i in range(5, 10):
        s.call(ran.append, i)
    assert not between.query()
    first.set()
    between.synchronize(timeout=LIMIT)
    assert ran == [0, 1, 2, 3, 4]
    assert not s.query()
    leave.set()
    s.synchronize(timeout=LIMIT)
    assert ran == list(range(10))


def test_H6_work_of_another_stream_comes_between_functions() -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    first = begin(a)
    a.call(ran.append, 1)
    b.wait_stream(a)
    b.call(ran.append, 2)
    a.wait_stream(b)
    a.call(ran.append, 3)
    first.set()
    a.synchronize(timeout=LIMIT)
    assert ran == [1, 2, 3]


def test_H6_the_legacy_default_stream_comes_between_functions_of_blocking_streams() -> None:
    default, s, ran = hs.Device(0).default_stream, hs.Stream(), []
    first = begin(s)
    s.call(ran.append, 1)
    default.call(ran.append, 2)
    s.call(ran.append, 3)
    first.set()
    s.synchronize(timeout=LIMIT)
    assert ran == [1, 2, 3]


def test_H6_each_function_counts_as_pending_and_is_dropped_by_an_abort() -> None:
    class Thing:
        pass

    s, ran, thing = hs.Stream(), [], Thing()
    alive = weakref.ref(thing)
    first = begin(s)
    for i in range(9):
        s.call(ran.append, (i, thing))
    del thing
    if "10 operation(s) pending" not in s.describe():
        assert hs.backend() != "host"
        first.set()
        return
    assert abort(s) == 9
    first.set()
    s.synchronize(timeout=LIMIT)
    end = time.monotonic() + LIMIT  # threads that run functions let go of those that were dropped, soon
    while alive() is not None and time.monotonic() < end:
        gc.collect()
        time.sleep(0.001)
    assert ran == []
    assert alive() is None


def test_H6_a_failing_function_among_others_is_counted_and_the_others_run(unraisable: list[Any]) -> None:
    s, ran = hs.Stream(), []
    first = begin(s)
    s.call(ran.append, 1)
    s.call(broken, "in the middle")
    s.call_checked(broken, "checked")
    s.call_checked(broken, "of no call")
    s.call(ran.append, 2)
    first.set()
    with pytest.raises(LookupError, match=r"^checked$") as caught:
        s.synchronize(timeout=LIMIT)
    assert [entry.name for entry in caught.traceback][-1] == "broken"
    assert ran == [1, 2]
    assert s.failures == 3
    s.call(int)
    s.synchronize(timeout=LIMIT)
    assert sorted(report.message for report in unraisable) == ["in the middle", "of no call"]


def test_H1_arguments_of_every_form_arrive_and_are_let_go() -> None:
    class Thing:
        pass

    s, seen = hs.Stream(), []

    def take(*args: Any, **kwargs: Any) -> None:
        seen.append((len(args), sorted(kwargs)))

    things = [Thing() for _ in range(6)]
    alive = [weakref.ref(one) for one in things]
    first = begin(s)
    s.call(take)
    s.call(take, *things)
    s.call(take, things[0], name=things[1], other=things[2])
    s.call_many([take, (take, *things), (take, things[3])])
    del things
    first.set()
    s.synchronize(timeout=LIMIT)
    assert seen == [(0, []), (6, []), (1, ["name", "other"]), (0, []), (6, []), (1, [])]
    gc.collect()
    assert [one() for one in alive] == [None] * 6


def test_H3_a_function_may_not_add_others_behind_itself() -> None:
    s, caught = hs.Stream(), []

    def call(how: Callable[[], None]) -> None:
        try:
            how()
        except hs.CallInHostFunctionError as exc:
            caught.append(exc)

    first = begin(s)
    s.call(call, lambda: s.call(print))
    s.call(call, lambda: s.call_many([print]))
    ended = threading.Event()
    s.call(ended.set)
    first.set()
    assert ended.wait(LIMIT)
    s.synchronize(timeout=LIMIT)
    assert len(caught) == 2


def test_H4_a_closed_stream_takes_no_more_functions_and_runs_those_that_it_has() -> None:
    s, ran, done = hs.Stream(), [], threading.Event()
    first = begin(s)
    s.call(ran.append, 1)
    s.call(done.set)
    s.close()
    for refused in (lambda: s.call(ran.append, 2), lambda: s.call_many([print])):
        with pytest.raises(hs.ClosedError):
            refused()
    first.set()
    assert done.wait(LIMIT)
    assert ran == [1]


def test_H1_functions_of_many_threads_keep_the_order_of_each() -> None:
    s, ran = hs.Stream(), []
    first = begin(s)
    adding = [threading.Thread(target=lambda k=k: [s.call(ran.append, (k, i)) for i in range(500)]) for k in range(4)]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join(LIMIT)
    first.set()
    s.synchronize(timeout=LIMIT)
    for k in range(4):
        assert [i for who, i in ran if who == k] == list(range(500))


def test_H6_a_thread_that_runs_functions_of_C_lets_other_threads_run(backend: str) -> None:
    turns = [0]
    many = 100_000 if backend == "host" else 900  # elsewhere there is a switch after each
    stop = threading.Event()

    def count() -> None:
        while not stop.is_set():
            turns[0] += 1

    def advanced() -> bool:
        """Whether the other thread got a turn while the functions ran."""
        s, ran, seen = hs.Stream(), [], []
        first, look = begin(s), (seen.extend, turns)
        s.call_many([look, *((ran.append, i) for i in range(many)), look])
        first.set()
        s.synchronize(timeout=60)
        assert len(ran) == many
        before, after = seen
        return bool(after > before)

    other = threading.Thread(target=count)
    other.start()
    try:
        # Python's lock is offered; on a machine with other work the thread may be too late to take it, or the functions
        # may have to wait for each other, and so let it go.
        turns_of_other = 0
        for _ in range(12):
            turns_of_other += advanced()
            if turns_of_other == 6:
                break
        assert turns_of_other == 6
    finally:
        stop.set()
        other.join(LIMIT)


@pytest.mark.parametrize("bad", [3, (), (3, print), None, "text"])
def test_call_many_enqueues_nothing_if_one_element_is_no_function(bad: Any) -> None:
    s, ran = hs.Stream(), []
    for calls in ([(ran.append, 1), bad], iter([(ran.append, 1), bad])):
        with pytest.raises(TypeError, match=r"element 1.*nothing was enqueued"):
            s.call_many(calls)
    s.synchronize(timeout=LIMIT)
    assert ran == []


def test_call_many_takes_any_iterable_and_gives_arrays_as_call_does() -> None:
    s, ran = hs.Stream(), []
    s.call_many([])
    s.call_many((ran.append, i) for i in range(3))
    s.call_many(((ran.append, 3), (ran.append, 4)))
    array = np.arange(3)
    s.call_many([(lambda a: ran.append(int(a.sum())), array)])
    s.synchronize(timeout=LIMIT)
    assert ran == [0, 1, 2, 3, 4, 3]


def test_call_many_names_what_it_takes_when_it_gets_something_else() -> None:
    s = hs.Stream()
    with pytest.raises(TypeError):
        s.call_many(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        s.call_many()  # type: ignore[call-arg]


def test_methods_of_the_extension_are_documented_as_those_of_python() -> None:
    hs.Stream().call(int)
    signature = inspect.signature(hs.Stream.call)
    assert [*signature.parameters] == ["self", "function", "args", "reads", "writes", "kwargs"]
    for method in (hs.Stream.call, hs.Stream.call_checked, hs.Stream.call_many):
        assert "Contract" in (inspect.getdoc(method) or "") or method is hs.Stream.call_checked


@pytest.mark.needs("schedules")  # a driver says by itself when the urgent function may begin
def test_H5_a_more_urgent_stream_comes_first_where_no_thread_is_free(child: Child) -> None:
    done = child(
        """
        import threading, halstream as hs
        began, leave, ran = threading.Event(), threading.Event(), []
        calm, urgent = hs.Stream(), hs.Stream(priority=-1)
        calm.call(int)  # starts the thread
        calm.synchronize(timeout=10)
        calm.call(lambda: (began.set(), leave.wait(20)))
        assert began.wait(10)
        for i in range(5):
            calm.call(ran.append, i)
        urgent.call(ran.append, "urgent")
        leave.set()
        for s in (calm, urgent):
            s.synchronize(timeout=10)
        assert ran == ["urgent", 0, 1, 2, 3, 4], ran
        """,
        env={"HALSTREAM_HOST_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_H6_a_listener_sees_each_function_enqueued_from_then_on() -> None:
    s = hs.Stream()
    first = begin(s)
    s.call(int)
    with hs.testing.Trace() as trace:
        for _ in range(3):
            s.call(int)
        s.call_many([int, (int, 3)])
        first.set()
        s.synchronize(timeout=LIMIT)
    assert [one.kind for one in trace.operations].count("call") == 5


def test_threads_that_run_functions_have_names() -> None:
    s, names = hs.Stream(), []
    s.call(lambda: names.append(threading.current_thread().name))
    s.synchronize(timeout=LIMIT)
    assert names[0].startswith("halstream-dispatcher-")
