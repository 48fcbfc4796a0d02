"""Host threads under a schedule: one execution for each token."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import acl
from halstream._plugin.plan import Plan, plan_of
from halstream.cupy.cuda import runtime
from halstream.testing import explore, schedule

from tests.corpus._shapes_help import Shape
from tests.corpus.host_threads import PROGRAMS

pytestmark = pytest.mark.needs("schedules")
LIMIT = 10


def _token(exc: BaseException) -> str:
    found = re.search(r"schedule\('(hs1-[^']+)'\)", "\n".join(getattr(exc, "__notes__", exc.args)))
    assert found is not None
    return found[1]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_X9_a_race_of_host_threads_is_found_and_its_token_replays(program: Shape) -> None:
    with pytest.raises((AssertionError, hs.StallError)) as found:
        explore(program.broken, threads=True, shrink_runs=4)
    token = _token(found.value)
    assert "+" in token
    for _ in range(3):
        with pytest.raises(found.type), schedule(token):
            program.broken()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_X9_a_program_that_orders_its_threads_passes(program: Shape) -> None:
    explored = explore(program.fixed, threads=True)
    assert (explored.schedules, explored.uncontrolled) == (50, "")


def _logged(log: list[int]) -> None:
    lock = threading.Lock()

    def work(number: int) -> None:
        for _ in range(3):
            with lock:
                log.append(number)
            hs.Stream().synchronize()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("spec", ["fifo @ stay", "fifo @ random 5", "random 3 @ pct 4 3 40"])
def test_X9_equal_specs_give_equal_turns(spec: str) -> None:
    logs, tokens = list[list[int]](), set[str]()
    for _ in range(3):
        logs.append([])
        with schedule(spec) as run:
            _logged(logs[-1])
        tokens.add(str(run.token))
    assert logs[0] == logs[1] == logs[2]
    assert len(tokens) == 1


def test_X9_the_recorded_turns_of_a_run_give_the_same_run() -> None:
    mixed = 0
    for seed in range(5):
        first, second = list[int](), list[int]()
        with schedule(f"fifo @ random {seed}") as run:
            _logged(first)
        with schedule(f"fifo @ {run.execution.turns}"):
            _logged(second)
        assert first == second
        mixed += first != sorted(first)
    assert mixed


def test_X9_other_turns_are_tried() -> None:
    seen = set[tuple[int, ...]]()
    for seed in range(5):
        log: list[int] = []
        with schedule(f"fifo @ random {seed}"):
            _logged(log)
        seen.add(tuple(log))
    assert len(seen) > 1


def test_X9_threads_that_wait_for_each_other_are_reported_with_their_locks() -> None:
    program = next(program for program in PROGRAMS if program.name == "locks_taken_in_two_orders")
    with pytest.raises(hs.StallError, match="every thread of the program waits for another one") as found:
        explore(program.broken, threads=True, shrink_runs=0)
    one = [line for line in str(found.value).splitlines() if "main thread) waits in Lock.acquire" in line]
    two = [line for line in str(found.value).splitlines() if "mover) waits in Lock.acquire" in line]
    assert "(mover) holds" in one[0]
    assert "(main thread) holds" in two[0]
    for thread in threading.enumerate():
        if thread.name == "mover":
            thread.join(LIMIT)
            assert not thread.is_alive()


@pytest.mark.needs("graphs")
def test_X9_threads_that_wait_for_each_other_are_reported_while_a_graph_keeps_a_function() -> None:
    program = next(program for program in PROGRAMS if program.name == "locks_taken_in_two_orders")
    stream = hs.Stream()
    with hs.capture(stream) as graph:
        stream.call(list)
    with pytest.raises(hs.StallError, match="every thread of the program waits for another one"):
        explore(program.broken, threads=True, shrink_runs=0)
    assert len(graph.nodes) == 1


NEVER = """
    import threading
    import halstream as hs
    from halstream.testing import explore
    def program():
        stream = hs.Stream()
        {make}
        stream.call({wait})
        try:
            stream.synchronize()
        finally:
            {end}
    try:
        explore(program, schedules=2, threads=True)
    except hs.StallError as exc:
        print(exc)
"""


@pytest.mark.parametrize(
    "make, wait, end, words",
    [
        ("turn = threading.Event()", "turn.wait", "turn.set()", "waits in Event.wait()"),
        ("turn = threading.Lock(); turn.acquire()", "turn.acquire", "turn.release()", "waits for a lock that is taken"),
    ],
    ids=["event", "lock"],
)
def test_X9_a_function_that_waits_for_ever_is_reported(child: Any, make: str, wait: str, end: str, words: str) -> None:
    done = child(NEVER.format(make=make, wait=wait, end=end))
    assert "this wait can never end" in done.stdout and words in done.stdout, done.stderr


def test_X9_a_thread_that_waits_in_a_socket_loses_its_turn_and_the_token_says_so() -> None:
    ours, other = socket.socketpair()
    with ours, other, schedule("fifo @ stay") as run:
        thread = threading.Thread(target=lambda: (hs.Stream().query(), other.send(b"x")))
        thread.start()
        assert ours.recv(1) == b"x"
        thread.join()
    assert "main thread" in run.execution.uncontrolled
    assert "+us" in str(run.token)


# The main thread has the turn, and works without Python's lock, but a process that is more urgent has the processor. Of
# a process of its own: only a privileged one may become as urgent as before.
STARVED = """
    import hashlib, os, subprocess, sys, threading
    from time import CLOCK_MONOTONIC, clock_gettime, process_time
    import halstream as hs
    from halstream.testing import schedule

    data, processors = bytes(1 << 20), os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    uses_it = "import os\\nparent = os.getppid()\\nprint(flush=True)\\nwhile os.getppid() == parent: sum(range(10**5))"
    busy = subprocess.Popen([sys.executable, "-c", uses_it], stdout=subprocess.PIPE)
    busy.stdout.readline()  # it has begun
    os.sched_setaffinity(0, processors)
    try:
        with schedule("fifo @ stay") as run:
            thread = threading.Thread(target=lambda: hs.Stream().query())
            thread.start()
            os.sched_setaffinity(0, {min(processors)})
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            begun, used = clock_gettime(CLOCK_MONOTONIC), process_time()
            while clock_gettime(CLOCK_MONOTONIC) < begun + 2:  # eight times what a thread that waits is given
                hashlib.sha256(data)
            used = (process_time() - used) / (clock_gettime(CLOCK_MONOTONIC) - begun)
            busy.kill()
            thread.join()
    finally:
        busy.kill()
        busy.communicate()
    assert run.execution.uncontrolled == "", run.execution.uncontrolled
    print("starved" if used < 0.2 else "not starved")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread says how urgent it is")
def test_X9_a_thread_that_gets_no_processor_keeps_its_turn(child: Callable[..., Any]) -> None:
    done = child(STARVED)
    assert done.returncode == 0, done.stderr
    if done.stdout != "starved\n":
        pytest.skip("the system gives a thread the processor beside one that is more urgent")


def test_X9_sleeps_and_time_limits_take_no_time_and_hooks_are_taken_out() -> None:
    before = (threading.Lock, threading.Thread.start, time.sleep, hs.Stream.record)
    event = threading.Event()
    with schedule("fifo @ stay"):
        inner, begun = threading.Event(), time.monotonic()
        threading.Timer(3600, inner.set).start()
        assert inner.wait(7200)
        time.sleep(3600)
        assert not threading.Event().wait(3600)
        assert time.monotonic() - begun < 3600
    assert before == (threading.Lock, threading.Thread.start, time.sleep, hs.Stream.record)
    assert not event.is_set()


def test_X9_an_exception_ends_threads_that_would_wait_for_ever() -> None:
    threads: list[threading.Thread] = []
    with pytest.raises(KeyboardInterrupt), schedule("fifo @ stay"):
        threads.append(threading.Thread(target=threading.Event().wait))
        threads[0].start()
        hs.Stream().query()
        time.sleep(0)
        raise KeyboardInterrupt
    threads[0].join(LIMIT)
    assert not threads[0].is_alive()


@pytest.mark.parametrize("wrong", ["fifo @ nothing", "fifo @ random", "fifo @ turns 1", "fifo @ pct 1 2"])
def test_X9_an_unknown_strategy_for_threads_is_refused(wrong: str) -> None:
    with pytest.raises(hs.ScheduleError):
        schedule(wrong)


def test_X9_a_proof_refuses_host_threads() -> None:
    with pytest.raises(hs.ScheduleError, match="not every order of its host threads"):
        explore(lambda: None, prove=10, threads=True)


def test_X9_sanitizer_sees_the_order_of_controlled_locks() -> None:
    def program() -> None:
        x, one, two, lock = hs.zeros(4), hs.Stream(), hs.Stream(), threading.Lock()
        hs.synchronize()

        def work(stream: hs.Stream) -> None:
            with lock:
                x.fill(1, stream)
                stream.synchronize()

        thread = threading.Thread(target=work, args=(one,))
        thread.start()
        work(two)
        thread.join()

    explore(program, threads=True, sanitize=True, schedules=10)


def test_X9_the_option_controls_threads() -> None:
    plan = plan_of({"threads": True}, Plan())
    assert (plan.threads, plan.schedules) == (True, 50)


# -- the memory functions of dialects --------------------------------------------


def _nothing(x: object) -> None:
    pass


def _on_acl(x: hs.Array) -> None:
    assert acl.rt.set_device(0) == 0


DEVICE_TO_DEVICE = 3
#: What the thread does before, the call that is looked at, and what gives back what it returned.
MEMORY: dict[str, tuple[Callable[[hs.Array], object], Callable[[hs.Array], Any], Callable[[Any], object]]] = {
    "cupy memset": (_nothing, lambda x: runtime.memset(x.ptr, 1, 8), _nothing),
    "cupy memcpyAsync": (_nothing, lambda x: runtime.memcpyAsync(x.ptr, x.ptr + 8, 8, DEVICE_TO_DEVICE, 0), _nothing),
    "cupy memcpy2D": (
        _nothing,
        lambda x: runtime.memcpy2D(x.ptr, 2, x.ptr + 8, 2, 2, 2, DEVICE_TO_DEVICE),
        _nothing,
    ),
    "cupy malloc": (_nothing, lambda x: runtime.malloc(8), runtime.free),
    "acl malloc_host": (_on_acl, lambda x: acl.rt.malloc_host(8)[0], acl.rt.free_host),
}


@pytest.mark.parametrize("case", MEMORY)
def test_X9_another_thread_may_go_on_at_a_memory_function_of_a_dialect(case: str) -> None:
    begin, touch, end = MEMORY[case]

    def program() -> None:
        x, inside = hs.zeros(16, np.uint8), []

        def work() -> None:
            begin(x)
            inside.append(1)
            made = touch(x)
            inside.clear()
            end(made)

        thread = threading.Thread(target=work)
        thread.start()
        seen = bool(inside)
        thread.join()
        assert not seen, "the main thread went on while the other one called"

    with pytest.raises(AssertionError, match="went on while the other one called") as found:
        explore(program, threads=True, shrink_runs=4)
    with pytest.raises(AssertionError), schedule(_token(found.value)):
        program()
