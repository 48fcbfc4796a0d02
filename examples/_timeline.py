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


#: Colours of the chunks, in turn; white can be read on each.
_HUES = ("#3f51b5", "#00796b", "#b5541c", "#8e3a9d")


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


def svg(spans: Sequence[Span], streams: Sequence[str], width: int = 960) -> str:
    """Return a picture of the spans: a row for each stream, a box for each span with the number of its chunk.

    Its colours can be read on a light and on a dark page.
    """
    start, end = min(s.start for s in spans), max(s.end for s in spans)
    left, row, box = 90, 40, 26
    scale = (width - left - 10) / (end - start)
    height = row * len(streams) + 30
    shape = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13"'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" {shape}>']
    for number, name in enumerate(streams):
        top = number * row + (row - box) // 2
        out.append(f'<text x="{left - 10}" y="{top + 18}" text-anchor="end" fill="#808080">{name}</text>')
        out.append(f'<path d="M{left} {(number + 1) * row}H{width - 10}" stroke="#808080" stroke-opacity=".3"/>')
        for span in (s for s in spans if s.stream == name):
            x, wide = left + (span.start - start) * scale, max(1.0, (span.end - span.start) * scale)
            hue = _HUES[span.chunk % len(_HUES)]
            title = f"{name} of chunk {span.chunk}: {span.start:.2f} to {span.end:.2f} ms"
            out.append(f'<rect x="{x:.1f}" y="{top}" width="{wide:.1f}" height="{box}" rx="3" fill="{hue}">')
            out.append(f"<title>{title}</title></rect>")
            if wide >= 14:
                out.append(f'<text x="{x + wide / 2:.1f}" y="{top + 18}" text-anchor="middle" fill="#fff">')
                out.append(f"{span.chunk}</text>")
    for x, anchor, time in ((left, "start", start), (width - 10, "end", end)):
        out.append(f'<text x="{x}" y="{height - 8}" text-anchor="{anchor}" fill="#808080">{time:.1f} ms</text>')
    return "\n".join([*out, "</svg>", ""])


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
