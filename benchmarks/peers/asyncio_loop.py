"""asyncio: a loop is one stream of callbacks, a future is an event.

Two ways: the loop in the caller's thread ("same thread"), where nothing is handed over and nobody must be woken, and in
a thread of its own ("threadsafe").
"""

from __future__ import annotations

import asyncio
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ..measure import BATCHES, Sheet
from ..peer import Peer

PEER = Peer("asyncio_loop", "asyncio", "asyncio")
SAME, OTHER = "same thread", "threadsafe"


def nop() -> None:
    """Do nothing."""


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent; a record is a future that the loop completes."""
    loop = asyncio.new_event_loop()
    finished = loop.create_future()
    finished.set_result(None)

    def drain() -> None:
        loop.run_until_complete(asyncio.sleep(0))

    env = {"loop": loop, "finished": finished, "drain": drain}
    sheet.batch("record", "loop.call_soon(loop.create_future().set_result, None)", env, "drain()", SAME)
    sheet.batch("query", "finished.done()", env, way=SAME)
    for row, once in (("round_trip", round_trip), ("cross", cross)):
        with sheet.attempt(row):
            sheet.put(row, statistics.median(inside(loop, once)), SAME)
    sheet.rate("functions", lambda n: fill(loop, n, drain), 50_000, SAME)
    loop.close()
    beside(sheet)


def inside(loop: asyncio.AbstractEventLoop, once: Callable[[Any], Awaitable[Any]], count: int = 200) -> list[float]:
    """Return microseconds per `await once(loop)`, for each batch of `count`."""

    async def run() -> list[float]:
        times = []
        for _ in range(BATCHES):
            start = time.perf_counter_ns()
            for _ in range(count):
                await once(loop)
            times.append((time.perf_counter_ns() - start) / 1000 / count)
        return times

    loop.run_until_complete(run())
    return loop.run_until_complete(run())


async def round_trip(loop: Any) -> None:
    """Have the loop complete a future, and wait for it."""
    future = loop.create_future()
    loop.call_soon(future.set_result, None)
    await future


async def cross(loop: Any) -> None:
    """Complete a future; its callback completes another; wait for that."""
    first, second = loop.create_future(), loop.create_future()
    first.add_done_callback(lambda _: second.set_result(None))
    loop.call_soon(first.set_result, None)
    await second


def fill(loop: asyncio.AbstractEventLoop, count: int, finish: Callable[[], Any]) -> None:
    """Hand over `count` empty functions, and finish."""
    for _ in range(count):
        loop.call_soon(nop)
    finish()


def beside(sheet: Sheet) -> None:
    """Measure with the loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    ready = threading.Lock()
    ready.acquire()
    call = loop.call_soon_threadsafe

    def wait() -> None:
        call(ready.release)
        ready.acquire()

    sheet.single("round_trip", "wait()", {"wait": wait}, "wait()", OTHER)
    sheet.function(call, wait, OTHER)
    call(loop.stop)
    thread.join()
    loop.close()
