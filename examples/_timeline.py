"""Spans of work on streams, from event times: their order, their overlap, and a drawing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Span(NamedTuple):
    """One operation: on which stream, for which chunk, from when to when (milliseconds)."""

    stream: str
    chunk: int
    start: float
    end: float


def busy(spans: Iterable[Span], least: int = 1) -> float:
    """Return the milliseconds during which at least so many spans lay on each other."""
    edges = sorted([(s.start, 1) for s in spans] + [(s.end, -1) for s in spans])
    depth, total = 0, 0.0
    for (now, step), (later, _) in pairwise(edges):
        depth += step
        if depth >= least:
            total += later - now
    return total


def draw(spans: Sequence[Span], streams: Sequence[str], width: int) -> list[str]:
    """Return one line of text for each stream, from the first span's start to the last one's end.

    A column shows the last digit of the chunk that took most of its time, and
    a dot where the stream did nothing for most of it.
    """
    start, end = min(s.start for s in spans), max(s.end for s in spans)
    column = (end - start) / width
    lines = []
    for name in streams:
        mine = [s for s in spans if s.stream == name]
        text = ""
        for i in range(width):
            left = start + i * column
            right = left + column
            parts = [(max(0.0, min(s.end, right) - max(s.start, left)), s.chunk) for s in mine]
            most, chunk = max(parts, default=(0.0, 0))
            text += str(chunk % 10) if 2 * sum(p for p, _ in parts) >= column and most else "."
        lines.append(f"{name:>12} |{text}|")
    return [*lines, f"{'':>12}  {f'{start:.1f} ms':<{width // 2}}{f'{end:.1f} ms':>{width - width // 2}}"]


def wrong_order(spans: Sequence[Span], stages: Sequence[str], buffers: int) -> list[str]:
    """Return where the times contradict the order that the events demand.

    A stage of a chunk starts after the stage before it, and the first stage
    after the last one of the chunk that had the same buffer.
    """
    found = {(s.stream.split()[0], s.chunk): s for s in spans}
    wrong = []
    for stage, chunk in found:
        if stage == stages[0]:
            earlier = found.get((stages[-1], chunk - buffers))
        else:
            earlier = found[stages[stages.index(stage) - 1], chunk]
        if earlier and found[stage, chunk].start < earlier.end:
            wrong.append(f"{stage} of chunk {chunk} began before {earlier.stream} of chunk {earlier.chunk} ended")
    return wrong
