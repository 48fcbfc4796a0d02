"""A graph as SVG: each node in a row below those that it comes after."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .markup import Markup, element

if TYPE_CHECKING:
    from .._core._graph import Graph, Node

__all__ = ["svg"]

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 44, 24, 34
# A graph with more nodes is not drawn, which also bounds how long drawing takes.
_MOST = 400
_COLOURS = {
    "call": "#2f6fab", "native": "#2f6fab", "copy": "#2e7d4f", "fill": "#2e7d4f", "record": "#8a5a00",
    "wait": "#8a5a00", "graph": "#7a3b8f",
}  # fmt: skip


def _levels(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Return the row of each node: the number of edges on the longest path to it."""
    before: list[list[int]] = [[] for _ in range(count)]
    behind: list[list[int]] = [[] for _ in range(count)]
    for a, b in edges:
        before[b].append(a)
        behind[a].append(b)
    left = [len(list_) for list_ in before]
    ready = [node for node in range(count) if not left[node]]
    level = [0] * count
    for node in ready:
        for other in behind[node]:
            level[other] = max(level[other], level[node] + 1)
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    return level


def _label(node: Node) -> str:
    return f"{node.index} {node.kind} {getattr(node.function, '__name__', '') if node.function else ''}".strip()


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def svg(graph: Graph) -> str:
    """Return a picture of a graph."""
    nodes, edges = graph.nodes, graph.edges
    if len(nodes) > _MOST:
        return element(
            "div", f"a graph of {len(nodes)} nodes and {len(edges)} edges, too many for a picture: see dot()"
        )
    level = _levels(len(nodes), edges)
    rows: dict[int, list[int]] = {}
    for node, at in enumerate(level):
        rows.setdefault(at, []).append(node)
    widest = max((len(row) for row in rows.values()), default=1)
    width = widest * (_WIDTH + _GAP_X) + _GAP_X
    height = max(1, len(rows)) * (_HEIGHT + _GAP_Y)
    where: dict[int, tuple[float, float]] = {}
    for at, row in rows.items():
        left = (width - len(row) * (_WIDTH + _GAP_X) + _GAP_X) / 2
        for place, node in enumerate(row):
            where[node] = (left + place * (_WIDTH + _GAP_X), _GAP_Y / 2 + at * (_HEIGHT + _GAP_Y))
    parts = [_edge(where[a], where[b]) for a, b in edges]
    parts += [_box(node, *where[node.index]) for node in nodes]
    title = element("title", f"a graph of {len(nodes)} nodes and {len(edges)} edges")
    return element(
        "svg", title, *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", role="img",
        style=f"width:{width}px;max-width:100%;height:auto;font:12px sans-serif", class_="halstream",
    )  # fmt: skip


def _edge(a: tuple[float, float], b: tuple[float, float]) -> Markup:
    x1, y1, x2, y2 = a[0] + _WIDTH / 2, a[1] + _HEIGHT, b[0] + _WIDTH / 2, b[1]
    bend = (y2 - y1) / 2
    line = element(
        "path", d=f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2 - 5:.1f}",
        fill="none", stroke="#888", stroke_width="1.5",
    )  # fmt: skip
    return Markup(line + element("path", d=f"M{x2 - 4:.1f} {y2 - 7:.1f}h8l-4 7z", fill="#888"))


def _box(node: Node, x: float, y: float) -> Markup:
    place = os.path.basename(node.where.partition(" in ")[0])
    colour, left = _COLOURS.get(node.kind, "#555"), f"{x + 10:.1f}"
    return element(
        "g",
        element("title", f"{_label(node)}\n{node.where}".strip()),
        element("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=_WIDTH, height=_HEIGHT, rx=5, fill=colour),
        element("text", _short(_label(node), 28), x=left, y=f"{y + 18:.1f}", fill="#fff", font_weight="bold"),
        element("text", _short(place, 30), x=left, y=f"{y + 35:.1f}", fill="#fff"),
    )
