"""Signals of the process and the runtime's own threads."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]


@pytest.mark.skipif(sys.platform != "linux", reason="the signals that threads block are read from /proc")
def test_P1_threads_of_the_runtime_leave_signals_to_the_program(child: Child) -> None:
    # One that gets a signal meant for the process interrupts no wait of the main thread.
    done = child(
        """
        import os, signal, threading, time
        os.environ["HALSTREAM_BACKEND"] = "host"  # a vendor's driver has threads of its own
        before = set(os.listdir("/proc/self/task"))
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        import halstream as hs
        s = hs.Stream()
        s.call(int)
        s.synchronize(timeout=10)
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == mask
        started = set(os.listdir("/proc/self/task")) - before
        while any(t.native_id is None for t in threading.enumerate()):
            time.sleep(0.001)  # one of Python's begins
        started -= {str(t.native_id) for t in threading.enumerate()}
        def blocked(thread):
            try:
                with open(f"/proc/self/task/{thread}/status") as status:
                    return next(int(line.split()[1], 16) for line in status if line.startswith("SigBlk"))
            except (FileNotFoundError, ProcessLookupError):
                return None  # it has ended
        wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1)
        def right(mask):
            return all(mask >> number - 1 & 1 for number in wanted) and not mask >> signal.SIGSEGV - 1 & 1
        # A thread that begins blocks all signals; those that only showed that threads can be started end.
        limit = time.monotonic() + 10
        for thread in started:
            while (mask := blocked(thread)) is not None and not right(mask):
                assert time.monotonic() < limit, (thread, hex(mask))
                time.sleep(0.001)
        lasting = [thread for thread in started if blocked(thread) is not None]
        assert lasting, "the runtime has no thread"
        """
    )
    assert done.returncode == 0, done.stderr


def test_P3_the_first_use_waits_until_its_threads_have_begun(child: Child) -> None:
    done = child(
        """
        import _thread, threading
        import halstream as hs

        start, begin, started = _thread.start_new_thread, _thread.allocate_lock(), threading.Semaphore(0)

        def late(function, args):
            def run(*args):
                started.release()
                with begin:
                    pass
                function(*args)
            return start(run, args)

        begin.acquire()
        _thread.start_new_thread = late  # threading has its own reference
        first = threading.Thread(target=hs.device_count, daemon=True)
        first.start()
        assert started.acquire(timeout=60)
        # Where it does not wait it ends at once; the time is only what a failure has to show itself.
        first.join(0.3)
        assert first.is_alive(), "threads that it has started have not begun"
        begin.release()
        first.join(60)
        assert not first.is_alive()
        """
    )
    assert done.returncode == 0, done.stderr


def test_P3_the_end_of_the_program_waits_for_a_thread_that_begins(child: Child) -> None:
    done = child(
        """
        import threading
        import halstream as hs
        from halstream._core import _hostfunc

        s = hs.Stream()
        s.call(int)
        s.synchronize(timeout=10)
        go, begin, started, ending = threading.Event(), threading.Event(), threading.Event(), threading.Event()

        def dispatcher():  # which finds that one more is needed
            go.wait(60)
            _hostfunc._thread()

        def ends():
            ending.set()
            _hostfunc._at_exit()

        one = threading.Thread(target=dispatcher, daemon=True)
        one.start()
        end = threading.Thread(target=lambda: (started.wait(60), ends()), daemon=True)
        end.start()
        name = next(n for n in ("_start_joinable_thread", "_start_new_thread") if hasattr(threading, n))
        start = getattr(threading, name)

        def late(function, *args, **kwargs):
            def run(*args):
                started.set()
                begin.wait(60)
                function(*args)
            return start(run, *args, **kwargs)

        setattr(threading, name, late)
        go.set()
        assert ending.wait(60)
        # Where it does not wait it ends at once; the time is only what a failure has to show itself.
        end.join(0.3)
        assert end.is_alive(), "a thread that is being started has not begun"
        begin.set()
        end.join(60)
        assert not end.is_alive()
        """
    )
    assert done.returncode == 0, done.stderr
