"""halstream's streams and events in an event loop of asyncio."""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

from ..measure import Sheet, quiet
from .asyncio_loop import awaits

ROUNDS = 7
TASKS = 10_000


def measure(sheet: Sheet) -> None:
    """Measure what `await` costs."""
    import halstream as hs

    streams = [hs.Stream() for _ in range(8)]
    done = streams[0].record()
    streams[0].synchronize()

    async def finished(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            await done
        return count / (time.perf_counter() - start)

    async def turns(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            streams[0].call(int)
            await streams[0]
        return (time.perf_counter() - start) / count * 1e6

    async def pending(count: int) -> float:
        gates = [hs.testing.Gate(s) for s in streams]
        events = [streams[i % 8].record() for i in range(count)]

        def release() -> None:
            for gate in gates:
                gate.open()

        return await awaits(events, release)

    for row, run, count in (
        ("await_done", finished, 100_000),
        ("await_rate", pending, TASKS),
        ("await_turn", turns, 2000),
    ):
        with sheet.attempt(row):
            sheet.put(row, median_of(run, count))


def median_of(run: Any, count: int) -> float:
    """Return the median of some runs in a loop of their own, after one that does not count."""

    async def main() -> float:
        await run(count)
        found = []
        for _ in range(ROUNDS):
            with quiet():
                found.append(await run(count))
        return statistics.median(found)

    return asyncio.run(main())
