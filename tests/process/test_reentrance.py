"""Calls that begin inside other calls: finalizers and signal handlers that use the runtime.

The garbage collector and signal handlers run wherever Python code runs, also
inside the package's own functions. What they call must neither deadlock nor
give the same block of memory back twice.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

Child = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("host")]

#: Blocks of device 0 that are kept back, for a closed gate stands on the stream that uses them.
KEPT_BACK = """
    import gc
    import signal

    import halstream as hs
    from halstream import testing
    from halstream._memory import PooledMemory

    owner, user = hs.Stream(0), hs.Stream(0)
    gate = testing.Gate(user)

    def keep_one_back():
        block = PooledMemory(512, owner)
        block.record_stream(user)

    for _ in range(20):
        keep_one_back()
    hs.empty(4, device=1)  # what is imported at first use is there from now on
"""


def test_a_finalizer_that_synchronizes_does_not_deadlock(child: Child) -> None:
    done = child(
        KEPT_BACK
        + """
    calls = []

    class Careful:
        def __init__(self):
            self.itself = self

        def __del__(self):
            hs.synchronize(1)
            hs.empty(4, device=1)
            calls.append(1)

    # The collector runs at every place inside an allocation, one after the other.
    for count in range(1, 200):
        gc.disable()
        gc.collect()
        Careful()
        gc.set_threshold(count)
        gc.enable()
        hs.empty(4, device=1)
    gc.disable()
    gate.open()
    hs.synchronize(0)
    assert len(calls) > 100, len(calls)
    print("done")
    """,
        timeout=60.0,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_a_signal_handler_that_calls_the_runtime_does_not_deadlock(child: Child) -> None:
    done = child(
        KEPT_BACK
        + """
    calls = []

    def handler(number, frame):
        hs.synchronize(1)
        hs.empty(4, device=1)
        calls.append(1)

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    while len(calls) < 300:
        keep_one_back()
        hs.empty(4, device=0)
        if len(calls) % 50 == 49:
            hs.synchronize(1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    gate.open()
    hs.synchronize(0)
    print("done")
    """,
        timeout=60.0,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_two_threads_give_each_kept_block_back_once(child: Child) -> None:
    done = child(
        KEPT_BACK
        + """
    import threading

    stop = threading.Event()
    errors = []

    def work():
        try:
            while not stop.is_set():
                hs.empty(4, device=1)
        except BaseException as exc:
            errors.append(exc)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        keep_one_back()
    gate.open()
    for _ in range(200):
        gate = testing.Gate(user)
        keep_one_back()
        gate.open()
        user.synchronize()
    stop.set()
    for thread in threads:
        thread.join(10)
    assert not errors, errors
    print("done")
    """,
        timeout=60.0,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_a_finalizer_may_call_the_runtime_while_its_thread_loads_it(child: Child) -> None:
    done = child(
        """
    import gc
    import sys

    import halstream as hs

    made = []

    class Dropped:
        def __del__(self):
            stream = hs.Stream()
            stream.nop()
            stream.synchronize()
            made.append(stream)

    class Collect:
        # Asked where the extension is: its import has begun.
        def find_spec(self, name, path=None, target=None):
            if name == "halstream._halstream":
                sys.meta_path.remove(self)
                dropped = Dropped()
                dropped.itself = dropped
                del dropped
                gc.collect()

    sys.meta_path.insert(0, Collect())
    stream = hs.Stream()
    assert len(made) == 1
    stream.call(print, "called")
    stream.synchronize()
    event = hs.Event()
    made[0].record(event)
    stream.wait(event)
    stream.synchronize()
    print("done")
    """,
        timeout=30.0,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "called\ndone\n"


def test_two_threads_load_the_extension_at_the_same_time(child: Child) -> None:
    """Both exchange their functions with it, and both enqueue."""
    done = child(
        """
    import threading

    import halstream as hs
    from halstream._core import _hostfunc

    ran, connect = [], _hostfunc.connect

    def enqueue() -> None:
        stream = hs.Stream()
        stream.call(ran.append, 1)
        stream.synchronize()

    def second() -> None:
        _hostfunc.connect = connect
        first = threading.Thread(target=enqueue)
        first.start()
        first.join()
        connect()

    _hostfunc.connect = second
    stream, x = hs.Stream(), hs.zeros(4)
    stream.call(ran.append, 2)
    stream.call(ran.append, 3, reads=[x])
    stream.call_many([(ran.append, x)])
    stream.synchronize()
    print(ran[:3], len(ran))
    """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[1, 2, 3] 4\n"
