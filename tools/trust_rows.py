"""Rows of the table of `make trust`: what was measured beside what is asked for."""

from __future__ import annotations

import re
import statistics
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass
class Figure:
    """One row: what was measured, and whether that is enough."""

    what: str
    asked: str
    got: str
    reached: bool


def all_of(what: str, got: int, n: int) -> Figure:
    """Return a row for something that must hold every time."""
    return Figure(what, f"{n} of {n}", f"{got} of {n}", got == n)


def least_of(what: str, got: int, n: int, least: int) -> Figure:
    """Return a row for something that must hold at least so often."""
    return Figure(what, f"at least {least}", f"{got} of {n}", got >= least)


#: Seconds of `reference` on the machine for which the limits below were set.
REFERENCE = 0.07


def reference() -> float:
    """Return how long a loop of plain Python takes now: limits in seconds are in proportion to it."""

    def loop() -> None:
        total = 0
        for i in range(1_000_000):
            total += i & 3

    return statistics.median(timeit.repeat(loop, number=1, repeat=5))


def within(what: str, took: float, limit: float, unit: str = "s") -> Figure:
    """Return a row for a time, whose limit grows on a machine that is slower now."""
    allowed = limit * max(1.0, reference() / REFERENCE)
    asked = f"at most {limit:g} {unit}" + (f", here {allowed:.2g}" if allowed > 1.05 * limit else "")
    return Figure(what, asked, f"{took:.2f} {unit}", took <= allowed)


def repeat(quick: bool, times: int) -> int:
    return max(1, times // 10) if quick else times


def passes(function: Callable[[], None]) -> bool:
    """Return whether a test passes."""
    try:
        function()
    except AssertionError:
        return False
    return True


_HEAD = "| figure | asked for | measured | |\n|---|---|---|---|\n"


def _section(name: str, figures: list[Figure]) -> str:
    lines = [f"| **{name}** | | | |"]
    lines += [f"| {f.what} | {f.asked} | {f.got} | {'yes' if f.reached else '**missed**'} |" for f in figures]
    return "\n".join(lines) + "\n"


def table(results: dict[str, list[Figure]], before: str, order: Iterable[str]) -> str:
    """Return the table with the sections that were measured, and the others as they stood before."""
    sections = re.findall(r"(?m)^(\| \*\*([^*]+)\*\* \| \| \| \|\n(?:\| [^*\n].*\n)*)", before)
    kept = {name: text for text, name in sections}
    texts = [_section(name, results[name]) if name in results else kept.get(name, "") for name in order]
    return _HEAD + "".join(texts)
