"""Measures torch on host streams beside plain CPU torch: python -m benchmarks.torch_run [--help].

One process for each kind (plain, on host streams, with the sanitizer) lives through the whole run, and they take
turns, so that what else the machine does falls on all alike; ratios are those of neighbours in time. Nothing is
asserted: the table is for people. The environment is that of `make test-torch`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import command
from .peer import ROOT
from .report import aligned, insert
from .rows import number
from .run import machine, say

sys.path.insert(0, str(ROOT / "tools"))
import torch_env  # type: ignore[import-not-found]

KINDS = ("cpu", "cuda", "sanitized")
TITLES = {"cpu": "CPU torch", "cuda": "on host streams", "sanitized": "with the sanitizer"}
#: What is measured in each round.
MEASUREMENTS = ("add", "mix", "fresh", "small", "transformer", "resnet", "prefetch")
MARKERS = ("<!-- bench-torch: begin -->", "<!-- bench-torch: end -->")
MEMORY_ROUNDS = 3  # at most

Figures = dict[str, list[float]]


@dataclass(frozen=True)
class Row:
    """A row: its figure's name, its title, its unit, and its targets.

    `target` bounds the figure on host streams; `share` and `sanitized` bound the ratios to plain CPU torch,
    without and with the sanitizer. `least` makes the target a lower bound.
    """

    name: str
    title: str
    unit: str
    target: float | None = None
    share: float | None = None
    sanitized: float | None = None
    least: bool = False
    ratio: bool = True  # to plain CPU torch

    @property
    def limits(self) -> str:
        """The targets in words."""
        words = []
        if self.target is not None:
            words.append(f"{'≥' if self.least else '≤'} {number(self.target)}")
        if self.share is not None:
            words.append(f"≤ {number(self.share)} times CPU torch")
        if self.sanitized is not None:
            words.append(f"sanitizer ≤ {number(self.sanitized)} times")
        return ", ".join(words)

    def reached(self, figures: dict[str, Figures]) -> str:
        """Say whether the medians are within the targets."""
        kept = []
        value = median(figures, "cuda", self.name)
        if self.target is not None and value is not None:
            kept.append(value >= self.target if self.least else value <= self.target)
        for kind, limit in (("cuda", self.share), ("sanitized", self.sanitized)):
            found = ratio(figures, kind, self.name)
            if limit is not None and found is not None:
                kept.append(found <= limit)
        return "" if not kept else "yes" if all(kept) else "no"


ROWS = (
    Row("add", "enqueue of the sum of two small tensors", "µs", target=10),
    Row("add_grad", "the same with a gradient to come", "µs", target=10),
    Row("mix", "enqueue of a small operator, mean of 12 kinds", "µs", target=20),
    Row("fresh", "enqueue of an operator on sizes not seen before", "µs"),
    Row("small", "training step of two small layers", "ms"),
    Row("resnet", "training step of ResNet-18, 32 images of 32x32", "ms", share=1.3, sanitized=1.6),
    Row("resnet_host", "the part of it that the host takes ¹", "ms"),
    Row("transformer", "step of a transformer, 4 layers, d = 256, 16x64 tokens", "ms", share=1.3, sanitized=1.6),
    Row("transformer_host", "the part of it that the host takes ¹", "ms"),
    Row("prefetch_one", "step of a loop with a slow loader, one stream ²", "ms", ratio=False),
    Row("prefetch_two", "the same with two streams ²", "ms", ratio=False),
    Row("prefetch", "two streams ÷ one", "x", target=1, ratio=False),
    Row("hits", "metadata remembered, of 1,000 small steps", "%", target=95, least=True),
    Row("memory", "resident memory after 1,000 small steps", "MiB", share=1.2),
    Row("growth", "what 4,000 more add, after 8,000", "MiB"),
    Row("start", "import of torch, redirection, first operator", "s"),
)


class Child:
    """A process of one kind that measures when it is asked."""

    def __init__(self, python: Path, kind: str, memory: bool = False) -> None:
        words = [str(python), "-m", "benchmarks.torch_child", f"{kind}-memory" if memory else kind]
        environment = {**torch_env.settings(), "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(
            words, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.kind = kind

    def figures(self, measurement: str = "") -> dict[str, float]:
        """Return the figures of a measurement; without a name those of the start.

        Raises
        ------
        SystemExit
            If the process has ended; its error is on the standard error.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        if measurement:
            self.process.stdin.write(f"{measurement}\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process for {TITLES[self.kind]} ended with {self.process.wait()} in {measurement}")
        found: dict[str, float] = json.loads(line)
        return found

    def end(self) -> None:
        """End the process: its input ends.

        Raises
        ------
        SystemExit
            If it ends with an error.
        """
        assert self.process.stdin is not None
        self.process.stdin.close()
        if code := self.process.wait(60):
            raise SystemExit(f"the process for {TITLES[self.kind]} ended with {code}")


def note(figures: dict[str, Figures], kind: str, found: dict[str, float]) -> None:
    """Add what was found."""
    for name, value in found.items():
        figures[kind].setdefault(name, []).append(value)


def measure(python: Path, rounds: int, only: list[str]) -> dict[str, Any]:
    """Measure all kinds in turn and return the raw figures."""
    results: dict[str, Any] = {"machine": machine(), "date": time.strftime("%Y-%m-%d"), "rounds": rounds}
    figures: dict[str, Figures] = {kind: {} for kind in KINDS}
    starts = min(MEMORY_ROUNDS, rounds) if "memory" in only else 0
    for turn in range(starts):
        for kind in KINDS:
            child = Child(python, kind, memory=True)
            note(figures, kind, child.figures())
            child.end()
        say(f"starts and memory, round {turn + 1} of {starts}")
    children = {kind: Child(python, kind) for kind in KINDS}
    for child in children.values():
        child.figures()
    for turn in range(rounds):
        began = time.monotonic()
        for measurement in MEASUREMENTS:
            if measurement in only:
                for kind in KINDS[turn % 3 :] + KINDS[: turn % 3]:
                    note(figures, kind, children[kind].figures(measurement))
        say(f"round {turn + 1} of {rounds}: {time.monotonic() - began:.1f} s")
    for child in children.values():
        child.end()
    return {**results, "figures": figures, "load_after": os.getloadavg()[0]}


def median(figures: dict[str, Figures], kind: str, name: str) -> float | None:
    """Return the median of the rounds."""
    found = figures[kind].get(name)
    return statistics.median(found) if found else None


def ratio(figures: dict[str, Figures], kind: str, name: str) -> float | None:
    """Return the median over rounds of the ratio to plain CPU torch in the same round."""
    ours, plain = figures[kind].get(name), figures["cpu"].get(name)
    if not ours or not plain or not all(plain):
        return None
    return statistics.median(a / b for a, b in zip(ours, plain, strict=True))


def cell(figures: dict[str, Figures], kind: str, row: Row) -> str:
    """Return median, spread and ratio."""
    found = figures[kind].get(row.name)
    if not found:
        return ""
    middle, low, high = (number(value) for value in (statistics.median(found), min(found), max(found)))
    text = middle if low == high else f"{middle} ({low} to {high})"
    if kind != "cpu" and row.ratio and (share := ratio(figures, kind, row.name)) is not None:
        text += f", {number(share)}x"
    return text


def table(results: dict[str, Any]) -> str:
    """Return the table and what one must know to read it."""
    figures, described = results["figures"], results["machine"]
    lines = [["", "unit", "to reach", *(TITLES[kind] for kind in KINDS), "reached"]]
    for row in ROWS:
        cells = [cell(figures, kind, row) for kind in KINDS]
        if any(cells):
            lines.append([row.title, row.unit, row.limits, *cells, row.reached(figures)])
    head = (
        f"`make bench-torch`: {described['cores']} cores ({described['cpu']}), Linux {described['kernel']}, Python "
        f"{described['python']}, torch {results['torch']}, {results['date']}; load before and after "
        f"{described['load']:.1f} and {results['load_after']:.1f}."
    )
    notes = (
        f"Medians of {results['rounds']} rounds in which the three processes take turns, with the lowest and the "
        "highest; ratios (x) are medians of the ratios to plain CPU torch in the same round.\n\n"
        "- ¹ Afterwards the host may do something else; the step's work goes on.\n"
        "- ² The loader sleeps 20 ms for a batch. The batch is copied and normalized ahead, on a stream of its own or "
        "on that of the training."
    )
    return f"{head}\n\n{notes}\n\n{aligned(lines)}"


def main() -> None:
    """Measure, store, print."""
    names = (*MEASUREMENTS, "memory")
    parser = command.parser("benchmarks.torch_run", __doc__, 7, names, ROOT / "build" / "bench-torch.json")
    parser.add_argument("--torch", default=torch_env.PINNED, choices=torch_env.SUPPORTED)
    options = parser.parse_args()

    def measured() -> dict[str, Any]:
        python = torch_env.environment(options.torch)
        torch_env.built(python)
        return {"torch": options.torch, **measure(python, options.rounds, options.only)}

    results = command.figures(options, measured)
    text = table(results)
    print(text)
    if options.write:
        insert(options.write, text, MARKERS)


if __name__ == "__main__":
    main()
