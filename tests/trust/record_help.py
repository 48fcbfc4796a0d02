"""Records as the extension gives them, made by tests."""

from __future__ import annotations

import json

from halstream._records import OperationRecord, Range, RangeRecord


def stack_text(*frames: tuple[str, int, str]) -> str:
    """Return the text of a stack: file, line and function of each frame, innermost first."""
    return json.dumps([{"file": file, "line": line, "function": function} for file, line, function in frames])


def range_records(ranges: tuple[Range, ...]) -> list[RangeRecord]:
    """Return records of ranges, given as addresses and sizes."""
    return [{"start": start, "size": size} for start, size in ranges]


def operation(
    number: int, kind: str, stream: int = 1, *, device: int = 0, thread: int = 1, event: int = 0, version: int = 0,
    other: tuple[int, int] | None = None, token: int = 0, reads: tuple[Range, ...] = (),
    writes: tuple[Range, ...] = (), site: int = 0, host: bool = False, time: int = 0,
) -> OperationRecord:  # fmt: skip
    """Return an operation of a log; `other` is device and index of the stream that it waits for."""
    other_device, other_stream = other or (device, 0)
    return {
        "id": number, "kind": kind, "device": device, "stream": stream, "thread": thread, "event": event,
        "version": version, "other_device": other_device, "other": other_stream, "token": token,
        "reads": range_records(reads), "writes": range_records(writes), "site": site, "host": host, "time": time,
        "name": "", "launch": 0, "branch": 0, "node": -1,
    }  # fmt: skip
