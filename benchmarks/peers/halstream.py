"""halstream on the host device, as a program calls it, and its tools."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from ..measure import SIZES, Sheet, alternate, per_call
from ..peer import Peer

PEER = Peer("halstream", "halstream", "halstream")
OPERATIONS = 1000  # of the test that is run under schedules
FINDINGS = 2000


def measure(sheet: Sheet) -> None:
    """Measure every row but those of imports and of the real torch."""
    import halstream as hs

    s, s2 = hs.Stream(), hs.Stream()
    env: dict[str, Any] = {"s": s, "s2": s2, "e": s.record()}
    sheet.batch("record", "s.record()", env)
    sheet.batch("query", "e.query()", env)
    sheet.batch("with", "with s: pass", env)
    sheet.single("round_trip", "s.nop(); s.synchronize()", env, count=3000)
    sheet.single("cross", "s.nop(); s2.wait(s.record()); s2.synchronize()", env, "s.synchronize()", count=3000)
    sheet.function(s.call, s.synchronize)
    sheet.rate("functions", lambda n: calls(s, n), 50_000)
    for name, size in SIZES.items():
        with sheet.attempt(f"copy_{name}"):
            copy(sheet, f"copy_{name}", size)
    with sheet.attempt("checked"):
        sheet.put("checked", checked())
    with sheet.attempt("findings"):
        sheet.put("findings", findings())
    with sheet.attempt("schedules"):
        sheet.put("schedules", schedules())


def calls(s: Any, count: int) -> None:
    """Call an empty function `count` times in stream order, and wait."""

    def function() -> None:
        pass

    for _ in range(count):
        s.call(function)
    s.synchronize()


def copy(sheet: Sheet, row: str, size: int) -> None:
    """Time a copy from pinned memory in turn with NumPy's copy of its own arrays, in milliseconds."""
    import halstream as hs
    import numpy as np

    s = hs.Stream()
    pinned, there = hs.pinned_empty(size, np.uint8), hs.empty(size, np.uint8)
    pinned[:] = 1
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    env = {"s": s, "there": there, "pinned": pinned, "copyto": np.copyto, "source": source, "target": target}
    statement = "there.copy_from(pinned, s); s.synchronize()"
    own, numpy = alternate(statement, "copyto(target, source)", env, 300 if size < 10_000_000 else 40)
    sheet.put(row, own / 1000)
    sheet.put(f"{row}_numpy", numpy / 1000)


def checked() -> float:
    """Return what the sanitizer adds to an operation, in microseconds."""
    import halstream as hs

    env = {"s": hs.Stream()}
    plain = per_call("s.nop()", env, "s.synchronize()")
    with hs.sanitize():
        return per_call("s.nop()", env, "s.synchronize()") - plain


def findings() -> float:
    """Return the seconds in which pairs of fills that nothing orders are found, and written as a text."""
    import halstream as hs

    lines = "\n".join(f"x[{n}:{n + 1}].fill(1, s); x[{n}:{n + 1}].fill(2, s2)" for n in range(FINDINGS))
    s, s2, x = hs.Stream(), hs.Stream(), hs.zeros(FINDINGS, "float32")
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write(lines)
        program.flush()
        code = compile(lines, program.name, "exec")  # a report for each line
        start = time.perf_counter()
        with hs.sanitize(on="collect") as report:
            exec(code, {"x": x, "s": s, "s2": s2})
            hs.synchronize()
        assert len(report) == FINDINGS, len(report)
        str(report)
        return time.perf_counter() - start


def schedules() -> float:
    """Return the seconds in which a test of 1,000 operations on four streams is run under 50 schedules."""
    import halstream as hs

    def test() -> None:
        streams = [hs.Stream() for _ in range(4)]
        for n in range(OPERATIONS // 4):
            for s in streams:
                s.nop()
            if n % 10 == 0:
                streams[n % 4].wait(streams[(n + 1) % 4])
        for s in streams:
            s.synchronize()

    hs.testing.explore(test, schedules=2)
    start = time.perf_counter()
    hs.testing.explore(test, schedules=50)
    return time.perf_counter() - start
