"""The text of a log of operations, taken apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["POOL", "Line", "other_name", "parse", "parse_executed", "size", "title"]

#: Told when memory changes hands in stream order; nothing of it is enqueued.
POOL = frozenset({"allocate", "free"})


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
    reads: str
    writes: str
    site: int
    host: bool
    time: int  #: ns: when an operation was enqueued, or when what the host did was done
    other_device: int


def parse(lines: Iterable[str]) -> list[Line]:
    """Return the lines that `_native.trace_take` gave, in the order of their numbers."""
    found = []
    for text in lines:
        number, kind, device, stream, thread, event, version, other, token, reads, writes, site, host, time = (
            text.split("\x1f")
        )
        where, _, index = other.rpartition(":")
        line = Line(
            int(number), kind, int(device), int(stream), int(thread), int(event), int(version), int(index),
            int(token), reads, writes, int(site), host == "1", int(time), int(where or device),
        )  # fmt: skip
        found.append(line)
    found.sort(key=lambda line: line.id)
    return _with_devices(found)


def _with_devices(log: list[Line]) -> list[Line]:
    """Give waits for streams the other one's device where the text had only its index."""
    known = {(line.device, line.stream) for line in log}
    for at, line in enumerate(log):
        if line.kind != "wait stream" or line.other_device != line.device:
            continue
        # Its own device, unless that has no such stream or it would wait for itself.
        if (line.device, line.other) not in known or line.other == line.stream:
            elsewhere = [device for device, index in known if index == line.other and device != line.device]
            if len(elsewhere) == 1:
                log[at] = line._replace(other_device=elsewhere[0])
    return log


def parse_executed(lines: Iterable[str]) -> dict[int, tuple[int, int]]:
    """Return when each operation began and ended, in ns, by its number."""
    found = {}
    for line in lines:
        number, begin, end = line.split()
        found[int(number)] = int(begin), int(end)
    return found


def title(line: Line) -> str:
    """Return the name of an operation, such as ``'wait event 3'``."""
    if line.kind == "wait stream":
        return "wait " + other_name(line)
    if line.event:
        return f"{line.kind.removesuffix(' event')} event {line.event}"
    return line.kind


def other_name(line: Line) -> str:
    """Return the name of the stream that a stream waits for."""
    where = f" of device {line.other_device}" if line.other_device != line.device else ""
    return (f"stream {line.other}" if line.other else "default stream") + where


def size(ranges: str) -> int:
    """Return how many bytes ranges have together."""
    return sum(int(part.partition("+")[2]) for part in ranges.split())
