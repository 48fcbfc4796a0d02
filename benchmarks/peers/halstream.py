"""halstream on the host device, through a dialect's classes, as a program calls them."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

from ..measure import Sheet, beside_thread, quiet, resident
from ..peer import Peer

PEER = Peer("halstream", "halstream", "halstream", parts=("_many", "_memory", "_graphs", "_awaits"))


def measure(sheet: Sheet) -> None:
    """Measure every row."""
    import halstream as hs
    from halstream.torch import cuda

    sheet.info |= {"backend": hs.backend(), "version": hs.__version__}
    s, s2 = cuda.Stream(), cuda.Stream()
    e = s.record_event()
    env: dict[str, Any] = {"s": s, "s2": s2, "e": e, "cuda": cuda}

    gate = hs.testing.Gate(s)

    def release() -> None:
        gate.open()
        s.synchronize()

    # First, while nothing that was freed can be used again.
    with sheet.attempt("event_bytes"):
        sheet.put("event_bytes", event_bytes(s))
    sheet.pending(lambda n: pile(s, n), release, 1_000_000)
    # The stream stays idle: a record there is complete when the call returns.
    sheet.batch("record", "s.record_event(e)", env)
    sheet.asleep("record", "s.record_event(e)", env, "s.synchronize()")
    sheet.batch("record_new", "s.record_event()", env)
    divide(sheet, "record_new_reused", "record_new", "record")
    with sheet.attempt("record_new_busy"):
        gate = hs.testing.Gate(s)
        sheet.batch("record_new_busy", "s.record_event()", env)
        release()
    sheet.batch("nop", "s.nop()", env, "s.synchronize()")
    sheet.asleep("nop", "s.nop()", env, "s.synchronize()")
    sheet.batch("query", "e.query()", env)
    sheet.batch("query_idle", "s.query()", env)
    sheet.batch("sync_idle", "s.synchronize()", env)
    sheet.batch("builtin", "text.isascii()", {"text": ""})
    for row in ("query", "query_idle", "sync_idle"):
        divide(sheet, f"{row}_builtin", row, "builtin")
    sheet.round_trip("s.nop(); s.synchronize()", env, count=3000)
    sheet.idle_cpu("s.nop(); s.synchronize()", env)
    # The host only looks, so a worker must do it.
    sheet.single("handoff", "s.nop()\nwhile not s.query(): pass", env)
    sheet.single("cross", "s.nop(); s.record_event(e); s2.wait_event(e); s2.synchronize()", env, "s.synchronize()")
    cross = "s.nop(); s2.wait_event(s.record_event()); s2.synchronize()"
    sheet.single("cross_new", cross, env, "s.synchronize()")
    sheet.hops(lambda n: fresh_hops(s, s2, n), row="hop_new")
    f = s2.record_event()
    sheet.hops(lambda n: hops(s, s2, e, f, n))
    with sheet.attempt("hop_run"):
        sheet.put("hop_run", gated_hops(hs.testing.Gate, s, s2, e, f))
    sheet.delay(s.call, s.synchronize)
    lock = threading.Lock()
    lock.acquire()
    sheet.single("function_lock", "call(lock.release); lock.acquire()", {"call": s.call, "lock": lock})
    sheet.rate("functions_rate", lambda n: calls(s, n), 50_000)
    divide(sheet, "functions_asyncio", "functions_rate")
    sheet.rate("stream1_rate", lambda n: fill([s], n), 100_000)
    sheet.rate("stream1_batches", lambda n: fill_batches(s, n), 100_000)
    streams = [cuda.Stream() for _ in range(8)]
    sheet.rate("streams8_rate", lambda n: fill(streams, n // 8), 200_000)
    sheet.batch("with_stream", "with s: pass", env)
    sheet.batch("with_cuda_stream", "with cuda.stream(s): pass", env)
    for row, statement in (("busy_record", "s.record_event(e)"), ("busy_nop", "s.nop()")):
        with sheet.attempt(row):
            figures = beside_thread(statement, env, "s.synchronize()")
            for index, kind in enumerate(("median", "mean")):
                sheet.put(f"{row}_{kind}", figures["busy"][index] / figures["quiet"][index])


def divide(sheet: Sheet, row: str, above: str, below: str = "") -> None:
    """Note a row as another one, or as the ratio of two, unless they are missing."""
    with sheet.attempt(row):
        sheet.put(row, sheet.rows[above][""] / (sheet.rows[below][""] if below else 1))


def event_bytes(s: Any) -> float:
    """Return the memory of a recorded event, less what Python's allocators gave for it."""
    count = 100_000
    with quiet():
        before = resident()
        events = [s.record_event() for _ in range(count)]
        taken = (resident() - before) / count
        tracemalloc.start()
        events = [s.record_event() for _ in range(count // 10)]
        traced, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return taken - traced / len(events)


def fill_batches(s: Any, count: int) -> None:
    """Enqueue `count` empty functions, 1,000 at a time, and wait."""

    def function() -> None:
        pass

    batch = [function] * 1000
    for _ in range(count // 1000):
        s.call_many(batch)
    s.synchronize()


def calls(s: Any, count: int) -> None:
    """Call an empty function `count` times in stream order, and wait."""

    def function() -> None:
        pass

    for _ in range(count):
        s.call(function)
    s.synchronize()


def pile(s: Any, count: int) -> None:
    """Enqueue `count` empty operations."""
    for _ in range(count):
        s.nop()


def fill(streams: list[Any], count: int) -> None:
    """Enqueue `count` empty operations on each stream in turn, and wait for all."""
    for _ in range(count):
        for s in streams:
            s.nop()
    for s in streams:
        s.synchronize()


def submit(s: Any, s2: Any, e: Any, f: Any, count: int) -> None:
    """Submit a chain that alternates between two streams, with two events used again and again."""
    for _ in range(count // 2):
        s.record_event(e)
        s2.wait_event(e)
        s2.record_event(f)
        s.wait_event(f)


def hops(s: Any, s2: Any, e: Any, f: Any, count: int) -> None:
    """Submit a chain and wait for its end."""
    # Without an operation at its head each link would be complete when it is made.
    s.nop()
    submit(s, s2, e, f, count)
    s.synchronize()


def fresh_hops(s: Any, s2: Any, count: int) -> None:
    """Submit a chain with a fresh event for each hop, and wait for its end."""
    s.nop()
    here, there = s, s2
    for _ in range(count):
        there.wait_event(here.record_event())
        here, there = there, here
    here.synchronize()


def gated_hops(gate_class: Any, s: Any, s2: Any, e: Any, f: Any) -> float:
    """Return microseconds per hop from opening the gate before a submitted chain of 1,000."""
    import statistics
    import time

    times = []
    for _ in range(7):
        gate = gate_class(s)
        submit(s, s2, e, f, 1000)
        start = time.perf_counter()
        gate.open()
        s.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3
