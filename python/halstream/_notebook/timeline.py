"""A timeline as SVG: a row for each stream, bars for its operations, lines for what released what."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from .._traces.timeline import Slice, Timeline
from .markup import Markup, element

__all__ = ["svg"]

_LEFT, _RIGHT, _TOP, _ROW, _BAR = 170, 12, 26, 26, 18
# Bars beyond so many are left out, and the picture says how many.
_MOST = 4000
_COLOURS = {"stream": "#2f6fab", "blocked": "#b7b7b7", "host": "#8a5a00", "memory": "#7a3b8f", "annotation": "#2e7d4f"}
_KINDS = {"copy": "#2e7d4f", "fill": "#2e7d4f", "launch": "#a33b3b", "launch graph": "#a33b3b"}


class _Scale(NamedTuple):
    """From nanoseconds to the picture."""

    begin: int
    end: int
    width: float

    def x(self, time: int) -> float:
        return _LEFT + (time - self.begin) * self.width / max(1, self.end - self.begin)


def svg(timeline: Timeline, width: int = 960, memory: bool = False) -> str:
    """Return a picture of a timeline.

    Parameters
    ----------
    timeline : Timeline
    width : int
        Pixels.
    memory : bool
        Whether the lives of blocks have rows, too.
    """
    shown = [s for s in timeline.slices if memory or s.category != "memory"]
    tracks = sorted({s.track for s in shown}, key=lambda number: (timeline.tracks[number].group == "host", number))
    if not shown:
        return element("div", "nothing was enqueued", class_="halstream")
    left_out = max(0, len(shown) - _MOST)
    shown = sorted(shown, key=lambda s: (s.begin, s.order))[:_MOST]
    begin = min(s.begin for s in shown)
    end = max(max(s.begin, s.end or 0) for s in shown)
    scale = _Scale(begin, max(end, begin + 1), width - _LEFT - _RIGHT)
    rows = {track: _TOP + place * _ROW for place, track in enumerate(tracks)}
    height = _TOP + len(rows) * _ROW + (20 if left_out else 6)
    parts = [*_axis(scale, height)]
    for track, y in rows.items():
        parts.append(_row(timeline.tracks[track].name, y, width))
    parts += [_bar(s, rows[s.track], scale) for s in sorted(shown, key=lambda s: (s.instant, s.category != "blocked"))]
    parts += _flows(shown, rows, scale)
    if left_out:
        parts.append(
            element("text", f"{left_out} later operations are not shown", x=_LEFT, y=height - 6, fill="currentColor")
        )
    title = element("title", f"timeline of {len(shown)} operations in {_time(end - begin)}")
    return element(
        "svg", title, *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", role="img",
        style=f"width:{width}px;max-width:100%;height:auto;font:11px sans-serif", class_="halstream",
    )  # fmt: skip


def _time(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _axis(scale: _Scale, height: int) -> list[Markup]:
    """Return lines at round times."""
    span = scale.end - scale.begin
    step = 10 ** math.floor(math.log10(span / 4)) if span >= 4 else 1
    while span / step > 8:
        step *= 5 if span / step > 20 else 2
    parts = []
    at = 0
    while at <= span:
        x = scale.x(scale.begin + int(at))
        parts.append(
            element("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=_TOP - 6, y2=height, stroke="currentColor", opacity=".15")
        )
        parts.append(
            element(
                "text",
                _time(at) if at else "0",
                x=f"{x:.1f}",
                y=14,
                text_anchor="middle",
                fill="currentColor",
                opacity=".7",
            )
        )
        at += int(step)
    return parts


def _row(name: str, y: int, width: int) -> Markup:
    short = name if len(name) <= 26 else "…" + name[-25:]
    return Markup(
        element("text", element("title", name), short, x=6, y=y + 15, fill="currentColor")
        + element("line", x1=0, x2=width, y1=y + _ROW - 2, y2=y + _ROW - 2, stroke="currentColor", opacity=".12")
    )


def _bar(s: Slice, y: int, scale: _Scale) -> Markup:
    end = s.begin if s.instant else scale.end if s.end is None else s.end
    x, wide = scale.x(s.begin), scale.x(end) - scale.x(s.begin)
    about = [s.name, f"{_time(s.begin - scale.begin)} + {_time(end - s.begin)}"]
    about += [f"{key}: {value}" for key, value in s.args.items() if key not in ("kind", "id")]
    title = element("title", "\n".join(about))
    colour = _COLOURS.get(s.category, "#555")
    if s.category == "stream":
        colour = _KINDS.get(str(s.args.get("kind")), colour)
    if wide < 1.5:  # an instant, or nearly
        return element("g", title, element("rect", x=f"{x - 0.75:.2f}", y=y + 2, width="1.5", height=_BAR, fill=colour))
    label = s.name if len(s.name) * 6.2 < wide - 6 else ""
    dashes = "4 3" if s.end is None else ""
    parts: list[Markup] = [
        element("rect", x=f"{x:.2f}", y=y + 2, width=f"{wide:.2f}", height=_BAR, rx=2, fill=colour,
                opacity=".55" if s.end is None or s.category == "blocked" else "1",
                stroke="currentColor" if dashes else "", stroke_dasharray=dashes),
    ]  # fmt: skip
    if label:
        dark = s.category == "blocked" or s.end is None
        parts.append(element("text", label, x=f"{x + 4:.2f}", y=y + 15, fill="currentColor" if dark else "#fff"))
    return element("g", title, *parts)


def _flows(shown: list[Slice], rows: dict[int, int], scale: _Scale) -> list[Markup]:
    """Return a line from each record to each wait that it released."""
    sources = {number: s for s in shown for number in s.flows}
    parts = []
    for s in shown:
        source = sources.get(s.terminates) if s.terminates else None
        if source is None or source.end is None:
            continue
        middle: Callable[[Slice], float] = lambda one: rows[one.track] + 2 + _BAR / 2  # noqa: E731
        x1, x2 = scale.x(source.end), scale.x(s.begin if s.end is None else s.end)
        y1, y2 = middle(source), middle(s)
        line = f"M{x1:.1f} {y1:.1f}C{x1 + 14:.1f} {y1:.1f} {x2 - 14:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
        parts.append(element("path", d=line, fill="none", stroke="#d9822b", stroke_width="1.4"))
        parts.append(element("circle", cx=f"{x2:.1f}", cy=f"{y2:.1f}", r="2.6", fill="#d9822b"))
    return parts
