"""asyncio: a loop is one stream of callbacks; a future is an event.

Two ways: the loop in the caller's thread ("same thread"), where nothing is
handed over and nobody must be woken, and in a thread of its own ("threadsafe"),
the only way that is measured after pauses.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..measure import BATCHES, Sheet, delays
from ..peer import Peer

PEER = Peer("asyncio_loop", "asyncio", "asyncio")
SAME, OTHER = "same thread", "threadsafe"


def nop() -> None:
    """Do nothing."""


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent."""
    loop = asyncio.new_event_loop()
    finished = loop.create_future()
    finished.set_result(None)

    def drain() -> None:
        loop.run_until_complete(asyncio.sleep(0))

    env = {"loop": loop, "nop": nop, "finished": finished, "drain": drain}
    sheet.pending(lambda n: fill(loop.call_soon, n, nop), drain, 200_000)
    # A record is a future that the loop completes.
    record = "loop.call_soon(loop.create_future().set_result, None)"
    sheet.batch("record", record, env, "drain()", SAME)
    sheet.batch("nop", "loop.call_soon(nop)", env, "drain()", SAME)
    event = asyncio.Event()
    event.set()
    env["event"] = event
    sheet.batch("query", "finished.done()", env, way="future")
    sheet.batch("query", "event.is_set()", env, way="event")

    async def wait_for_finished(loop: Any) -> None:
        await finished

    for row, once, count in (("sync_idle", wait_for_finished, 1000), ("cross", cross, 200)):
        with sheet.attempt(row):
            sheet.put(row, statistics.median(inside(loop, once, count, BATCHES)), SAME)
    with sheet.attempt("round_trip"):
        times = inside(loop, round_trip, 1, 2000)
        sheet.put("round_trip", statistics.median(times), SAME)
        sheet.put("round_trip_p99", sorted(times)[1980], SAME)
    sheet.hops(lambda n: hops(loop, n), way=SAME)
    with sheet.attempt("function_delay"):
        sheet.put("function_delay", statistics.median(delays(loop.call_soon, drain, 300, 0)), SAME)
    sheet.rate("functions_rate", lambda n: fill(loop.call_soon, n, drain), 50_000, SAME)
    sheet.rate("stream1_rate", lambda n: fill(loop.call_soon, n, drain), 100_000, SAME)
    # Eight streams are eight tasks of one loop; the ready list is one, so this is the row above.
    sheet.rate("streams8_rate", lambda n: fill(loop.call_soon, n, drain), 80_000, SAME)
    with sheet.attempt("await_rate"):
        rates = [loop.run_until_complete(futures(10_000)) for _ in range(8)]
        sheet.put("await_rate", statistics.median(rates[1:]), SAME)
    loop.close()
    beside(sheet)


def inside(
    loop: asyncio.AbstractEventLoop, once: Callable[[Any], Awaitable[Any]], count: int, batches: int
) -> list[float]:
    """Return microseconds per `await once(loop)`, for each batch of `count`."""

    async def run() -> list[float]:
        times = []
        for _ in range(batches):
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


async def awaits(objects: Sequence[Any], release: Callable[[], object]) -> float:
    """Return how many awaits a second there are when a task waits for each object, and then all are released.

    To make the tasks counts as well.
    """

    async def wait(one: Any) -> None:
        await one

    start = time.perf_counter()
    tasks = [asyncio.ensure_future(wait(one)) for one in objects]
    await asyncio.sleep(0)  # each of them runs up to its await
    release()
    for task in tasks:
        await task
    return len(objects) / (time.perf_counter() - start)


async def futures(count: int) -> float:
    """Return the same of futures that the loop completes."""
    loop = asyncio.get_running_loop()
    found = [loop.create_future() for _ in range(count)]

    def release() -> None:
        for future in found:
            future.set_result(None)

    return await awaits(found, release)


def hops(loop: asyncio.AbstractEventLoop, count: int) -> None:
    """Chain `count` futures and wait for the last."""
    futures = [loop.create_future() for _ in range(count + 1)]
    for future, following in itertools.pairwise(futures):
        future.add_done_callback(lambda _, following=following: following.set_result(None))  # type: ignore[misc]
    loop.call_soon(futures[0].set_result, None)
    loop.run_until_complete(futures[-1])


def fill(call: Callable[..., Any], count: int, finish: Callable[[], Any]) -> None:
    """Hand over `count` empty functions, and finish."""
    for _ in range(count):
        call(nop)
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

    env = {"call": call, "nop": nop, "wait": wait, "ready": ready, "loop": loop}
    sheet.asleep("record", "call(loop.create_future().set_result, None)", env, "wait()", OTHER)
    sheet.asleep("nop", "call(nop)", env, "wait()", OTHER)
    sheet.round_trip("wait()", env, "wait()", OTHER)
    sheet.idle_cpu("wait()", env)
    sheet.delay(call, wait, OTHER)
    sheet.single("function_lock", "wait()", env, way=OTHER)
    call(loop.stop)
    thread.join()
    loop.close()
