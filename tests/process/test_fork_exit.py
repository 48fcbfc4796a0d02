"""Fork, exit, import: what only a process of its own can show. Exit codes are checked first."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]


def test_a_forked_child_gets_a_clear_error(child: Child) -> None:
    done = child(
        """
        import os, sys, warnings
        import halstream as hs
        warnings.simplefilter("ignore")  # newer versions of Python warn of fork with threads
        s = hs.Stream()
        s.call(int)
        s.synchronize(timeout=10)
        pid = os.fork()
        if pid == 0:
            calls = [
                hs.Stream, lambda: hs.Event(device=0), s.query, s.synchronize, s.nop, s.record,
                lambda: s.call(int), hs.device_count, hs.synchronize,
            ]
            texts = set()
            for call in calls:
                try:
                    call()
                except hs.ForkError as exc:
                    texts.add("spawn" in str(exc))
                else:
                    os._exit(2)
            os._exit(0 if texts == {True} else 3)
        _, status = os.waitpid(pid, 0)
        s.call(int)
        s.synchronize(timeout=10)  # the parent goes on
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.returncode == 0, done.stderr


def test_a_forked_child_that_ends_as_programs_do_neither_hangs_nor_complains(child: Child) -> None:
    done = child(
        """
        import os, sys, warnings
        import halstream as hs
        warnings.simplefilter("ignore")
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        s.call(int)
        pid = os.fork()
        if pid == 0:
            del s, gate
            sys.exit(7)  # runs finalizers and what is registered with atexit
        _, status = os.waitpid(pid, 0)
        gate.open()
        s.synchronize(timeout=10)
        sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.returncode == 7, done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("first", ["import halstream as hs", "pass"], ids=["after import", "before import"])
def test_fork_before_the_first_use_is_fine(child: Child, first: str) -> None:
    done = child(
        f"""
        import os, sys
        {first}
        pid = os.fork()
        import halstream as hs
        s, ran = hs.Stream(), []
        s.call(ran.append, 1)
        s.synchronize(timeout=10)
        assert ran == [1]
        if pid:
            _, status = os.waitpid(pid, 0)
            sys.exit(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.returncode == 0, done.stderr


def test_multiprocessing_spawn_works(child: Child) -> None:
    done = child(
        """
        import multiprocessing
        import halstream as hs

        def work(n):
            s, ran = hs.Stream(), []
            s.call(ran.append, n)
            s.synchronize(timeout=10)
            return ran

        if __name__ == "__main__":
            s = hs.Stream()
            s.nop()
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(work, [1, 2]) == [[1], [2]]
        """
    )
    assert done.returncode == 0, done.stderr


def test_exit_waits_for_pending_functions(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        s = hs.Stream()
        for i in range(100):
            s.call(print, i)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(i) for i in range(100)]
    assert done.stderr == ""


def test_G4_exit_while_a_stream_captures_waits_for_the_other_work(child: Child) -> None:
    done = child(
        """
        import atexit, threading
        import halstream as hs
        captured, s = hs.Stream(), hs.Stream()
        capture = hs.capture(captured, "relaxed")
        capture.__enter__()
        captured.call(print, "captured")
        ends = threading.Event()
        atexit.register(ends.set)  # so that the work is pending when the runtime shuts down
        s.call(ends.wait, 10)
        for i in range(100):
            s.call(print, i)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(i) for i in range(100)]
    assert done.stderr == ""


def test_exit_drops_work_that_cannot_end_and_reports_how_much(child: Child) -> None:
    done = child(
        """
        import time, sys, atexit
        begin = time.monotonic()
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        for _ in range(5):
            s.call(print, "must not run")
        keep = s, gate
        sys.exit(3)
        """
    )
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("halstream: ")
    assert int(line.split()[1]) >= 5
    assert "pending" in line


def test_exit_gives_the_drain_about_two_seconds(child: Child) -> None:
    done = child(
        """
        import atexit, time
        begin = []
        # Registered first, so called last.
        atexit.register(lambda: print(time.monotonic() - begin[0]))
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        begin.append(time.monotonic())
        """
    )
    assert done.returncode == 0, done.stderr
    assert 1.9 <= float(done.stdout) < 10


def test_exit_with_a_function_that_never_returns(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        s, inside = hs.Stream(), threading.Event()
        s.call(lambda: (inside.set(), threading.Event().wait()))
        assert inside.wait(10)
        """
    )
    assert done.returncode == 0, done.stderr
    assert "pending" in done.stderr


def test_exit_with_a_busy_stream_and_no_function_at_all(child: Child) -> None:
    done = child("import halstream as hs; s = hs.Stream(); s.delay(0.2); e = s.record()")
    assert (done.returncode, done.stderr) == (0, "")


def test_an_exception_in_the_program_keeps_its_exit_code(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        s = hs.Stream()
        s.call(print, "ran")
        raise RuntimeError("the program's own")
        """
    )
    assert done.returncode == 1
    assert "the program's own" in done.stderr
    assert done.stdout == "ran\n"


@pytest.mark.skipif(
    (3, 12) <= sys.version_info < (3, 12, 3), reason="CPython 3.12.0 to 3.12.2 starts no thread once the main one ended"
)
def test_functions_at_exit_may_still_use_streams(child: Child) -> None:
    done = child(
        """
        import atexit
        import halstream as hs
        s = hs.Stream()

        @atexit.register  # registered later than halstream's own, so called before it
        def last():
            s.call(print, "at exit")
            s.synchronize(timeout=10)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "at exit\n", "")


def test_use_after_the_drain_is_an_error_and_not_a_hang(child: Child) -> None:
    done = child(
        """
        import atexit

        @atexit.register  # registered first, so called after the drain
        def last():
            try:
                s.call(print, "too late")
                s.synchronize(timeout=5)
            except hs.HalError as exc:
                print(type(exc).__name__)

        import halstream as hs
        s = hs.Stream()
        s.call(int)
        """
    )
    assert done.returncode == 0, done.stderr
    assert "too late" not in done.stdout
    assert done.stdout.strip()


def test_imported_twice_is_one_runtime(child: Child) -> None:
    done = child(
        """
        import importlib, sys
        import halstream as first
        s = first.Stream()
        gate = first.testing.Gate(s)
        for name in [n for n in sys.modules if n.startswith("halstream")]:
            del sys.modules[name]
        second = importlib.import_module("halstream")
        assert second is not first
        t, ran = second.Stream(), []
        t.call(ran.append, 1)
        t.synchronize(timeout=10)
        assert ran == [1]
        # One process, one numbering.
        assert t.handle != s.handle
        gate.open()
        s.synchronize(timeout=10)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_import_changes_nothing_around_it(child: Child) -> None:
    done = child(
        """
        import os, signal, sys, threading
        before = os.getcwd(), signal.getsignal(signal.SIGINT), threading.active_count(), list(sys.path)
        import halstream
        after = os.getcwd(), signal.getsignal(signal.SIGINT), threading.active_count(), list(sys.path)
        assert before == after
        assert "numpy" not in sys.modules
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", ["abacus", ""])
def test_a_wrong_backend_in_the_environment_is_named(child: Child, value: str) -> None:
    done = child(
        """
        import halstream as hs
        try:
            hs.Stream()
            print("auto", hs.backend())
        except hs.HalError as exc:
            print(type(exc).__name__, exc)
        """,
        env={"HALSTREAM_BACKEND": value},
    )
    assert done.returncode == 0, done.stderr
    # Empty is as good as not set.
    assert value in done.stdout if value else done.stdout.startswith("auto")


def test_exit_waits_for_the_work_of_every_device(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        s = hs.Stream(device=1)  # and nothing on the first one
        s.delay(0.2)
        s.call(print, "ran", flush=True)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ran\n"
    assert done.stderr == ""


@pytest.mark.parametrize("mode", ["global", "relaxed"])
def test_the_end_of_a_process_that_captures_neither_hangs_nor_complains(mode: str, child: Child) -> None:
    done = child(
        f"""
        import halstream as hs
        s, o, memory = hs.Stream(), hs.Stream(), hs.zeros(64, "u1")
        hs.synchronize()
        capture = hs.capture(s, {mode!r})
        graph = capture.__enter__()
        memory.fill(1, s)
        o.wait(s)
        o.call(print, "never")
        print("ends")
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")
