"""The table: its rows, what is to hold for each, and how it is made of what many processes measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
OWN = "halstream"
OPENCL, IREE, ASYNCIO, THREAD, NUMPY, TORCH = "intel", "iree", "asyncio_loop", "thread_queue", "numpy", "torch"
STREAMS = (OPENCL, IREE, ASYNCIO, THREAD)
RESNET = "training step of ResNet-18, 32 images of 32x32; with the sanitizer"
TRANSFORMER = "training step of a transformer, 4 layers, 16x64 tokens; with the sanitizer"


@dataclass(frozen=True)
class Row:
    """A figure, its unit, and how large it may be; figures with the same title share a line of the table.

    `most` bounds the figure, `least` does so from below. `ratio` bounds the figure divided by that of the best of
    `peers`, measured in the same run; of a rate it is the peer's divided by ours.
    """

    name: str
    title: str
    unit: str
    most: float | None = None
    least: float | None = None
    ratio: float | None = None
    peers: tuple[str, ...] = ()

    @property
    def to_hold(self) -> str:
        """The bounds in words."""
        words = [
            f"{sign} {number(bound)}" for sign, bound in (("≤", self.most), ("≥", self.least)) if bound is not None
        ]
        if self.ratio is not None:
            words.append(f"≤ {number(self.ratio)} of the best peer's")
        return ", ".join(words)


ROWS = (
    Row("import", "import", "ms", 25),
    Row("first", "import and first stream", "ms", 35),
    Row("record", "`record_event()` with a new event", "µs", 0.5, ratio=1, peers=STREAMS),
    Row("query", "query of an event", "µs", 0.3, peers=STREAMS),
    Row("with", "`with stream:`", "µs", 0.8),
    Row("round_trip", "enqueue and synchronize an empty operation", "µs", 1, ratio=1, peers=STREAMS),
    Row("cross", "an operation on A, an event, B waits, synchronize B", "µs", 2, ratio=1, peers=STREAMS),
    Row("function", "a Python function, from enqueue to run", "µs", ratio=1.5, peers=(THREAD,)),
    Row("functions", "Python functions", "per second", least=400_000, peers=(THREAD, ASYNCIO)),
    Row("copy_4m", "copy of 4; 64 MB, and synchronize", "ms", ratio=1, peers=(NUMPY,)),
    Row("copy_64m", "copy of 4; 64 MB, and synchronize", "ms", ratio=1.1, peers=(NUMPY,)),
    Row("checked", "what the sanitizer adds to an operation", "µs", 1),
    Row("findings", "2,000 findings reported", "s", 3),
    Row("schedules", "50 schedules of a test with 1,000 operations", "s", 2),
    Row("torch_add", "a small operator of the real torch, enqueued", "µs", 4, peers=(TORCH,)),
    Row("torch_resnet", RESNET, "ms", ratio=1.25, peers=(TORCH,)),
    Row("checked_resnet", RESNET, "ms", ratio=1.6, peers=(TORCH,)),
    Row("torch_transformer", TRANSFORMER, "ms", ratio=1.25, peers=(TORCH,)),
    Row("checked_transformer", TRANSFORMER, "ms", ratio=1.6, peers=(TORCH,)),
    Row(
        "torch_block",
        "a compiled transformer layer, width 256, 64 tokens, forward and backward",
        "ms",
        60,
        peers=(TORCH,),
    ),
    Row("kernel_add", "Triton: sum of 1 M floats", "ms of one core", 3, ratio=0.02, peers=(TORCH,)),
    Row("kernel_softmax", "Triton: softmax of 1024 x 1024", "ms of one core", 8, ratio=0.02, peers=(TORCH,)),
    Row("kernel_product", "Triton: product of 512 x 512, float16", "ms of one core", 60, ratio=0.02, peers=(TORCH,)),
    Row(
        "kernel_attention", "Triton: attention, 2 x 256 x 64, float16", "ms of one core", 6, ratio=0.02, peers=(TORCH,)
    ),
    Row("torch_start", "`halstream run --torch` above the same program with plain torch", "s", 0.6),
)


def number(value: float) -> str:
    """Return a figure with three digits that count, of large ones only thousands."""
    return f"{round(value, -3):,.0f}" if value >= 10_000 else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


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
    for title, rows in groupby(ROWS, key=lambda row: row.title):
        figures = [cells(results, row) for row in rows if values(results, OWN, row.name)]
        if figures:
            lines.append([title, figures[0][0], *map(joined, list(zip(*figures, strict=True))[1:])])
    return aligned(lines)


def cells(results: dict[str, Any], row: Row) -> list[str]:
    """Return the cells of a figure, from its unit on."""
    own, rival = values(results, OWN, row.name), best(results, row)
    middle = statistics.median(own)
    spread = f"{number(middle)} ({number(min(own))} to {number(max(own))})"
    if rival is None:
        return [row.unit, row.to_hold, spread, "", "", held(row, middle, None)]
    quotient = rival[1] / middle if row.least is not None else middle / rival[1]
    peer = f"{number(rival[1])} ({results['titles'][rival[0]]})"
    return [row.unit, row.to_hold, spread, peer, number(quotient), held(row, middle, rival[1])]


def joined(texts: tuple[str, ...]) -> str:
    """Return the cells of figures that share a line as one; what all of them say is said once."""
    return texts[0] if len(set(texts)) == 1 else "; ".join(texts)


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


def insert(path: Path, text: str) -> None:
    """Put the text between the markers of a file.

    Raises
    ------
    SystemExit
        If the file has no markers.
    """
    before, found, rest = path.read_text().partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise SystemExit(f"{path} has no {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
