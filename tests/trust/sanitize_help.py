"""What tests of the sanitizer share: steps of a program, and programs as text that are mended."""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
from halstream._schedules.block import schedule

LIMIT = 10.0

#: A program in which two streams fill an array, three times.
PROGRAM = """
import halstream as hs
a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
x = hs.empty(4)
for _ in range(3):
    x.fill(1, a)
    x.fill(2, b)
"""


def under(spec: str) -> AbstractContextManager[Any]:
    """Return a schedule's block; a vendor's device has none, and what is found there is the same."""
    return schedule(spec) if hs.backend() == "host" else nullcontext()


def run(path: Path, source: str, spec: str = "fifo", **options: Any) -> Any:
    """Write a program to a file, run it under a schedule and return the report."""
    text = textwrap.dedent(source)
    path.write_text(text)
    with under(spec), hs.sanitize(**{"on": "collect", **options}) as report, warnings.catch_warnings():
        # A broken program may compute with what it finds in the memory.
        warnings.simplefilter("ignore", RuntimeWarning)
        exec(compile(text, str(path), "exec"), {"__name__": "program"})
    return report


def mended(source: str, finding: Any) -> str:
    """Return the program with the line that a finding proposes, at the place that it proposes."""
    from halstream._checks.remedy import remedy

    found = remedy(finding)
    assert found.line and found.place, found
    lines = textwrap.dedent(source).splitlines()
    at = found.place.line - 1
    indentation = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines.insert(at if found.where == "before" else at + 1, indentation + found.line)
    return "\n".join(lines) + "\n"


class Kit:
    """Streams, memory and two accesses that conflict."""

    def __init__(self) -> None:
        self.a, self.b, self.c = (hs.Stream(non_blocking=True) for _ in range(3))
        self.x = hs.empty(64, np.uint8)
        self.pinned = hs.pinned_empty(64, np.uint8)
        self.event = hs.Event()

    def write(self, stream: hs.Stream) -> None:
        self.x.fill(1, stream)

    def read(self, stream: hs.Stream) -> None:
        self.x.copy_to(self.pinned, stream)


Step = Callable[[Kit], Any]


def check(categories: str, *steps: Step) -> None:
    """Run steps and compare the categories of what is found."""
    kit = Kit()
    for stream in (kit.a, kit.b, kit.c):
        stream.synchronize(timeout=LIMIT)
    with under("fifo"), hs.sanitize(on="collect") as report:
        for step in steps:
            step(kit)
        hs.synchronize(device=0, timeout=LIMIT)
    assert " ".join(sorted({f.category for f in report.all})) == categories, str(report)


def until(query: Callable[[], bool]) -> None:
    """Ask until the answer is yes."""
    end = time.monotonic() + LIMIT
    while not query():
        assert time.monotonic() < end


def write_a(k: Kit) -> None:
    k.write(k.a)


def write_b(k: Kit) -> None:
    k.write(k.b)


def read_a(k: Kit) -> None:
    k.read(k.a)


def read_b(k: Kit) -> None:
    k.x.copy_to(hs.pinned_empty(64, np.uint8), k.b)


def record(k: Kit) -> None:
    k.a.record(k.event)


def wait(k: Kit) -> None:
    k.b.wait(k.event)
