"""halstream on the host device, through a dialect's classes, as a program calls them."""

from __future__ import annotations

from typing import Any

from ..measure import Sheet, beside_thread
from ..peer import Peer

PEER = Peer("halstream", "halstream", "halstream", parts=("_many", "_memory"))


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
    sheet.pending(lambda n: pile(s, n), release, 1_000_000)
    # The stream stays idle: a record there is complete when the call returns.
    sheet.batch("record", "s.record_event(e)", env)
    sheet.asleep("record", "s.record_event(e)", env, "s.synchronize()")
    sheet.batch("record_new", "s.record_event()", env)
    sheet.batch("nop", "s.nop()", env, "s.synchronize()")
    sheet.asleep("nop", "s.nop()", env, "s.synchronize()")
    sheet.batch("query", "e.query()", env)
    sheet.batch("sync_idle", "s.synchronize()", env)
    sheet.round_trip("s.nop(); s.synchronize()", env, count=3000)
    sheet.idle_cpu("s.nop(); s.synchronize()", env)
    # The host only looks, so a worker must do it.
    sheet.single("handoff", "s.nop()\nwhile not s.query(): pass", env)
    sheet.single("cross", "s.nop(); s.record_event(e); s2.wait_event(e); s2.synchronize()", env, "s.synchronize()")
    f = s2.record_event()
    sheet.hops(lambda n: hops(s, s2, e, f, n))
    with sheet.attempt("hop_run"):
        sheet.put("hop_run", gated_hops(hs.testing.Gate, s, s2, e, f))
    sheet.delay(s.call, s.synchronize)
    sheet.rate("functions_rate", lambda n: calls(s, n), 50_000)
    streams = [cuda.Stream() for _ in range(8)]
    sheet.rate("streams8_rate", lambda n: fill(streams, n // 8), 200_000)
    sheet.batch("with_stream", "with s: pass", env)
    sheet.batch("with_cuda_stream", "with cuda.stream(s): pass", env)
    for row, statement in (("busy_record", "s.record_event(e)"), ("busy_nop", "s.nop()")):
        with sheet.attempt(row):
            figures = beside_thread(statement, env, "s.synchronize()")
            for index, kind in enumerate(("median", "mean")):
                sheet.put(f"{row}_{kind}", figures["busy"][index] / figures["quiet"][index])


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
