"""A Python thread that takes functions from a queue.SimpleQueue: a stream of twenty lines.

The worker needs the GIL, so nothing runs while the caller goes on: `put` costs little because it only appends. What the
hand-over costs shows in the rows with a synchronize.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

from ..measure import Sheet
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


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent; a record is an Event that the worker sets."""
    s, s2, done = Stream(), Stream(), threading.Event()
    ready = threading.Lock()
    ready.acquire()
    env: dict[str, Any] = {"s2": s2, "put": s.put, "put2": s2.put, "done": done, "ready": ready, "wait": s.synchronize}
    sheet.batch("record", "put(Event().set)", {**env, "Event": threading.Event}, "wait()")
    done.set()
    sheet.batch("query", "done.is_set()", env)
    sheet.single("round_trip", "wait()", env, "wait()")
    sheet.single("cross", "put(ready.release); put2(ready.acquire); s2.synchronize()", env, "wait()")
    sheet.function(s.put, s.synchronize)
    sheet.rate("functions", lambda n: fill(s, n), 50_000)


def fill(s: Stream, count: int) -> None:
    """Put `count` empty functions on the stream, and wait for all."""
    for _ in range(count):
        s.put(nop)
    s.synchronize()
