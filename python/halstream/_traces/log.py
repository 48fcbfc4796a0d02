"""The lines of a log of operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from .._native._constants import OP_ALLOCATE, OP_FREE, OP_WAIT_STREAM
from .._records import ExecutionRecord, OperationRecord, Range, ranges

__all__ = ["POOL", "Line", "other_name", "parse", "parse_executed", "size", "title"]

#: Kinds of lines about stream-ordered allocation and free, which enqueue nothing.
POOL = frozenset({OP_ALLOCATE, OP_FREE})


class Line(NamedTuple):
    """One line of a log: an operation that was enqueued, or something the host did."""

    id: int
    kind: str
    device: int  #: -1 where the line concerns no device
    stream: int  #: `Stream.index`
    thread: int  #: the runtime's own number; 0 where no thread made the call
    event: int
    version: int
    other: int  #: index of the stream waited for
    token: int
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    site: int
    host: bool
    time: int  #: ns: when an operation was enqueued, or when what the host did was done
    other_device: int
    name: str = ""  #: that the program has given the operation, '' without one
    launch: int = 0  #: the launch of a graph that it is a node of, 0 for others
    branch: int = 0  #: of the launch
    node: int = -1  #: its index in the graph that is launched, -1 in another one and for others


def parse(operations: Iterable[OperationRecord]) -> list[Line]:
    """Return the lines of a log in the order of their numbers."""
    found = [
        Line(
            o["id"], o["kind"], o["device"], o["stream"], o["thread"], o["event"], o["version"], o["other"],
            o["token"], ranges(o["reads"]), ranges(o["writes"]), o["site"], o["host"], o["time"],
            o["other_device"], o["name"], o["launch"], o["branch"], o["node"],
        )
        for o in operations
    ]  # fmt: skip
    found.sort(key=lambda line: line.id)
    return found


def parse_executed(executions: Iterable[ExecutionRecord]) -> dict[int, tuple[int, int]]:
    """Return when each operation began and ended, in ns, by its number."""
    return {one["id"]: (one["began"], one["ended"]) for one in executions}


def title(line: Line) -> str:
    """Return the name of an operation, such as ``'wait event 3'`` or ``'aten::addmm'``."""
    if line.name:
        return line.name
    if line.kind == OP_WAIT_STREAM:
        return "wait " + other_name(line)
    if line.event:
        return f"{line.kind.removesuffix(' event')} event {line.event}"
    return line.kind


def other_name(line: Line) -> str:
    """Return the name of the stream that a stream waits for."""
    where = f" of device {line.other_device}" if line.other_device != line.device else ""
    return (f"stream {line.other}" if line.other else "default stream") + where


def size(blocks: Iterable[Range]) -> int:
    """Return how many bytes ranges have together."""
    return sum(nbytes for _, nbytes in blocks)
