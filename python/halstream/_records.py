"""The records that cross the boundary between Go and Python as JSON.

tests/process/test_records.py compares the names and types of the fields with pybuild/records.go and
bindings/records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypedDict
else:

    class TypedDict(dict):
        """What a record is at run time; typing's evaluates every annotation, a sixth of the import's time."""


__all__ = [
    "ERROR_PREFIX",
    "AccessRecord",
    "BlockRecord",
    "BusyRecord",
    "CallRecord",
    "CheckRecord",
    "ChunkRecord",
    "ErrorRecord",
    "ExecutionRecord",
    "FindingRecord",
    "FixRecord",
    "FrameRecord",
    "GraphRecord",
    "HeldRecord",
    "LossRecord",
    "MadeRecord",
    "NearbyRecord",
    "NoteRecord",
    "ObjectRecord",
    "OperationRecord",
    "PartyRecord",
    "PlaceRecord",
    "Range",
    "RangeRecord",
    "RunningRecord",
    "StateRecord",
    "StepRecord",
    "ThreadRecord",
    "WaitRecord",
    "decode",
    "encode",
    "ranges",
]

Range = tuple[int, int]  #: address and size in bytes

#: What the text of every error of the runtime begins with; an `ErrorRecord` follows.
ERROR_PREFIX = "halstream error: "


class ErrorRecord(TypedDict):
    """An error."""

    kind: str
    code: int  #: the vendor's, 0 without one
    operation: str
    token: int  #: of the checked function that raised, 0 without one
    text: str


class FrameRecord(TypedDict):
    """A frame of a stack."""

    file: str
    line: int
    function: str


class RangeRecord(TypedDict):
    """A range of memory."""

    start: int
    size: int


class NodeRecord(TypedDict):
    """A node of a graph."""

    kind: str
    name: str  #: of a kernel or a native function, '' without one
    site: int  #: of the call that became it, 0 where it is not known
    after: list[int]  #: nodes that it comes after
    token: int  #: of a function, 0 without one
    reads: list[RangeRecord]
    writes: list[RangeRecord]
    child: int  #: nodes of a graph that is a node


class OperationRecord(TypedDict):
    """An operation of a log: what was enqueued, or what the host did."""

    id: int
    kind: str
    device: int  #: ordinal, -1 where it concerns no device
    stream: int  #: index of the stream on its device
    thread: int  #: the runtime's own number, 0 where no thread made the call
    event: int  #: number of the event, 0 for none
    version: int
    other_device: int  #: of the stream waited for, else that of the operation
    other: int  #: index of the stream waited for
    token: int  #: of a function
    reads: list[RangeRecord]
    writes: list[RangeRecord]
    site: int  #: of the call, 0 where it is not known
    host: bool  #: something that the host did
    time: int  #: in nanoseconds, 0 in a log without times
    name: str  #: that the program has given it, '' without one
    launch: int  #: id of the launch of a graph that it is a node of, 0 for others
    branch: int  #: of the launch, from 0
    node: int  #: its index in the graph that is launched, -1 in another one and for others


class ExecutionRecord(TypedDict):
    """When an operation ran, in nanoseconds."""

    id: int
    began: int
    ended: int


class PlaceRecord(TypedDict):
    """A stream."""

    device: int
    stream: int


class StepRecord(TypedDict):
    """A step of a run under a schedule: a call of the host or an operation."""

    call: int  #: number of the host's call, 0 for an operation
    stream: int  #: number of the operation's stream in the run
    operation: int  #: number of the operation on its stream
    id: int  #: of the operation in a log, 0 without listeners


class CallRecord(TypedDict):
    """A call that the host made in a run under a schedule."""

    thread: int  #: threads are numbered by their first call
    kind: str
    stream: int  #: number of the stream in the run, 0 for none


class TensorRecord(TypedDict):
    """A tensor of another library."""

    deleter: int  #: address of the function that takes it back, 0 for none
    flags: int
    type: int  #: of the device, by the numbers of DLPack
    id: int  #: of the device
    start: int
    size: int  #: bytes
    code: int  #: of the elements' type, and its bits
    bits: int
    shape: list[int]
    strides: list[int] | None  #: in elements, none in C order


class BlockRecord(TypedDict):
    """The block of memory that contains an address."""

    kind: int  #: 0 unknown to the runtime, 1 pinned, 2 memory of a device
    start: int
    size: int
    device: int  #: ordinal, -1 for memory of the host


class LossRecord(TypedDict):
    """A device that was lost."""

    device: int  #: ordinal
    text: str  #: of the error
    told: bool  #: the program knows of it


class ChunkRecord(TypedDict):
    """A part of a segment of a device's pool."""

    segment: RangeRecord
    chunk: RangeRecord
    size: int  #: of the block that has it, as the program asked; 0 without one
    used: bool  #: by the block, or by pending work on one that was freed
    stream: int  #: id of the stream on which it was allocated, 0 for the default one or none


class ObjectRecord(TypedDict):
    """An object that the program made and has not closed or freed."""

    kind: str  #: stream, event, memory or gate
    device: int  #: ordinal of a stream's device
    number: int  #: of a stream on its device, of an event or a gate; address of memory
    size: int  #: of memory, in bytes
    id: int  #: of the operation that made it
    site: int  #: of the call that made it, 0 where it is not known


class MadeRecord(TypedDict):
    """Where a stream or a block of memory was made."""

    kind: str  #: stream or memory
    device: int  #: ordinal of a stream's device
    number: int  #: of a stream on its device; address of memory
    site: int


class AccessRecord(TypedDict):
    """One of the two operations of a report of the checker."""

    id: int
    kind: str
    device: int  #: ordinal, -1 for an access of the host
    stream: int  #: index of the stream on its device
    thread: int  #: that made the call
    site: int
    token: int  #: of a function
    write: bool
    observed: bool  #: seen in memory, not declared by the program
    host: bool
    unknown: bool  #: whoever changed the source of a copy
    size: int  #: bytes that a copy or a fill moves, 0 where it is not known
    operation: str  #: the name that the program has given it, '' without one
    node: GraphNodeRecord | None  #: the node of a launch, or of a graph built without a capture; None for others


class GraphNodeRecord(TypedDict):
    """A node of a graph that a report names."""

    index: int
    kind: str
    name: str
    site: int
    captured: bool  # made by a capture, on a stream
    device: int
    stream: int
    inside: list[tuple[str, str, str]]  # the nodes in whose graphs it is: number, kind, which of the graphs


class NoteRecord(TypedDict):
    """A wait or a record that a report refers to."""

    id: int
    site: int
    event: int  #: 0 for a wait for a stream
    version: int
    device: int  #: of the stream with the record
    stream: int


class FindingRecord(TypedDict):
    """A report of the checker: two accesses to the same bytes."""

    category: str
    pairs: int  #: found so far with the same sites, kinds and streams
    range: RangeRecord
    block_kind: int  #: as in `BlockRecord`
    block: RangeRecord  #: that contains the range
    block_site: int  #: of its allocation, 0 where it is not known
    why: str
    memory: str  #: what was done to the life of the memory, or ""
    devices: bool  #: the accesses are on different devices
    first: AccessRecord
    second: AccessRecord
    wait: NoteRecord | None
    record: NoteRecord | None


class FixRecord(TypedDict):
    """A change of the program that is to order the operations of a finding."""

    finding: int  #: its place among all that the checker gave
    action: str
    first: tuple[int, int]  #: device and index of a stream
    second: tuple[int, int]
    event: int  #: 0 for none
    sites: list[int]  #: of the statement that the change goes before or after
    after: bool


class NearbyRecord(TypedDict):
    """Operations around others."""

    operations: list[OperationRecord]
    places: list[int]  #: how many operations of the run came before each of them
    around: list[list[int]]  #: for each list that was asked for, indices of operations


class CheckRecord(TypedDict):
    """What the checker has seen and what it keeps, counted."""

    operations: int
    reports: int
    dropped: int  #: reports beyond the most that are kept
    streams: int
    events: int
    ranges: int
    threads: int
    compared: int  #: functions around which memory was compared
    partly: int  #: those for which some device memory was left out
    paged: int  #: functions that were seen by the pages of memory
    untouched: int  #: those that touched none
    beside: int  #: those that ran at the same time as another one
    unclaimed: int  #: accesses seen by pages, of nobody knows whom
    sharing: int  #: blocks that share a page with another one
    unwatched: int  #: blocks whose pages are not watched


class ThreadRecord(TypedDict):
    """A thread of the process that may act by itself."""

    id: int  #: the system's number
    name: str
    watchdog: bool  #: it waits with a limit and takes no signals, as a debugger's timer does


class StateRecord(TypedDict):
    """Whether anything can happen without another call."""

    quiet: bool  #: no operation runs but functions, and none can start
    mark: int  #: the same as long as the same work is pending
    waiting: int  #: functions that no thread has taken yet


class WaitRecord(TypedDict):
    """A wait of a host thread that has no limit."""

    ident: int  #: of the thread, as `threading.get_ident` gives it
    report: bool  #: it waits for a report
    on: list[PlaceRecord]


class BusyRecord(TypedDict):
    """A stream with pending work, and what its first operation waits for."""

    at: PlaceRecord
    title: str
    pending: int  #: operations
    head: str  #: the first operation in words
    need: int
    number: int  #: of the gate, the event, the function or the thread that runs it
    site: int  #: of the call that enqueued it, 0 where it is not known
    on: list[PlaceRecord]


class HeldRecord(TypedDict):
    """A thread that is blocked by something else than the runtime."""

    ident: int
    owner: int  #: the only thread that can let it go on, 0 if several could


class RunningRecord(TypedDict):
    """A thread that runs a function of a stream."""

    ident: int
    token: int
    report: bool  #: the function was taken from a report queue


class GraphRecord(TypedDict):
    """Who waits for whom at a moment."""

    blocked: list[WaitRecord]
    streams: list[BusyRecord]
    held: list[HeldRecord]
    running: list[RunningRecord]
    others: bool  #: a thread that is not in the graph may act


class PartyRecord(TypedDict):
    """A thread or a stream of a graph."""

    thread: int  #: 0 for a stream
    device: int
    stream: int


def decode(text: object) -> Any:
    """Return the record, or the list of records, of a text of the extension."""
    return _decoder()(text)[0]


@functools.cache
def _decoder() -> Callable[[object], tuple[Any, int]]:
    import json  # not at import, which stays fast

    return json.JSONDecoder().raw_decode  # type: ignore[return-value]


def encode(value: object) -> str:
    """Return the text of a record, or of a list of numbers, that a function of the extension takes."""
    import json

    return json.dumps(value)


def ranges(records: Iterable[RangeRecord]) -> tuple[Range, ...]:
    """Return ranges as addresses and sizes."""
    return tuple((record["start"], record["size"]) for record in records)
