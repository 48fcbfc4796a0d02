"""Measures calls on a GPU side by side in one process: python -m benchmarks.gpu.run [--help].

In each round every side takes its turn at a row before the next row, so that
what else the machine does falls on all alike. Peers that are not installed are
named. Nothing is asserted; raw figures are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
import timeit
from pathlib import Path
from typing import Any

from benchmarks.report import aligned, number
from benchmarks.run import machine, say

from . import own, peers
from .driver import AbsentError, Driver
from .sides import ROWS, Case, Side

BATCH_S = 0.004


def sides(fake: bool, absent: dict[str, str]) -> list[Side]:
    """Return the sides that can be measured here."""
    found = []
    # The peers first: they make the contexts with their own flags, as in a program that has them.
    makers = [peers.torch, peers.cupy, peers.cuda_core, peers.numba, own.torch, own.cupy, own.core]
    for make in makers:
        title = (make.__doc__ or "").rstrip(".")
        if fake and make.__module__ == peers.__name__:
            absent[title] = "the look-alike driver serves halstream only"
            continue
        try:
            found.append(make())
        except Exception as exc:
            absent[title] = f"{type(exc).__name__}: {exc}".splitlines()[0][:300]
    return found


class Bench:
    """One row of one side."""

    def __init__(self, case: Case, most: int, env: dict[str, Any]) -> None:
        self._timer = timeit.Timer(case.statement, case.before, globals=env)
        self._after = timeit.Timer(case.after, globals=env)
        self._count = 3
        once = min(self.batch() for _ in range(3)) / 1e6
        self._count = max(1, min(most, int(BATCH_S / max(once, 1e-8))))
        self.batch()

    def batch(self) -> float:
        """Return the microseconds of one execution."""
        took = self._timer.timeit(self._count) / self._count
        self._after.timeit(1)
        return took * 1e6


def measure(found: list[Side], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return the raw figures in µs: by row, by side, one for each round."""
    raw: dict[str, dict[str, list[float]]] = {}
    for row, (_, most) in ROWS.items():
        benches: dict[str, Bench] = {}
        for side in found:
            if row in side.cases:
                try:
                    benches[side.name] = Bench(side.cases[row], most, side.env)
                except Exception as exc:
                    side.errors[row] = f"{type(exc).__name__}: {exc}".splitlines()[0][:300]
        raw[row] = {name: [] for name in benches}
        for turn in range(rounds):
            names = list(benches)
            shift = turn % max(1, len(names))
            for name in names[shift:] + names[:shift]:
                raw[row][name].append(round(benches[name].batch(), 4))
        say(f"  {row}: " + ", ".join(f"{n} {statistics.median(t):.2f} µs" for n, t in raw[row].items()))
    return raw


def ratios(raw: dict[str, dict[str, list[float]]], found: list[Side]) -> dict[str, dict[str, float]]:
    """Return halstream's median by a peer's: its dialect of the same family, else its core."""
    result: dict[str, dict[str, float]] = {}
    for row, figures in raw.items():
        medians = {name: statistics.median(times) for name, times in figures.items() if times}
        for side in found:
            if side.own or side.name not in medians:
                continue
            mine = [o.name for o in found if o.own and o.family in (side.family, "core") and o.name in medians]
            mine.sort(key=lambda name: name == "halstream")  # the core only where the dialect has no such call
            if mine:
                result.setdefault(row, {})[side.name] = round(medians[mine[0]] / medians[side.name], 3)
    return result


def table(results: dict[str, Any]) -> str:
    """Return the medians and ratios in Markdown."""
    names = list(results["versions"])
    lines = [["µs (halstream's ÷ the peer's)", *names]]
    for row, figures in results["raw"].items():
        cells = []
        for name in names:
            cell = number(statistics.median(figures[name])) if figures.get(name) else ""
            ratio = results["ratios"].get(row, {}).get(name)
            cells.append(f"{cell} ({number(ratio)})" if ratio is not None else cell)
        lines.append([ROWS[row][0], *cells])
    return aligned(lines)


def main() -> int:
    """Measure, store, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.run", description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--library", default="", help="a driver library other than libcuda.so.1")
    parser.add_argument("--output", type=Path, help="where the raw figures go")
    options = parser.parse_args()
    os.environ["HALSTREAM_BACKEND"] = "cuda"
    if options.library:
        os.environ["HALSTREAM_CUDA_LIBRARY"] = options.library
    try:
        driver = Driver(options.library)
    except AbsentError as exc:
        print(exc, file=sys.stderr)
        return 2
    absent: dict[str, str] = {}
    found = sides(driver.fake, absent)
    raw = measure(found, options.rounds)
    results: dict[str, Any] = {
        "machine": machine(),
        "device": driver.describe(),
        "date": time.strftime("%Y-%m-%d"),
        "rounds": options.rounds,
        "versions": {side.name: side.version for side in found},
        "absent": absent,
        "errors": {side.name: side.errors for side in found if side.errors},
        "medians": {row: {n: statistics.median(t) for n, t in by.items() if t} for row, by in raw.items()},
        "ratios": ratios(raw, found),
        "raw": raw,
    }
    if options.output:
        options.output.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))
    for name, why in absent.items():
        print(f"{name} was not measured: {why}")
    for name, errors in results["errors"].items():
        print(f"{name}: {errors}")
    return 1 if not any(side.own for side in found) or any(side.errors for side in found if side.own) else 0


if __name__ == "__main__":
    sys.exit(main())
