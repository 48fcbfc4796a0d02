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
