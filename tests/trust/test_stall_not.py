"""W2: a wait that something could still end is never ended.

Each program has the doctor look several times while only one thing could still
help; then that helps. Nothing is ordered by time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import multiprocessing.pool
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream import _native, _records
from halstream._native._constants import NEED_FUNCTION
from halstream.testing import Gate
from stall_help import LIMIT, Looks, in_thread, looks, schedule, scheduled  # noqa: F401

pytestmark = pytest.mark.needs("stalls")

Child = Callable[..., subprocess.CompletedProcess[str]]

# How often the doctor looks before somebody helps: more than it takes to be sure.
ENOUGH = 4


def helped(looks: Looks, gate: Gate) -> Callable[[], None]:  # noqa: F811
    """Return a function that opens a gate after enough looks."""

    def help() -> None:
        looks.reach(ENOUGH)
        gate.open()

    return help


@pytest.mark.usefixtures("schedule")
def test_W2_a_thread_that_sleeps_opens_the_gate(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()
    gate = Gate(s)
    thread = in_thread(helped(looks, gate))
    s.synchronize()
    thread.join(LIMIT)
    assert not any(looks.verdicts)


@pytest.mark.usefixtures("schedule")
def test_W2_a_daemon_that_sleeps_opens_the_gate(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()
    gate = Gate(s)
    threading.Thread(target=helped(looks, gate), daemon=True).start()
    s.synchronize()


def test_W2_a_daemon_timer_of_the_library_opens_the_gate(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()
    gate = Gate(s)
    timer = threading.Timer(1.0, gate.open)  # its own frames are all of the library
    timer.daemon = True
    timer.start()
    s.synchronize()
    assert not any(looks.verdicts)


def test_W2_a_pool_of_daemons_calls_back(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()
    gate = Gate(s)
    with multiprocessing.pool.ThreadPool(1) as pool:
        # Only the library is on the stacks of its threads until then.
        pool.apply_async(time.sleep, (1.0,), callback=lambda _: gate.open())
        s.synchronize()
    assert not any(looks.verdicts)


@pytest.mark.parametrize("kind", ["event", "lock", "queue", "sleep", "compute", "read"])
def test_W2_a_function_of_another_stream_opens_the_gate(kind: str, looks: Looks) -> None:  # noqa: F811
    # The thread it runs on is no thread of the program, but may act all the same.
    s, other = hs.Stream(), hs.Stream()
    gate = Gate(s)
    reads, writes = os.pipe()
    stop = threading.Event()

    def work() -> None:
        if kind == "event":
            threading.Event().wait(1.0)
        elif kind == "lock":
            lock = threading.Lock()
            with lock:
                lock.acquire(timeout=1.0)
        elif kind == "queue":
            with pytest.raises(concurrent.futures.TimeoutError):
                concurrent.futures.Future[int]().result(1.0)
        elif kind == "compute":
            while not stop.is_set():
                pass
        elif kind == "read":
            os.read(reads, 1)
        else:
            looks.reach(ENOUGH)
        gate.open()

    def end() -> None:
        looks.reach(ENOUGH)
        stop.set()
        os.write(writes, b"x")

    thread = in_thread(end) if kind in ("compute", "read") else None
    other.call(work)
    s.synchronize()
    if thread is not None:
        thread.join(LIMIT)
    os.close(reads)
    os.close(writes)
    assert not any(looks.verdicts)


def test_W2_a_thread_in_a_limited_wait_of_the_runtime(looks: Looks) -> None:  # noqa: F811
    s, other = hs.Stream(), hs.Stream()
    gate, second = Gate(s), Gate(other)

    def help() -> None:
        with pytest.raises(hs.WaitTimeoutError):
            other.synchronize(timeout=1.5)
        gate.open()

    thread = in_thread(help)
    s.synchronize()
    thread.join(LIMIT)
    second.open()
    assert not any(looks.verdicts)


def test_W2_a_wait_of_a_stream_that_has_a_limit(looks: Looks) -> None:  # noqa: F811
    from halstream._core import _context

    context = _context.Context(0)
    try:
        s = context.stream()
        event = context.event(_context.KIND_FUTURE)
        _context.wait_limited(s, event, 1.0)
        with pytest.raises(hs.WaitTimeoutError):
            s.synchronize()
    finally:
        context.destroy()
    assert not any(looks.verdicts)


def test_W2_work_that_takes_long(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()
    s.delay(1.0)
    s.synchronize()
    assert not any(looks.verdicts)


def test_W2_many_functions_of_few_threads(child: Child) -> None:
    done = child(
        """
        import threading, time
        import halstream as hs
        ran = []
        streams = [hs.Stream() for _ in range(4)]
        for i, s in enumerate(streams):
            s.call(time.sleep, 0.3)
            s.call(ran.append, i)
        hs.synchronize(0)
        assert sorted(ran) == [0, 1, 2, 3]
        """,
        env={"HALSTREAM_HOST_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr


def test_W2_a_thread_that_another_one_starts_later(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()
    gate = Gate(s)

    def starts() -> None:
        looks.reach(ENOUGH)
        in_thread(helped(looks, gate)).join()

    thread = in_thread(starts)
    s.synchronize()
    thread.join(LIMIT)
    assert not any(looks.verdicts)


def test_W2_locks_that_are_let_go_by_who_can_act(looks: Looks) -> None:  # noqa: F811
    # A function waits for a lock, its holder for an event, and who sets that sleeps.
    s, lock, ready = hs.Stream(), threading.Lock(), threading.Event()
    held = threading.Event()

    def holder() -> None:
        with lock:
            held.set()
            ready.wait()

    def work() -> None:
        with lock:
            pass

    threads = [in_thread(holder)]
    assert held.wait(LIMIT)
    threads.append(in_thread(lambda: (looks.reach(ENOUGH), ready.set())))
    s.call(work)
    s.synchronize()
    for thread in threads:
        thread.join(LIMIT)
    assert not any(looks.verdicts)


def test_W2_a_signal_of_a_timer(child: Child) -> None:
    done = child(
        """
        import signal
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        signal.signal(signal.SIGALRM, lambda *_: gate.open())
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        s.synchronize()
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGINT", "SIGTERM", "SIGALRM"])
@pytest.mark.parametrize("wait", ["s.synchronize()", "opened.wait()"])
def test_W2_a_signal_of_another_process(child: Child, name: str, wait: str) -> None:
    """As of a person who ends a program by Ctrl-C, which has a handler for that."""
    done = child(
        f"""
        import os, signal, subprocess, sys, threading
        import halstream as hs
        s, opened = hs.Stream(), threading.Event()
        gate = hs.testing.Gate(s)
        signal.signal(signal.{name}, lambda *_: (gate.open(), opened.set()))
        sent = f"import os, time; time.sleep(1.0); os.kill({{os.getpid()}}, {{int(signal.{name})}})"
        other = subprocess.Popen([sys.executable, "-c", sent])
        {wait}
        other.wait(20)
        """
    )
    assert done.returncode == 0, done.stderr


def test_W2_a_handler_that_runs_during_the_wait(child: Child) -> None:
    # The waiting thread itself acts, in a handler that lets other threads look.
    done = child(
        """
        import signal, threading, time
        import halstream as hs
        from halstream._stalls import stall as _stall
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        looks = 0
        judge = _stall._judge
        def judged(me):
            global looks
            looks += 1
            return judge(me)
        _stall._judge = judged
        def handler(*_):
            end, goal = time.monotonic() + 20, looks + 4
            while looks < goal and time.monotonic() < end:
                time.sleep(0.01)
            gate.open()
        signal.signal(signal.SIGALRM, handler)
        threading.Thread(target=s.synchronize).start()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        s.synchronize()
        """
    )
    assert done.returncode == 0, done.stderr


def test_W2_a_loop_of_asyncio(looks: Looks) -> None:  # noqa: F811
    async def main() -> None:
        s = hs.Stream()
        gate = Gate(s)
        wait = asyncio.create_task(asyncio.to_thread(s.synchronize))
        end = time.monotonic() + LIMIT
        while looks.count < ENOUGH and time.monotonic() < end:
            await asyncio.sleep(0.01)
        gate.open()
        await asyncio.wait_for(wait, LIMIT)

    asyncio.run(main())
    assert looks.count >= ENOUGH
    assert not any(looks.verdicts)


def test_W2_a_gate_in_a_reference_cycle_opens(looks: Looks) -> None:  # noqa: F811
    s = hs.Stream()

    class Keeper:
        def __init__(self) -> None:
            self.gate, self.me = Gate(s), self

    Keeper()
    s.synchronize()  # it is collected before anything is told


def test_W2_texts_of_waits_with_a_limit_stay_as_they_were() -> None:
    s = hs.Stream()
    with Gate(s), pytest.raises(hs.WaitTimeoutError, match=r"not done within 1\.0 s: stream .*nobody has opened"):
        s.synchronize(timeout=1.0)  # long enough for the doctor, who is not asked


def test_W2_a_slow_function_of_a_schedule(looks: Looks) -> None:  # noqa: F811
    with scheduled("fifo"):
        s = hs.Stream()
        s.call(time.sleep, 0.5)
        s.synchronize()
    assert not any(looks.verdicts)


def test_W2_a_report_that_a_busy_thread_will_take(backend: str, looks: Looks) -> None:  # noqa: F811
    from halstream import acl

    rt = acl.rt
    assert rt.set_device(0) == 0
    stream: Any = rt.create_stream()[0]
    core = hs.Stream.from_handle(stream)
    subscribed, ran = threading.Event(), []

    def pump() -> None:
        rt.set_device(0)
        assert rt.subscribe_report(threading.get_ident(), stream) == 0
        subscribed.set()
        looks.reach(ENOUGH)
        assert rt.process_report(10_000) == 0
        assert rt.unsubscribe_report(threading.get_ident(), stream) == 0

    thread = in_thread(pump)
    assert subscribed.wait(LIMIT)
    assert rt.launch_callback(ran.append, 1, 1, stream) == 0
    core.synchronize()
    thread.join(LIMIT)
    assert ran == [1]
    assert not any(looks.verdicts)
    rt.reset_device_force(0)


def test_W2_ctrl_c_still_ends_a_wait(child: Child) -> None:
    done = child(
        """
        import os, signal, threading, time
        import halstream as hs
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        def interrupt():
            time.sleep(0.6)  # the doctor has looked by then
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            s.synchronize()
        except KeyboardInterrupt:
            print("interrupted")
        gate.open()
        """
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def test_W2_a_thread_that_cannot_run_its_function_yet_is_about_to_go_on() -> None:
    s, ran = hs.Stream(), []
    s.call(ran.append, 1)
    s.synchronize(timeout=LIMIT)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        # From here on nobody else gets Python's lock. The function is given to a thread, which needs it.
        s.call(ran.append, 2)
        limit = time.monotonic() + LIMIT
        while time.monotonic() < limit:
            heads = [stream["need"] for stream in _records.decode(_native.stall_graph())]
            state = _records.decode(_native.stall_state())
            if NEED_FUNCTION in heads and state["waiting"] == 0:
                break
        done = len(ran)
    finally:
        sys.setswitchinterval(before)
    s.synchronize(timeout=LIMIT)
    assert NEED_FUNCTION in heads
    assert done == 1, "the function has not begun"
    assert not state["quiet"]


@pytest.mark.parametrize("raised", ["TimeoutError", "KeyboardInterrupt"])
def test_W1_what_a_handler_of_a_signal_raises_while_python_looks_ends_the_wait(child: Child, raised: str) -> None:
    """Python runs the handler in the middle of the look, which goes on where it fails by itself."""
    done = child(
        f"""
        import functools, os, signal
        import halstream as hs
        from halstream._stalls import stall

        class Limit:
            def __call__(self, number, frame):
                raise {raised}

        def look(me):
            signal.raise_signal(signal.SIGUSR1)
            return before(me)

        signal.signal(signal.SIGUSR1, functools.partial(Limit()))
        before, stall._look = stall._look, look
        s = hs.Stream()
        gate = hs.testing.Gate(s)
        try:
            s.synchronize()
        except {raised}:
            print("raised", flush=True)
        os._exit(0)
        """
    )
    assert (done.returncode, done.stdout) == (0, "raised\n"), done.stderr
