"""Turns what many processes measured into the table."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from .rows import OWN, ROWS, Row, number

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def values(results: dict[str, Any], name: str, row: str) -> list[float]:
    """Return the figures of a peer for a row, one for each process; of several ways those with the best median."""
    more = any(one.name == row and one.least is not None for one in ROWS)
    ways: dict[str, list[float]] = {}
    for sheet in results["sheets"].get(name, []):
        for way, value in sheet["rows"].get(row, {}).items():
            ways.setdefault(way, []).append(value)
    return (max if more else min)(ways.values(), key=statistics.median, default=[])


def best(results: dict[str, Any], row: Row) -> tuple[str, float] | None:
    """Return the name and the median of the best of a row's peers."""
    found = {name: statistics.median(of) for name in row.peers if (of := values(results, name, row.name))}
    if not found:
        return None
    name = (max if row.least is not None else min)(found, key=lambda name: found[name])
    return name, found[name]


def held(row: Row, value: float, rival: float | None) -> str:
    """Say whether a figure is within the bounds of its row."""
    kept = []
    if row.most is not None:
        kept.append(value <= row.most)
    if row.least is not None:
        kept.append(value >= row.least)
    if row.ratio is not None and rival:
        kept.append(value / rival <= row.ratio)
    return "" if not kept else "yes" if all(kept) else "no"


def table(results: dict[str, Any]) -> str:
    """Return the table in Markdown."""
    lines = [["what a user feels", "unit", "to hold", OWN, "best peer", "÷ it", "held"]]
    for row in ROWS:
        own, rival = values(results, OWN, row.name), best(results, row)
        if not own:
            continue
        middle = statistics.median(own)
        quotient = ""
        if rival is not None:
            quotient = number(rival[1] / middle if row.least is not None else middle / rival[1])
        peer = "" if rival is None else f"{number(rival[1])} ({results['titles'][rival[0]]})"
        spread = f"{number(middle)} ({number(min(own))} to {number(max(own))})"
        lines.append(
            [row.title, row.unit, row.to_hold, spread, peer, quotient, held(row, middle, rival[1] if rival else None)]
        )
    return aligned(lines)


def aligned(lines: list[list[str]]) -> str:
    """Return a table in Markdown that can be read as text."""
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(lines[0]))]
    ruled = [lines[0], ["-" * width for width in widths], *lines[1:]]
    return "\n".join(
        "| " + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)) + " |" for line in ruled
    )


def notes(results: dict[str, Any]) -> str:
    """Return what one must know to read the table."""
    machine, rounds = results["machine"], results["rounds"]
    lines = [
        f"`make bench`: {machine['cores']} cores ({machine['cpu']}), Linux {machine['kernel']}, Python "
        f"{machine['python']}, {results['date']}; load before and after {machine['load']:.1f} and "
        f"{results['load_after']:.1f}. Medians of {rounds} processes each, which take turns, with the lowest and the "
        "highest.",
        "",
    ]
    for name, title in results["titles"].items():
        for row in sorted({row for sheet in results["sheets"].get(name, []) for row in sheet["errors"]}):
            texts = [sheet["errors"][row] for sheet in results["sheets"][name] if row in sheet["errors"]]
            lines.append(f"- {title}, `{row}`: failed in {len(texts)} of {rounds} processes: {texts[0]}")
    lines += [f"- {results['titles'][name]} was not measured: {reason}" for name, reason in results["absent"].items()]
    if results["packages"]:
        lines.append("- Versions: " + ", ".join(results["packages"]) + ".")
    return "\n".join(lines)


def insert(path: Path, text: str, markers: tuple[str, str] = (BEGIN, END)) -> None:
    """Put the text between the markers of a file; a file that is missing is begun.

    Raises
    ------
    SystemExit
        If the file has no markers.
    """
    begin, end = markers
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Performance\n\n{begin}\n{end}\n")
    before, found, rest = path.read_text().partition(begin)
    _, ended, after = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"{path} has no {begin} and {end}")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
