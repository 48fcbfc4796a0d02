"""How many calls of the driver an operation makes, and what its Python adds to them.

Usage: python -m benchmarks.calls [--count] [--time] [--library LIBRARY] [--output FILE]

``--count`` needs the look-alike driver, which counts what it is asked.
``--time`` compares with the same call of the driver made by Go with nothing
around it (benchmarks/rawcall), in turns within one run. On the look-alike the
driver itself takes next to nothing, so the difference is what halstream adds.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .report import aligned

ROOT = Path(__file__).resolve().parents[1]
FAKE = ROOT / "build" / "fakecuda" / "libfakecuda.so"
RAW = (ROOT / "build" / "gpu" / "rawcall", ROOT / "build" / "rawcall")
#: Calls that only look which context is current: they are part of every operation.
CONTEXT = ("cuCtxGetCurrent", "cuCtxSetCurrent", "cuThreadExchangeStreamCaptureMode")
OPERATIONS = {
    "record": "record of an event",
    "wait": "wait for an event",
    "query": "query of an event",
    "wait_stream": "wait for a stream",
    "record_none": "record of a new event",
    "with": "`with stream:`",
}
COUNTED = 100
ADDED_US = 0.30  # what an operation may cost above the raw call
ROUNDS, BATCH = 31, 400


def torch() -> tuple[dict[str, Any], dict[str, str]]:
    """Return names, and the statement of each operation."""
    from halstream.torch import cuda

    s, s2 = cuda.Stream(), cuda.Stream()
    return {"cuda": cuda, "s": s, "s2": s2, "e": s.record_event()}, {
        "record": "e.record(s)",
        "wait": "s2.wait_event(e)",
        "query": "e.query()",
        "wait_stream": "s2.wait_stream(s)",
        "record_none": "s.record_event()",
        "with": "with cuda.stream(s): pass",
    }


def cupy() -> tuple[dict[str, Any], dict[str, str]]:
    """Return names, and the statement of each operation; there is no wait for a stream."""
    from halstream.cupy import cuda

    s, s2 = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
    return {"s": s, "s2": s2, "e": s.record()}, {
        "record": "s.record(e)",
        "wait": "s2.wait_event(e)",
        "query": "e.done",
        "record_none": "s.record()",
        "with": "with s: pass",
    }


def paddle() -> tuple[dict[str, Any], dict[str, str]]:
    """Return names, and the statement of each operation."""
    from halstream.paddle import device

    s, s2 = device.Stream(), device.Stream()
    return {"device": device, "s": s, "s2": s2, "e": s.record_event()}, {
        "record": "s.record_event(e)",
        "wait": "s2.wait_event(e)",
        "query": "e.query()",
        "wait_stream": "s2.wait_stream(s)",
        "record_none": "s.record_event()",
        "with": "with device.stream_guard(s): pass",
    }


def mindspore() -> tuple[dict[str, Any], dict[str, str]]:
    """Return names, and the statement of each operation."""
    from halstream.mindspore import runtime

    s, s2 = runtime.Stream(), runtime.Stream()
    return {"runtime": runtime, "s": s, "s2": s2, "e": s.record_event()}, {
        "record": "s.record_event(e)",
        "wait": "s2.wait_event(e)",
        "query": "e.query()",
        "wait_stream": "s2.wait_stream(s)",
        "record_none": "s.record_event()",
        "with": "with runtime.StreamCtx(s): pass",
    }


def core() -> tuple[dict[str, Any], dict[str, str]]:
    """Return names, and the statement of each operation."""
    import halstream as hs

    s, s2 = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    return {"s": s, "s2": s2, "e": s.record()}, {
        "record": "s.record(e)",
        "wait": "s2.wait_event(e)",
        "query": "e.query()",
        "wait_stream": "s2.wait_stream(s)",
        "record_none": "s.record()",
        "with": "with s: pass",
    }


DIALECTS = {"torch": torch, "cupy": cupy, "paddle": paddle, "mindspore": mindspore, "core": core}


def counter(library: str) -> Callable[[], int]:
    """Return a function that says how many calls the look-alike has had, without `CONTEXT`.

    Raises
    ------
    SystemExit
        If the library counts nothing.
    """
    # The runtime opened this very file: both see one copy of it.
    fake = ctypes.CDLL(library)
    if not hasattr(fake, "fakecuda_count"):
        raise SystemExit(f"{library} counts no calls; the look-alike driver does")
    count = fake.fakecuda_count
    count.restype, count.argtypes = ctypes.c_ulonglong, [ctypes.c_char_p]
    return lambda: count(b"total") - sum(count(name.encode()) for name in CONTEXT)


def settle(env: dict[str, Any]) -> None:
    """Wait until both streams are idle."""
    import halstream as hs

    for name in ("s", "s2"):
        hs.Stream.synchronize(env[name], timeout=10)


def quiet(calls: Callable[[], int]) -> bool:
    """Return whether nobody calls the driver, say to see whether work is done; waits a little for it."""
    for _ in range(200):
        before = calls()
        time.sleep(0.005)
        if calls() == before:
            return True
    return False


def counts(library: str) -> dict[str, dict[str, float]]:
    """Return driver calls for each execution, by dialect and operation, in steady state."""
    calls = counter(library)
    found: dict[str, dict[str, float]] = {}
    for dialect, make in DIALECTS.items():
        env, statements = make()
        found[dialect] = {}
        for operation, statement in statements.items():
            timer = timeit.Timer(statement, globals=env)
            timer.timeit(COUNTED)  # fills the pools of events
            settle(env)
            if not quiet(calls):
                raise SystemExit(f"{dialect}: somebody goes on calling the driver while nothing is pending")
            before = calls()
            timer.timeit(COUNTED)
            found[dialect][operation] = (calls() - before) / COUNTED
            settle(env)
    return found


class Raw:
    """The program that makes raw calls; it waits between its turns."""

    def __init__(self, library: str) -> None:
        path = next((path for path in RAW if path.exists()), RAW[-1])
        if not path.exists():
            command = ["go", "build", "-o", str(path), "./benchmarks/rawcall"]
            subprocess.run(command, cwd=ROOT, check=True)
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([str(path), library], stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def __call__(self, operation: str, count: int) -> float:
        """Return the microseconds of one call.

        Raises
        ------
        RuntimeError
            If the program ended.
        """
        assert self._process.stdin and self._process.stdout
        print(operation, count, file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"rawcall ended with {self._process.wait(10)}")
        return float(line) / 1000

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=10)


@contextlib.contextmanager
def raw_calls(library: str) -> Iterator[Raw]:
    """Start the program, and end it."""
    raw = Raw(library)
    try:
        yield raw
    finally:
        raw.close()


def times(library: str, rounds: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Return medians and raw figures in µs, by dialect and operation."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with raw_calls(library) as raw:
        for dialect, make in DIALECTS.items():
            env, statements = make()
            found[dialect] = {}
            for operation in ("record", "wait", "query", "wait_stream"):
                if operation not in statements:
                    continue
                timer = timeit.Timer(statements[operation], globals=env)
                timer.timeit(BATCH)
                raw(operation, BATCH)
                ours, theirs = [], []
                for _ in range(rounds):
                    ours.append(timer.timeit(BATCH) / BATCH * 1e6)
                    settle(env)
                    theirs.append(raw(operation, BATCH))
                added = statistics.median(ours) - statistics.median(theirs)
                found[dialect][operation] = {
                    "median": statistics.median(ours),
                    "raw call": statistics.median(theirs),
                    "added": added,
                    "enough": added <= ADDED_US,
                    "rounds": [ours, theirs],
                }
    return found


def report(results: dict[str, Any]) -> str:
    """Return tables in Markdown."""
    parts = []
    if "counts" in results:
        lines = [["calls of the driver", *DIALECTS]]
        for operation, title in OPERATIONS.items():
            cells = [results["counts"][dialect].get(operation) for dialect in DIALECTS]
            lines.append([title, *("" if cell is None else f"{cell:g}" for cell in cells)])
        parts.append(aligned(lines))
    if "times" in results:
        lines = [["µs: Python's call - the raw call = added", *DIALECTS]]
        for operation in ("record", "wait", "query", "wait_stream"):
            cells = [results["times"][dialect].get(operation) for dialect in DIALECTS]
            text = [f"{c['median']:.3f} - {c['raw call']:.3f} = {c['added']:.3f}" if c else "" for c in cells]
            lines.append([OPERATIONS[operation], *text])
        parts.append(aligned(lines) + f"\n\nAsked: at most {ADDED_US} µs added.")
    return "\n\n".join(parts)


def main() -> int:
    """Count or measure, store, print; the exit code is 1 if too much is added."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", action="store_true", help="count calls (needs the look-alike)")
    parser.add_argument("--time", action="store_true", help="measure times")
    parser.add_argument("--library", default=str(FAKE), help="driver library (default: the look-alike)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, help="where the raw figures go")
    options = parser.parse_args()
    os.environ["HALSTREAM_BACKEND"] = "cuda"
    os.environ["HALSTREAM_CUDA_LIBRARY"] = options.library
    results: dict[str, Any] = {"library": options.library}
    if options.count or not options.time:
        results["counts"] = counts(options.library)
    if options.time or not options.count:
        results["times"] = times(options.library, options.rounds)
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(report(results))
    return 0 if all(row["enough"] for by in results.get("times", {}).values() for row in by.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
