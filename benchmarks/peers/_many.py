"""What 10,000 streams cost: threads, memory, and each operation on them.

Through the cupy dialect, whose streams say whether they are blocking and are
all different (torch's come from a pool of 32).
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from ..measure import Sheet, os_threads, quiet, resident

COUNT = 10_000
ROUNDS = 15


def measure(sheet: Sheet) -> None:
    """Measure the rows about many streams."""
    from halstream import _halstream as extension  # the only place that tells of goroutines
    from halstream.cupy import cuda

    null = cuda.Stream.null
    one = cuda.Stream(non_blocking=True)
    for _ in range(100):  # until Go has the threads that every program of it has after a while
        one.nop()
        null.synchronize()
        time.sleep(0.001)
    with sheet.attempt("many_bytes"):
        # First, while nothing that was freed can be used again.
        threads, goroutines, memory = os_threads(), extension.pybuild_Goroutines(), resident()
        streams = [cuda.Stream(non_blocking=True) for _ in range(COUNT)]
        whole = (resident() - memory) / COUNT
        sheet.put("many_threads", os_threads() - threads)
        sheet.put("many_goroutines", extension.pybuild_Goroutines() - goroutines)
        tracemalloc.start()
        more = [cuda.Stream(non_blocking=True) for _ in range(COUNT // 10)]
        objects, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        sheet.put("many_bytes", whole - objects / len(more))
        sheet.put("many_bytes_object", whole)
        del streams, more
    for kind, non_blocking in (("", True), ("_legacy", False)):
        with sheet.attempt(f"many{kind}_each"):
            one = cuda.Stream(non_blocking=non_blocking)
            busy = null if kind else one
            together = alternate if kind else spread
            alone, single = on_one(busy), together([one] * COUNT)
            streams = [cuda.Stream(non_blocking=non_blocking) for _ in range(COUNT)]
            # One operation after the other on a stream beside the 10,000; then one on each of them.
            sheet.put(f"many{kind}_beside", on_one(busy) / alone)
            sheet.put(f"many{kind}_each", together(streams) / single)
            del streams
            null.synchronize()


def timed(run: Callable[[], None]) -> float:
    """Return the median of some runs in seconds, after one that does not count."""
    run()
    times = []
    for _ in range(ROUNDS):
        with quiet():
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def on_one(stream: Any) -> float:
    """Time operations on one stream: enqueue and completion."""

    def run() -> None:
        for _ in range(COUNT):
            stream.nop()
        stream.synchronize()

    return timed(run)


def spread(streams: list[Any]) -> float:
    """Time one operation on each of some streams, and their completion."""

    def run() -> None:
        for stream in streams:
            stream.nop()
        for stream in streams:
            stream.synchronize()

    return timed(run)


def alternate(streams: list[Any]) -> float:
    """Time operations that the legacy order puts between those of the default stream."""
    from halstream.cupy import cuda

    null = cuda.Stream.null

    def run() -> None:
        for stream in streams:
            stream.nop()
            null.nop()
        null.synchronize()

    return timed(run)
