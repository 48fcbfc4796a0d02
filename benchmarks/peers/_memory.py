"""What memory costs: copies, the pool, functions on arrays.

In a process of its own, as large copies push everything else out of the caches.
"""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable
from typing import Any

from ..measure import SIZES, WOKEN, Sheet, per_call, resident

HELD = 100_000  # blocks, of 256 bytes


def measure(sheet: Sheet) -> None:
    """Measure the rows about memory."""
    import halstream as hs
    import numpy as np
    from halstream import _memory, _native

    s, e = hs.Stream(), hs.Event()
    small, there = hs.pinned_empty(1024, np.uint8), hs.empty(1024, np.uint8)
    env: dict[str, Any] = {"s": s, "e": e, "d": there, "p": small, "copy": _memory.copy}
    env |= {"a": there.ptr, "b": small.__array_interface__["data"][0], "Pooled": _memory.PooledMemory}
    env |= {"i": s._id, "alloc": _native.raw("mem_alloc_async"), "free": _native.raw("mem_free_async")}
    with sheet.attempt("copies_growth"):
        sheet.put("copies_growth", growth(hs, np) / 2**20)
    for name, size in SIZES.items():
        with sheet.attempt(f"copy_{name}"):
            copies(sheet, name, size)
    sheet.batch("copy_1k", "copy(s, a, b, 1024)", env, "s.synchronize()")
    sheet.batch("copy_1k_array", "d.copy_from(p, s)", env, "s.synchronize()")
    sheet.batch("pool", "free(i, alloc(i, 4096))", env, "s.synchronize()")
    sheet.batch("pool_object", "Pooled(4096, s).free()", env, "s.synchronize()")
    with sheet.attempt("pool_held"):
        alone = per_call("free(i, alloc(i, 4096))", env, "s.synchronize()")
        held = [env["alloc"](env["i"], 256) for _ in range(HELD)]
        beside = per_call("free(i, alloc(i, 4096))", env, "s.synchronize()")
        for block in held:
            env["free"](env["i"], block)
        s.synchronize()
        sheet.put("pool_held", beside / alone)
    with sheet.attempt("native"):
        # An empty function of C that every machine has: void f(void *), free of NULL.
        env["f"] = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p).value
        sheet.single("native", "s.call_native(f); s.synchronize()", env, "s.synchronize()", count=1000)
    x, y = hs.zeros(16), hs.zeros(16)
    sheet.rate("call_arrays", lambda n: calls(s, x, y, n), 20_000)
    with sheet.attempt("record_copying"):
        sheet.put("record_copying", beside_copies(hs, np, env))
    if hasattr(hs.Array, "__dlpack__"):
        sheet.batch("dlpack", "d.__dlpack__()", env)


def copies(sheet: Sheet, name: str, size: int) -> None:
    """Time a copy from pinned memory."""
    import halstream as hs
    import numpy as np

    s = hs.Stream()
    pinned, there = hs.pinned_empty(size, np.uint8), hs.empty(size, np.uint8)
    pinned[:] = 1
    there.copy_from(pinned, s)
    env = {"s": s, "d": there, "p": pinned}
    sheet.copies(name, "d.copy_from(p, s); s.synchronize()", env, "s.synchronize()", "d.copy_from(p, s)")
    if name == "64m":
        # A stream with work needs nobody to be woken.
        sheet.single("handover_busy", "d.copy_from(p, s)", env, "s.synchronize(); d.copy_from(p, s)", count=40)


def calls(s: Any, x: Any, y: Any, count: int) -> None:
    """Call a function with two arrays `count` times in stream order, and wait."""

    def function(a: Any, b: Any) -> None:
        pass

    for _ in range(count):
        s.call(function, x, y)
    s.synchronize()


def beside_copies(hs: Any, np: Any, env: dict[str, Any]) -> float:
    """Return what a record costs while every engine copies 64 MB, over its quiet cost."""
    import os

    size = SIZES["64m"]
    record = "s.record(e)"
    calm = per_call(record, env)
    busy = [hs.Stream() for _ in range(max(2, os.cpu_count() or 1))]
    blocks = [(hs.pinned_empty(size, np.uint8), hs.empty(size, np.uint8)) for _ in busy]
    for stream, (source, target) in zip(busy, blocks, strict=True):
        source[:] = 1
        target.copy_from(source, stream)
        stream.synchronize()
    found = []
    for _ in range(WOKEN // 4):
        for stream, (source, target) in zip(busy, blocks, strict=True):
            for _ in range(4):
                target.copy_from(source, stream)
        found.append(batch(record, env))
        assert not any(stream.query() for stream in busy), "the copies were done too early"
        for stream in busy:
            stream.synchronize()
    return statistics.median(found) / calm


def batch(statement: str, env: dict[str, Any]) -> float:
    """Return the microseconds of one of 1,000 executions."""
    import timeit

    return timeit.Timer(statement, globals=env).timeit(1000) * 1e3


def growth(hs: Any, np: Any) -> int:
    """Return the bytes by which the process grows over 1,000 times 1,000 small copies on 8 streams."""
    streams = [hs.Stream() for _ in range(8)]
    source, targets = hs.pinned_empty(256, np.uint8), [hs.empty(256, np.uint8) for _ in streams]
    pairs = list(zip(streams, targets, strict=True))

    def thousand() -> None:
        for _ in range(125):
            for stream, target in pairs:
                target.copy_from(source, stream)
        for stream in streams:
            stream.synchronize()

    repeat(thousand, 1000)  # until the collector has found its pace
    before = resident()
    repeat(thousand, 1000)
    return resident() - before


def repeat(run: Callable[[], None], count: int) -> None:
    """Run a function some times."""
    for _ in range(count):
        run()
