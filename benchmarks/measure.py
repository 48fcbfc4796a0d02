"""Ways to measure, for the processes that run.py starts.

Standard library only: this file runs in every peer's environment. Times are
microseconds. Nothing here judges a figure.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import threading
import time
import timeit
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BATCH_S = 0.01  # one batch of calls takes about as long
BATCHES = 15
MOST = 2000  # calls in a batch: a backlog that grows without end would be another row
ASLEEP_S = 0.005  # after so long without work no worker of any peer is still awake
WOKEN = 40  # calls after such a pause

SIZES = {"4m": 4_000_000, "64m": 64_000_000}  # of the large copies

Env = dict[str, Any]


class Sheet:
    """What one process measured.

    A row may get several figures, one for each way to do the same thing with
    a peer; the report takes the best way.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float]] = {}
        self.woken: dict[str, dict[str, float]] = {}
        self.errors: dict[str, str] = {}
        self.info: dict[str, Any] = {}

    def put(self, row: str, value: float, way: str = "") -> None:
        """Note a figure."""
        self.rows.setdefault(row, {})[way] = value

    def put_woken(self, row: str, value: float, way: str = "") -> None:
        """Note a figure for the same row after a pause in which the workers fell asleep."""
        self.woken.setdefault(row, {})[way] = value

    @contextmanager
    def attempt(self, row: str) -> Iterator[None]:
        """Keep an exception to its row."""
        try:
            yield
        except Exception as exc:
            self.errors[row] = f"{type(exc).__name__}: {exc}".splitlines()[0][:200]
            traceback.print_exc(file=sys.stderr)

    def batch(self, row: str, statement: str, env: Env, after: str = "pass", way: str = "", most: int = MOST) -> None:
        """Note what one execution costs within a batch; `after` is not counted."""
        with self.attempt(row):
            self.put(row, per_call(statement, env, after, most), way)

    def single(
        self, row: str, statement: str, env: Env, before: str = "pass", way: str = "", count: int = 400
    ) -> list[float]:
        """Note the median of executions timed one by one, warm and after pauses.

        `before` runs untimed before each; it makes the peer idle. Returns the
        warm times.
        """
        times: list[float] = []
        with self.attempt(row):
            times = singles(statement, env, before, count)
            self.put(row, statistics.median(times), way)
            self.asleep(row, statement, env, before, way)
        return times

    def asleep(self, row: str, statement: str, env: Env, before: str = "pass", way: str = "") -> None:
        """Note the median of executions that each follow a pause."""
        with self.attempt(row):
            env = {**env, "pause": lambda: time.sleep(ASLEEP_S)}
            times = singles(statement, env, f"{before}; pause()", WOKEN)
            self.put_woken(row, statistics.median(times), way)

    def round_trip(self, statement: str, env: Env, before: str = "pass", way: str = "", count: int = 1000) -> None:
        """Note median and 99th percentile of an empty operation and its completion."""
        times = self.single("round_trip", statement, env, before, way, count)
        if times:
            self.put("round_trip_p99", sorted(times)[int(len(times) * 0.99)], way)

    def idle_cpu(self, statement: str, env: Env) -> None:
        """Note the processor time that the process uses in a pause after an operation, in microseconds.

        Workers that spin before they sleep show here. The pause itself costs some.
        """
        with self.attempt("idle_cpu"):
            once = timeit.Timer(statement, globals=env)
            used = []
            for _ in range(WOKEN):
                once.timeit(1)
                start = time.process_time_ns()
                time.sleep(ASLEEP_S)
                used.append((time.process_time_ns() - start) / 1000)
            self.put("idle_cpu", statistics.median(used))

    def hops(self, run: Callable[[int], Any], rounds: int = 7, way: str = "", row: str = "hop") -> None:
        """Note microseconds per hop of `run(1000)`, which submits a chain at once and waits for its end."""
        with self.attempt(row):
            run(100)
            taken = []
            for _ in range(rounds):
                with quiet():
                    start = time.perf_counter()
                    run(1000)
                    taken.append(time.perf_counter() - start)
            self.put(row, statistics.median(taken) * 1e3, way)

    def delay(self, call: Callable[[Callable[[], None]], Any], wait: Callable[[], Any], way: str = "") -> None:
        """Note the time from handing over a Python function to its first line.

        `call` hands it over, `wait` waits until it has run.
        """
        with self.attempt("function_delay"):
            self.put("function_delay", statistics.median(delays(call, wait, 300, 0)), way)
            self.put_woken("function_delay", statistics.median(delays(call, wait, WOKEN, ASLEEP_S)), way)

    def copies(
        self, size: str, statement: str, env: Env, before: str, handing: str = "", turns: int = 0, way: str = ""
    ) -> None:
        """Note a copy and its completion, alone and in turn with NumPy's copy of its own arrays of that size.

        `handing` is the part of the statement that hands the copy over.
        """
        import numpy as np

        count = turns or {"4m": 300, "64m": 40}[size]
        row = f"copy_{size}"
        with self.attempt(row):
            self.single(row, statement, env, before, way, count)
            if handing:
                self.single(f"handover_{size}", handing, env, before, way, count)
            source, target = np.ones(SIZES[size], np.uint8), np.zeros(SIZES[size], np.uint8)
            both = {**env, "copyto": np.copyto, "np_to": target, "np_from": source}
            own, numpy = alternate(statement, "copyto(np_to, np_from)", both, count)
            self.put(f"{row}_numpy", own / numpy, way)

    def rate(self, row: str, run: Callable[[int], Any], count: int, way: str = "", rounds: int = 3) -> None:
        """Note how many operations per second `run(count)` does, completion included."""
        with self.attempt(row):
            run(max(1, count // 10))
            taken = []
            for _ in range(rounds):
                with quiet():
                    start = time.perf_counter()
                    run(count)
                    taken.append(time.perf_counter() - start)
            self.put(row, count / statistics.median(taken), way)

    def pending(self, fill: Callable[[int], Any], release: Callable[[], Any], count: int) -> None:
        """Note the bytes that one pending operation takes: `fill` piles them up, `release` lets them run."""
        with self.attempt("pending_bytes"):
            try:
                with quiet():
                    before = resident()
                    fill(count)
                    self.put("pending_bytes", (resident() - before) / count)
            finally:
                release()
            self.info["pending operations"] = count

    def emit(self) -> None:
        """Print the sheet as the last line."""
        print(json.dumps(vars(self)), flush=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the cycle collector out of the figures, as timeit does."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def per_call(statement: str, env: Env, after: str = "pass", most: int = MOST) -> float:
    """Return the median over batches of the time of one execution."""
    timer = timeit.Timer(statement, globals=env)
    finish = timeit.Timer(after, globals=env)
    timer.timeit(5)
    finish.timeit(1)
    once = timer.timeit(20) / 20
    finish.timeit(1)
    number = max(5, min(most, int(BATCH_S / max(once, 1e-8))))
    times = []
    for _ in range(BATCHES):
        times.append(timer.timeit(number) / number)
        finish.timeit(1)
    return statistics.median(times) * 1e6


_TEMPLATE = """
def inner(count, clock):
    times = []
    for _ in range(count):
        {before}
        start = clock()
        {statement}
        times.append(clock() - start)
    return times
"""


def singles(statement: str, env: Env, before: str, count: int) -> list[float]:
    """Return the times of executions timed one by one, less what the clock costs."""
    space = dict(env)
    exec(_TEMPLATE.format(before=before, statement=statement.replace("\n", "\n        ")), space)
    inner = space["inner"]
    exec(_TEMPLATE.format(before="pass", statement="pass"), space)
    clock = time.perf_counter_ns
    empty = statistics.median(space["inner"](500, clock))
    with quiet():
        inner(max(1, count // 10), clock)
        return [(taken - empty) / 1000 for taken in inner(count, clock)]


def alternate(first: str, second: str, env: Env, count: int) -> tuple[float, float]:
    """Return the medians of two statements that take turns, in microseconds."""
    timers = [timeit.Timer(statement, globals=env) for statement in (first, second)]
    taken: tuple[list[float], list[float]] = ([], [])
    with quiet():
        for _ in range(count + 2):
            for timer, times in zip(timers, taken, strict=True):
                times.append(timer.timeit(1))
    first_median, second_median = (statistics.median(times[2:]) * 1e6 for times in taken)
    return first_median, second_median


def delays(call: Callable[[Callable[[], None]], Any], wait: Callable[[], Any], count: int, pause: float) -> list[float]:
    """Return the times from handing over a function to its first line."""
    clock = time.perf_counter_ns
    seen: list[int] = []

    def stamp() -> None:
        seen.append(clock())

    times = []
    with quiet():
        for _ in range(count):
            wait()
            if pause:
                time.sleep(pause)
            start = clock()
            call(stamp)
            wait()
            times.append((seen[-1] - start) / 1000)
    return times


def beside_thread(statement: str, env: Env, after: str, seconds: float = 0.5) -> dict[str, tuple[float, float]]:
    """Return (median, mean) of a call, quiet and while another Python thread computes.

    Calls are timed in groups of ten, so that the clock weighs little; a group
    in which the GIL changes hands counts in the mean, hardly in the median.
    """
    group = timeit.Timer(statement, globals=env)
    finish = timeit.Timer(after, globals=env)
    stop = False

    def compute() -> None:
        value = 0
        while not stop:
            value = (value * 31 + 7) % 1_000_003

    def run() -> tuple[float, float]:
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            times.extend(group.timeit(10) / 10 for _ in range(100))
        finish.timeit(1)  # only now: a wait would hand the GIL over at a moment of its own choice
        return statistics.median(times) * 1e6, statistics.fmean(times) * 1e6

    run()
    calm = run()
    thread = threading.Thread(target=compute, daemon=True)
    thread.start()
    try:
        busy = run()
    finally:
        stop = True
        thread.join()
    return {"quiet": calm, "busy": busy}


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    with open("/proc/self/statm") as text:
        return int(text.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def os_threads() -> int:
    """Return the number of threads of this process."""
    return len(os.listdir("/proc/self/task"))
