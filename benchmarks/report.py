"""Turns the sheets of many processes into the table."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from .rows import ALL, ROWS, Row, number

OWN = "halstream"
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
Figures = dict[str, list[float]]


def figures(results: dict[str, Any], name: str, kind: str) -> dict[str, list[float]]:
    """Return the figures of a peer by row, one for each process.

    Among several ways the one with the best median over all processes counts:
    the luckiest way of each process would not be the same one.
    """
    more = {row.name: row.more for row in ROWS}
    gathered: dict[str, dict[str, list[float]]] = {}
    for sheet in results["sheets"].get(name, []):
        for row, ways in sheet[kind].items():
            for way, value in ways.items():
                gathered.setdefault(row, {}).setdefault(way, []).append(value)
    chosen = {}
    for row, ways in gathered.items():
        pick = max if more.get(row) else min
        chosen[row] = pick(ways.values(), key=statistics.median)
    return chosen


def cell(values: list[float] | None) -> str:
    """Return median and spread."""
    if not values:
        return ""
    middle = number(statistics.median(values))
    low, high = number(min(values)), number(max(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def values_of(row: Row, found: Figures) -> list[float] | None:
    """Return a peer's figures for a row."""
    return found.get(row.name) or found.get(row.of)


def leader(row: Row, peers: dict[str, Figures], names: tuple[str, ...]) -> tuple[str, float] | None:
    """Return name and median of the best of some peers."""
    medians = {name: statistics.median(found) for name in names if (found := values_of(row, peers[name]))}
    if not medians:
        return None
    pick = max if row.more else min
    name = pick(medians, key=lambda name: medians[name])
    return name, medians[name]


def tables(results: dict[str, Any]) -> str:
    """Return two tables in Markdown: halstream with its targets, and the peers."""
    titles: dict[str, str] = results["titles"]
    warm = {name: figures(results, name, "rows") for name in (OWN, *ALL)}
    woken = {name: figures(results, name, "woken") for name in (OWN, *ALL)}
    for name, rows in results["once"].items():
        warm[name].update(rows)
    floors = figures(results, "floor", "woken")
    for name in ("round_trip", "handoff"):
        if name in floors and name in woken[OWN]:
            lowest = statistics.median(floors[name])
            warm[OWN][f"{name}_floor"] = [value / lowest for value in woken[OWN][name]]
    own = [["", "unit", "to reach", OWN, "÷ best peer", "reached", "woken ³", "best peer, woken ³"]]
    others = [["", "unit", *(titles[name] for name in ALL)]]
    for row in ROWS:
        values = warm[OWN].get(row.name)
        rival = leader(row, warm, row.against)
        ratio = None
        if values and rival and rival[1]:
            ratio = statistics.median(values) / rival[1]
            ratio = 1 / ratio if row.more else ratio
        sleeper = leader(row, woken, ALL)
        own.append(
            [
                row.title,
                row.unit,
                row.limits,
                cell(values),
                f"{number(ratio)} ({titles[rival[0]]})" if ratio is not None and rival else "",
                row.reached(statistics.median(values), ratio) if values else "",
                cell(woken[OWN].get(row.name)),
                f"{number(sleeper[1])} ({titles[sleeper[0]]})" if sleeper else "",
            ]
        )
        cells = [cell(warm[name].get(row.name)) for name in ALL]
        if any(cells):
            others.append([row.title, row.unit, *cells])
    return f"{aligned(own)}\n\nThe peers:\n\n{aligned(others)}"


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
        f"`{results['command']}`: {machine['cores']} cores ({machine['cpu']}), Linux {machine['kernel']}, "
        f"Python {machine['python']}, {results['date']}; load before and after "
        f"{machine['load']:.1f} and {results['load_after']:.1f}.",
        "",
        f"Medians of {rounds} processes each, the peers' in turn with {OWN}'s, with the lowest and the highest. "
        "A ratio below 1 means that halstream is better. Of a peer's several ways to do the same the fastest counts.",
        "",
        "- ¹ The ratio is to the best peer whose worker runs while the caller goes on. asyncio and a queue of "
        "Python functions only append to a list here; what they pay for the hand-over is in the round trip. Intel's "
        "runtime completes a marker on an idle queue in the calling thread, as halstream does a record.",
        "- ² halstream with 1,000,000 of them behind a gate; OpenCL 10,000, IREE 2,000, the others 200,000.",
        "- ³ After 5 ms without work, so that a sleeping thread must be woken (asyncio: its loop in another "
        "thread). A host thread that waits helps, so only where it polls, and for a Python function, must "
        "halstream's own worker wake up. " + floor(results),
        "- ⁴ In steady state: each event is dropped before the next one is made. OpenCL's markers and asyncio's "
        "futures are fresh in every row; for IREE it is a new fence at the last point of a timeline, or a new "
        "semaphore, whichever is faster, and nothing is submitted.",
        "- ⁵ `''.isascii()` in the same process.",
    ]
    own = results["sheets"].get(OWN, [])
    numpy = "loads" if results["numpy"] else "does not load"
    lines.append(f"- The import of {OWN} {numpy} NumPy.")
    for name, title in results["titles"].items():
        for row in sorted({row for sheet in results["sheets"].get(name, []) for row in sheet["errors"]}):
            texts = [sheet["errors"][row] for sheet in results["sheets"][name] if row in sheet["errors"]]
            lines.append(f"- {title}, `{row}`: failed in {len(texts)} of {rounds} processes: {texts[0]}")
    for name, reason in results["absent"].items():
        count = len(results["sheets"].get(name, []))
        kept = f"was measured in {count} processes only" if count else "was not measured"
        lines.append(f"- {results['titles'][name]} {kept}: {reason}")
    if results["packages"]:
        lines.append("- Versions: " + ", ".join(results["packages"]) + platforms(results) + ".")
    if own and own[0]["info"]["backend"] != "host":
        lines.append(f"- The backend was {own[0]['info']['backend']}, not host.")
    return "\n".join(lines)


def floor(results: dict[str, Any]) -> str:
    """Return the machine's own figures in words."""
    asleep = figures(results, "floor", "woken")
    warm = figures(results, "floor", "rows")
    if not asleep:
        return "The machine's own floor was not measured."
    return (
        f"The machine's own floor after the same pause, in µs: a thread of C that sleeps on a condition variable runs "
        f"{cell(asleep['handoff'])} after it is signalled, the signal itself takes {cell(asleep['nop'])}, an empty "
        f"call of Python {cell(asleep['python'])}; there and back {cell(asleep['round_trip'])}, and without a pause "
        f"{cell(warm['round_trip'])}."
    )


def platforms(results: dict[str, Any]) -> str:
    """Return what the OpenCL runtimes call themselves."""
    found = [sheets[0]["info"].get("platform") for sheets in results["sheets"].values() if sheets]
    return "".join(f", {' '.join(name.split())}" for name in found if name)


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
