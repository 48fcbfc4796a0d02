"""Nodes of graphs in reports, and what orders two of them: a wait in the capture, or an edge."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from .. import _sites
from .._native._constants import OP_CALL, OP_GRAPH, OP_IF, OP_NATIVE, WHY_NO_PATH_IN_THE_GRAPH
from .._records import GraphNodeRecord
from .._sites import Frame
from . import source as _source

if TYPE_CHECKING:
    from .finding import Access, Finding, Made

__all__ = ["GraphNode", "InsideOf", "as_captured", "edge", "graph_node"]

#: What adds a node to a graph.
_ADDS = ("add", "add_graph", "add_if", "add_while", "add_switch")


class InsideOf(NamedTuple):
    """The node of a graph in whose own graph another node is."""

    number: int  #: in its graph, from 0
    kind: str  #: ``graph``, ``if``, ``while`` or ``switch``
    body: int  #: which of its graphs, from 0

    def __str__(self) -> str:
        return f"node {self.number} (a {self.kind})" if self.kind == OP_GRAPH else self._with_body()

    def _with_body(self) -> str:
        article = "an" if self.kind == OP_IF else "a"
        return f"body {self.body} of node {self.number} ({article} {self.kind})"


class GraphNode(NamedTuple):
    """The node of a graph that made an access: of a launch, or of a graph that was built without a capture."""

    number: int  #: in its graph, from 0
    kind: str
    name: str
    site: int
    inside: tuple[InsideOf, ...] = ()  #: the nodes in whose graphs it is, from the outside to the inside
    captured: bool = False  #: made by a capture, on the stream of the attributes below
    device: int = 0
    stream: int = 0
    stream_name: str = ""  #: what the program called the stream when it made it, '' if that is not known
    named_at: tuple[Frame, ...] = ()

    @property
    def frames(self) -> tuple[Frame, ...]:
        return _sites.program_frames(self.site)

    def __str__(self) -> str:
        kinds = {OP_CALL: "a function", OP_NATIVE: "a native function", OP_IF: "an if"}
        what = self.name or kinds.get(self.kind, f"a {self.kind}")
        text = f"node {self.number} ({what}" + (f", from {self.frames[0]})" if self.frames else ")")
        return "".join([text, *(f" in {one}" for one in reversed(self.inside))])


def graph_node(record: GraphNodeRecord | None, made: Made) -> GraphNode | None:
    """Return the node of a record with the name that the program uses for its stream."""
    if record is None:
        return None
    inside = tuple(InsideOf(int(number), kind, int(body)) for number, kind, body in record["inside"])
    device, stream = record["device"], record["stream"]
    name = made.stream(device, stream) if record["captured"] else ("", ())
    return GraphNode(
        record["index"],
        record["kind"],
        record["name"],
        record["site"],
        inside,
        record["captured"],
        device,
        stream,
        *name,
    )


def as_captured(f: Finding) -> Finding:
    """Return a finding on two nodes that one capture made as one on the calls in it, any other finding as it is."""
    one, two = f.first.node, f.second.node
    if f.why != WHY_NO_PATH_IN_THE_GRAPH or one is None or two is None or one.inside != two.inside:
        return f
    if not (one.captured and two.captured):
        return f
    return f._replace(first=_call(f.first, one), second=_call(f.second, two), memory="", number=-1)


def _call(access: Access, node: GraphNode) -> Access:
    return access._replace(
        kind=node.kind, device=node.device, stream=node.stream, name=node.stream_name, named_at=node.named_at,
        site=node.site, node=None,
    )  # fmt: skip


def edge(first: GraphNode, second: GraphNode) -> tuple[str, Frame | None, str]:
    """Return what orders two nodes: an edge in the innermost graph that has both, or what they are in.

    It is a line of code, '' where none is known, the place behind which it goes, and the same in words.
    """
    level = 0
    while first.inside[level : level + 1] == second.inside[level : level + 1] != ():
        level += 1
    one, two = (node.inside[level].number if node.inside[level:] else node.number for node in (first, second))
    where = f" in {first.inside[level - 1]}" if level else ""
    captured = all(
        node.inside[level].kind == OP_GRAPH if node.inside[level:] else node.captured for node in (first, second)
    )
    by = "by a wait in the capture, or " if captured else "by "
    note = f"let node {two} come after node {one}{where}: {by}add_edge({one}, {two})"
    later, other = (second, first) if one < two else (first, second)
    if not captured and not later.inside[level:]:
        for frame in later.frames:
            graph = _grows(frame)
            if graph and frame not in other.frames:
                return f"{graph}.add_edge({one}, {two})", frame, note
    return "", None, note


def _grows(frame: Frame) -> str:
    """Return the graph that a line adds a node to, as the program names it; '' in a loop, which may add several."""
    here = _source.statement(frame.file, frame.line)
    if here is None or not isinstance(here.path[-1], (ast.Assign, ast.AnnAssign, ast.Expr)):
        return ""
    if any(isinstance(around, (ast.For, ast.AsyncFor, ast.While)) for around in here.path):
        return ""
    for call in ast.walk(here.path[-1]):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ADDS:
            return ast.unparse(call.func.value)
    return ""
