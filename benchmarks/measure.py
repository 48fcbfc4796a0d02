"""Ways to measure, for the processes that run.py starts.

Standard library only: this file runs in every peer's environment. Nothing here judges a figure.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
import timeit
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

BATCH_S = 0.01  # one batch of calls takes about as long
BATCHES = 15
MOST = 2000  # calls in a batch: a backlog that grows without end would be another row

SIZES = {"4m": 4_000_000, "64m": 64_000_000}  # of the copies

Env = dict[str, Any]


class Sheet:
    """What one process measured: figures by row. Of several ways to do the same with a peer the fastest counts."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, float]] = {}
        self.errors: dict[str, str] = {}

    def put(self, row: str, value: float, way: str = "") -> None:
        """Note a figure."""
        self.rows.setdefault(row, {})[way] = value

    @contextmanager
    def attempt(self, row: str) -> Iterator[None]:
        """Keep an exception to its row."""
        try:
            yield
        except Exception as exc:
            self.errors[row] = f"{type(exc).__name__}: {exc}".splitlines()[0][:200]
            traceback.print_exc(file=sys.stderr)

    def batch(self, row: str, statement: str, env: Env, after: str = "pass", way: str = "", most: int = MOST) -> None:
        """Note the microseconds of one execution within a batch; `after` is not counted."""
        with self.attempt(row):
            self.put(row, per_call(statement, env, after, most), way)

    def single(
        self, row: str, statement: str, env: Env, before: str = "pass", way: str = "", count: int = 1000
    ) -> None:
        """Note the median of executions timed one by one, in microseconds; `before` is not counted."""
        with self.attempt(row):
            self.put(row, statistics.median(singles(statement, env, before, count)), way)

    def function(self, call: Callable[[Callable[[], None]], Any], wait: Callable[[], Any], way: str = "") -> None:
        """Note the microseconds from handing over a function to its first line; `wait` waits until it has run."""
        with self.attempt("function"):
            self.put("function", statistics.median(delays(call, wait, 1000)), way)

    def rate(self, row: str, run: Callable[[int], Any], count: int, way: str = "") -> None:
        """Note how many operations per second `run(count)` does, completion included."""
        with self.attempt(row):
            run(count // 10)
            taken = []
            for _ in range(3):
                with quiet():
                    start = time.perf_counter()
                    run(count)
                    taken.append(time.perf_counter() - start)
            self.put(row, count / statistics.median(taken), way)

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
    """Return the median over batches of the microseconds of one execution."""
    timer = timeit.Timer(statement, globals=env)
    finish = timeit.Timer(after, globals=env)
    timer.timeit(5)
    finish.timeit(1)
    once = timer.timeit(20) / 20
    finish.timeit(1)
    count = max(5, min(most, int(BATCH_S / max(once, 1e-8))))
    times = []
    for _ in range(BATCHES):
        times.append(timer.timeit(count) / count)
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
    """Return the microseconds of executions timed one by one, less what the clock costs."""
    space = dict(env)
    exec(_TEMPLATE.format(before=before, statement=statement), space)
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
    one, other = (statistics.median(times[2:]) * 1e6 for times in taken)
    return one, other


def delays(call: Callable[[Callable[[], None]], Any], wait: Callable[[], Any], count: int) -> list[float]:
    """Return the microseconds from handing over a function to its first line."""
    clock = time.perf_counter_ns
    seen: list[int] = []

    def stamp() -> None:
        seen.append(clock())

    times = []
    with quiet():
        for _ in range(count):
            wait()
            start = clock()
            call(stamp)
            wait()
            times.append((seen[-1] - start) / 1000)
    return times
