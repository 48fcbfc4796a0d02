"""W3: waits of the main thread outside the runtime, and when they are left alone."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream._stalls import watching as _watching
from halstream._stalls.polling import Polling, polling
from halstream.testing import Gate

pytestmark = pytest.mark.needs("stalls")

LIMIT = 10.0
Child = Callable[..., subprocess.CompletedProcess[str]]


class Stops(Exception):
    """Raised inside of a loop, with what was found about it."""


@pytest.fixture
def stream() -> Iterator[hs.Stream]:
    """A stream behind a closed gate."""
    held = hs.Stream()
    with Gate(held):
        yield held


def found(loop: Callable[[Any], None], one: Any) -> Polling | None:
    """Return what is found about the loop of a function, from inside of it."""
    at: list[Polling | None] = []

    def trace(frame: Any, event: str, _: Any) -> Any:
        if event == "line" and frame.f_code is loop.__code__ and frame.f_lineno > loop.__code__.co_firstlineno + 1:
            at.append(polling(frame))
            raise Stops
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        loop(one)
    except Stops:
        pass
    finally:
        sys.settrace(before)
    return at[0]


def asks(one: Any) -> None:
    nap = 0.001
    while not one.query():
        time.sleep(nap)


def asks_only(one: Any) -> None:
    number = 1  # noqa: F841
    while not one.query():
        pass


def counts(one: Any) -> None:
    n = 0
    while not one.query():
        n += 1


def has_a_limit(one: Any) -> None:
    end = time.monotonic() + 1
    while not one.query() and time.monotonic() < end:
        pass


def calls_something(one: Any) -> None:
    step = one.nop if hasattr(one, "nop") else one.synchronize
    while not one.query():
        step()


def is_something_else(one: Any) -> None:
    other = [one]
    while not other:
        pass


@pytest.mark.parametrize("loop", [asks, asks_only], ids=lambda loop: loop.__name__)
def test_W3_a_loop_that_only_asks_is_recognized(stream: hs.Stream, loop: Callable[[Any], None]) -> None:
    one = found(loop, stream)
    assert one is not None
    assert one.question == "one.query()"
    assert not one.ask()


@pytest.mark.parametrize(
    "loop", [counts, has_a_limit, calls_something, is_something_else], ids=lambda loop: loop.__name__
)
def test_W3_a_loop_that_may_end_by_itself_is_not_recognized(stream: hs.Stream, loop: Callable[[Any], None]) -> None:
    assert found(loop, stream) is None


def test_W3_a_question_of_the_programs_own_class_is_not_recognized() -> None:
    class Other:
        def query(self) -> bool:
            return False

    assert found(asks, Other()) is None


def mark_at_rest() -> int:
    """Return the mark once threads that earlier tests have woken run or sleep again: until then it is -1."""
    end = time.monotonic() + LIMIT
    while (mark := int(_watching._waiters.mark())) == -1:
        assert time.monotonic() < end, "the runtime does not come to rest"
    return mark


@pytest.mark.parametrize("changed", ["nothing", "answer", "place", "work"])
def test_W3_the_main_thread_raises_only_while_nothing_has_changed(stream: hs.Stream, changed: str) -> None:
    frame: Any = sys._getframe()
    mark = mark_at_rest()
    if changed == "work":
        mark += 1
    question = Polling("s.query()", stream, lambda: changed == "answer")
    place = 1 if changed == "place" else -1
    _watching._to_raise[:] = [_watching._Verdict("it is stuck", mark, frame, place, question)]
    if changed == "nothing":
        with pytest.raises(hs.StallError, match="it is stuck"):
            _watching.deliver()
    else:
        assert _watching.deliver() == 0
    assert _watching._to_raise == []


def test_W3_a_stuck_test_fails_and_the_next_one_starts_clean(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import queue
        import halstream as hs

        def test_hangs():
            s, results = hs.Stream(), queue.Queue()
            gate = hs.testing.Gate(s)
            s.call(results.put, 1)
            results.get()

        def test_goes_on():
            s, results = hs.Stream(), queue.Queue()
            s.call(results.put, 1)
            assert results.get(timeout=10) == 1
        """
    )
    result = pytester.runpytest_subprocess(timeout=50)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*StallError: this wait can never end*", "*test_*.py:8 in test_hangs*"])


def test_W3_a_program_that_is_stuck_ends_with_an_error(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        s, done = hs.Stream(), threading.Event()
        gate = hs.testing.Gate(s)
        s.call(done.set)
        done.wait()
        """
    )
    assert done.returncode == 1
    assert "StallError: this wait can never end" in done.stderr


def test_W2_a_main_thread_that_waits_for_sigterm_is_left_alone(child: Child) -> None:
    done = child(
        """
        import os, signal, subprocess, sys, threading
        import halstream as hs
        s, stop = hs.Stream(), threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        s.call(stop.wait)
        send = f"import os, time; time.sleep(1.5); os.kill({os.getpid()}, {int(signal.SIGTERM)})"
        other = subprocess.Popen([sys.executable, "-c", send])
        stop.wait()
        s.synchronize(timeout=20)
        other.wait(20)
        """
    )
    assert done.returncode == 0, done.stderr


class Thing:
    """Something that tells when it goes."""


def test_W5_a_look_at_a_thread_keeps_nothing_alive_that_the_thread_drops() -> None:
    thing, lock, main, seen = Thing(), threading.Lock(), threading.get_ident(), threading.Event()
    gone: list[str] = []
    weakref.finalize(thing, gone.append, "thing")

    def look() -> None:
        end = time.monotonic() + LIMIT
        while not seen.is_set() and time.monotonic() < end:
            if main in _watching._waiters.take(threading.get_ident()).blocks:
                seen.set()
        lock.release()

    looker = threading.Thread(target=look)
    lock.acquire()
    looker.start()
    lock.acquire()
    looker.join(LIMIT)
    del thing
    assert seen.is_set() and gone == ["thing"]
