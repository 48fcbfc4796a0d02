"""The records that cross the boundary between Go and Python as JSON.

The same records are in pybuild/records.go; tests/process/test_records.py compares
the names and types of the fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypedDict

__all__ = [
    "ERROR_PREFIX",
    "BusyRecord",
    "ErrorRecord",
    "ExecutionRecord",
    "FrameRecord",
    "OperationRecord",
    "PlaceRecord",
    "Range",
    "RangeRecord",
    "WaitRecord",
    "decode",
    "ranges",
]

#: Address and size in bytes.
Range = tuple[int, int]

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


class ExecutionRecord(TypedDict):
    """When an operation ran, in nanoseconds."""

    id: int
    began: int
    ended: int


class PlaceRecord(TypedDict):
    """A stream."""

    device: int
    stream: int


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
    number: int  #: of the gate, the event or the function
    site: int  #: of the call that enqueued it, 0 where it is not known
    on: list[PlaceRecord]


def decode(text: object) -> Any:
    """Return the record, or the list of records, of a text of the extension."""
    import json  # not at import, which stays fast

    return json.loads(str(text))


def ranges(records: Iterable[RangeRecord]) -> tuple[Range, ...]:
    """Return ranges as addresses and sizes."""
    return tuple((record["start"], record["size"]) for record in records)
