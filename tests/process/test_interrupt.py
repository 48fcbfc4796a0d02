"""Ctrl-C while the program waits, and exceptions where nobody can catch them."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

Child = Callable[..., Any]

# Sends itself SIGINT from a thread while the main thread waits. Of the waits that
# have a limit none may keep the exception until then.
INTERRUPTED = """
    import os, signal, threading, time
    import halstream as hs
    s, ran = hs.Stream(), []
    gate = hs.testing.Gate(s)
    e = s.record()
    s.call(ran.append, 1)
    sent = []
    waits = threading.Event()

    def interrupt():
        waits.wait(10)
        time.sleep(0.2)  # only lets the wait begin; earlier would be caught as well
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    try:
        waits.set()
        {wait}
    except KeyboardInterrupt:
        took = time.monotonic() - sent[0]
    else:
        raise SystemExit("no KeyboardInterrupt")
    assert took < 10, took  # 0.1 s on a quiet machine
    assert not s.query()
    gate.open()
    s.synchronize(timeout=10)
    assert ran == [1]
"""


@pytest.mark.parametrize(
    "wait",
    [
        "s.synchronize()",
        "s.synchronize(timeout=25)",
        "e.synchronize()",
        "hs.synchronize()",
        "hs.Device(0).default_stream.synchronize()",
    ],
)
def test_ctrl_c_ends_a_wait_and_not_the_work(child: Child, wait: str) -> None:
    if "default_stream" in wait:
        wait = "hs.Device(0).default_stream.nop(); " + wait
    done = child(INTERRUPTED.format(wait=wait))
    assert done.returncode == 0, done.stderr + done.stdout


# Its waits look for signals by themselves once an hour, so that the handler runs
# only if a signal ends the sleep of the main thread.
ENDED_BY_A_SIGNAL = """
    import signal, threading, time
    import halstream as hs
    from halstream import _native
    s = hs.Stream()
    gate = hs.testing.Gate(s)
    handled = []  # no Event: a second signal within its method `set` would wait for its lock for ever

    def handle(number, frame):
        handled.append(number)
        gate.open()

    def interrupt():
        while not handled:  # a signal may come before the main thread sleeps
            signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)
            time.sleep(0.01)

    _native.wait_slice(3_600_000_000_000)
    signal.signal(signal.SIGUSR1, handle)
    thread = threading.Thread(target=interrupt)
    thread.start()
    {wait}
    thread.join(20)
    assert handled and s.query()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only a futex ends its sleep with a signal")
@pytest.mark.parametrize("wait", ["s.synchronize()", "s.synchronize(timeout=1000)", "hs.synchronize()"])
def test_a_signal_ends_the_sleep_of_a_wait(child: Child, wait: str) -> None:
    done = child(ENDED_BY_A_SIGNAL.format(wait=wait))
    assert done.returncode == 0, done.stderr + done.stdout


def test_the_suite_can_be_started_with_sigint_ignored() -> None:
    name = f"{__file__}::test_ctrl_c_ends_the_program_with_the_usual_code"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name],
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_ctrl_c_ends_the_program_with_the_usual_code(child: Child) -> None:
    done = child(
        """
        import os, signal, threading, time
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        s.synchronize()
        """
    )
    assert done.returncode == -signal.SIGINT, done.stderr
    assert "KeyboardInterrupt" in done.stderr


def test_other_signals_run_their_handlers_during_a_wait(child: Child) -> None:
    done = child(
        """
        import os, signal, threading
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        signal.signal(signal.SIGUSR1, lambda *_: gate.open())
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        s.synchronize(timeout=20)
        """
    )
    assert done.returncode == 0, done.stderr


def test_an_exception_in_a_function_is_printed_with_its_traceback(child: Child) -> None:
    done = child(
        """
        import halstream as hs

        def lost():
            raise LookupError("nobody catches this")

        s = hs.Stream()
        s.call(lost)
        s.call(print, "later")
        s.synchronize(timeout=10)
        assert s.failures == 1
        """
    )
    assert done.returncode == 0
    assert done.stdout == "later\n"
    assert "nobody catches this" in done.stderr
    assert "in lost" in done.stderr
    assert "halstream" in done.stderr


def test_another_thread_runs_while_one_synchronizes(child: Child) -> None:
    # Only possible when the wait lets go of the interpreter.
    done = child(
        """
        import threading
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        threading.Timer(0.1, gate.open).start()
        s.synchronize(timeout=20)
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "where",
    [
        # In a finalizer of another object.
        """
        class Last:
            def __init__(self):
                self.s = hs.Stream(); self.e = self.s.record(); self.me = self
        for _ in range(200):
            Last()
        gc.collect()
        """,
        # Within the extension's own calls: collected by allocations in them.
        """
        gc.set_threshold(1, 1, 1)
        for _ in range(500):
            a = hs.Stream(); a.loop = a
            e = a.record(); e.loop = e
            a.call(int)
            del a, e
        gc.set_threshold(700, 10, 10)
        """,
        # On a dispatcher thread, inside a function on a stream.
        pytest.param(
            """
            s = hs.Stream()
            def drop(things):
                things.clear(); gc.collect()
            for _ in range(50):
                s.call(drop, [hs.Stream(), hs.Event(device=0), hs.testing.Gate(hs.Stream())])
            s.synchronize(timeout=10)
            """,
            marks=pytest.mark.needs("held-streams"),
        ),
        # On a thread that never used the runtime.
        """
        import threading
        things = [hs.Stream() for _ in range(100)] + [hs.Event(device=0) for _ in range(100)]
        t = threading.Thread(target=things.clear); t.start(); t.join()
        """,
        # As the interpreter ends.
        """
        import builtins
        builtins.keep = [hs.Stream(), hs.Stream().record(), hs.testing.Gate(hs.Stream())]
        builtins.keep[2].open()
        """,
    ],
)
def test_collection_in_odd_places(child: Child, where: str) -> None:
    import textwrap

    done = child(
        "import gc\nimport halstream as hs\n"
        + textwrap.dedent(where)
        + textwrap.dedent(
            """
            ran = []
            s = hs.Stream()
            s.call(ran.append, 1)
            s.synchronize(timeout=10)
            assert ran == [1]
            """
        )
    )
    assert (done.returncode, done.stderr) == (0, "")
