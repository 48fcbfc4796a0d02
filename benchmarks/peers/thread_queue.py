"""A Python thread that takes functions from a queue.SimpleQueue: a stream of twenty lines.

The worker needs the GIL, so nothing runs while the caller goes on: `put`
costs little because it only appends. What the hand-over costs shows in the
round trip.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ..measure import SIZES, Sheet
from ..peer import Peer

PEER = Peer("thread_queue", "thread + queue", "")


def nop() -> None:
    """Do nothing."""


class Stream:
    """A queue and its thread."""

    def __init__(self) -> None:
        queue: SimpleQueue[Any] = SimpleQueue()
        self.put = queue.put
        self.idle = threading.Lock()
        self.idle.acquire()
        threading.Thread(target=self.work, args=(queue.get,), daemon=True).start()

    @staticmethod
    def work(get: Any) -> None:
        """Run what arrives."""
        while True:
            get()()

    def synchronize(self) -> None:
        """Wait for all that was put."""
        self.put(self.idle.release)
        self.idle.acquire()


def hops(a: Stream, b: Stream, count: int) -> None:
    """Chain two threads by locks, `count` times in all, submitted at once."""
    locks = [threading.Lock() for _ in range(count)]
    for lock in locks:
        lock.acquire()
    here, there = a, b
    for lock in locks:
        here.put(lock.release)
        there.put(lock.acquire)
        here, there = there, here
    here.synchronize()


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent."""
    s, s2 = Stream(), Stream()
    done = threading.Event()
    env: dict[str, Any] = {"s": s, "s2": s2, "put": s.put, "put2": s2.put, "nop": nop, "done": done}
    env |= {"ready": threading.Lock(), "wait": s.synchronize}
    env["ready"].acquire()
    gate = threading.Lock()
    gate.acquire()
    s.put(gate.acquire)
    sheet.pending(lambda n: put_many(s, n), gate.release, 200_000)
    s.synchronize()
    # A record is an Event that the worker sets.
    sheet.batch("record", "put(done.set)", env, "wait()")
    sheet.asleep("record", "put(done.set)", env, "wait()")
    env["Event"] = threading.Event
    sheet.batch("record_new", "put(Event().set)", env, "wait()")
    sheet.batch("nop", "put(nop)", env, "wait()")
    sheet.asleep("nop", "put(nop)", env, "wait()")
    done.set()
    sheet.batch("query", "done.is_set()", env)
    sheet.batch("sync_idle", "done.wait()", env)
    sheet.round_trip("s.synchronize()", env, "wait()")
    sheet.idle_cpu("wait()", env)
    sheet.single("cross", "put(ready.release); put2(ready.acquire); s2.synchronize()", env, "wait()")
    sheet.hops(lambda n: hops(s, s2, n), rounds=3)
    sheet.delay(s.put, s.synchronize)
    sheet.single("function_lock", "put(ready.release); ready.acquire()", env)
    sheet.rate("functions_rate", lambda n: fill([s], n), 50_000)
    sheet.rate("stream1_rate", lambda n: fill([s], n), 100_000)
    streams = [Stream() for _ in range(8)]
    sheet.rate("streams8_rate", lambda n: fill(streams, n // 8), 80_000)
    for name, size in SIZES.items():
        with sheet.attempt(f"copy_{name}"):
            copy = copier(size)
            sheet.copies(name, "put(copy); wait()", {**env, "copy": copy}, "wait()", "put(copy)")


def copier(size: int) -> Callable[[], None]:
    """Return a function that copies between two of NumPy's arrays."""
    import numpy as np

    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    return lambda: np.copyto(target, source)


def put_many(s: Stream, count: int) -> None:
    """Put `count` empty functions."""
    put = s.put
    for _ in range(count):
        put(nop)


def fill(streams: list[Stream], count: int) -> None:
    """Put `count` empty functions on each stream in turn, and wait for all."""
    puts = [s.put for s in streams]
    for _ in range(count):
        for put in puts:
            put(nop)
    for s in streams:
        s.synchronize()
