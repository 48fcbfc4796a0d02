"""Operations in order, with what each comes after, as plain data that can be drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypedDict

from .._native._constants import (
    OP_RECORD,
    OP_SYNCHRONIZE_DEVICE,
    OP_SYNCHRONIZE_EVENT,
    OP_SYNCHRONIZE_STREAM,
    OP_WAIT,
    OP_WAIT_STREAM,
)
from .._sites import Frame
from . import log as _log
from .log import Line

__all__ = ["SMALL", "Row", "Sequence", "Step", "after", "place_of", "step_of", "what"]

#: What orders operations and touches no memory, drawn small.
SMALL = ("record", "wait", "synchronize", "query")


class Row(TypedDict):
    """What operations are on: a stream, or a host thread."""

    name: str
    host: bool


class Place(TypedDict):
    """A line of the program."""

    file: str
    line: int
    function: str


class Step(TypedDict):
    """One operation or call."""

    name: str
    kind: str  #: as in the log
    small: bool  #: it orders others and touches no memory
    row: int
    place: Place | None
    mark: str  #: '', 'first' or 'second' of a conflict, 'held' or 'until' of a schedule
    after: list[int]  #: the steps that it waits for
    number: int  #: how many operations of the run came before it


class Sequence(TypedDict):
    """Operations of a run, not all of them."""

    rows: list[Row]
    steps: list[Step]
    missing: list[int]  #: the two steps between which an edge is missing, or none
    order: str  #: 'calls': as they were called, or 'run': as they ran, one at a time
    note: str


def place_of(frame: Frame | None) -> Place | None:
    """Return a frame as plain data."""
    return None if frame is None else {"file": frame.file, "line": frame.line, "function": frame.function}


def what(line: Line) -> str:
    """Return an operation in a phrase, with how many bytes it works on."""
    if line.kind.startswith("synchronize"):
        return f"host waits for {_waited_for(line)}"
    size = max(_log.size(line.reads), _log.size(line.writes))
    name = _log.title(line)
    return f"{name}, {size:,} bytes" if size and not line.kind.startswith(("record", "wait")) else name


def _waited_for(line: Line) -> str:
    if line.kind == OP_SYNCHRONIZE_EVENT:
        return f"event {line.event}"
    if line.kind == OP_SYNCHRONIZE_STREAM:
        return f"stream {line.stream}" if line.stream else "the default stream"
    return line.kind.removeprefix("synchronize ")


def step_of(line: Line, row: int, frame: Frame | None, number: int, mark: str = "", name: str = "") -> Step:
    """Return the step of a line of a log; `name` where the program calls it otherwise."""
    return {
        "name": name or what(line), "kind": line.kind, "small": line.kind.startswith(SMALL), "row": row,
        "place": place_of(frame), "mark": mark, "after": [], "number": number,
    }  # fmt: skip


def after(lines: Iterable[Line], index: Callable[[Line], int]) -> dict[int, list[int]]:
    """Return for each wait, by its index, the indices of the steps that it waits for, as far as they are among these.

    A wait for an event waits for the record of the version that it bound; a wait for a stream, and
    one of the host, for what is latest on that stream.
    """
    records: dict[tuple[int, int], int] = {}
    latest: dict[tuple[int, int], int] = {}
    found: dict[int, list[int]] = {}
    for line in lines:
        here, stream = index(line), (line.device, line.stream)
        if line.kind == OP_RECORD:
            records[line.event, line.version] = here
        if line.kind in (OP_WAIT, OP_SYNCHRONIZE_EVENT):
            ends = [records.get((line.event, line.version), -1)]
        elif line.kind == OP_WAIT_STREAM:
            ends = [latest.get((line.other_device, line.other), -1)]
        elif line.kind == OP_SYNCHRONIZE_STREAM:
            ends = [latest.get(stream, -1)]
        elif line.kind == OP_SYNCHRONIZE_DEVICE:
            ends = [at for (device, _), at in latest.items() if device == line.device]
        else:
            ends = []
        if ends := [at for at in ends if at >= 0]:
            found[here] = ends
        if not line.host:
            latest[stream] = here
    return found
