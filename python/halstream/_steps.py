"""Which line of a log belongs to which item of an order, and what the streams are called."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping

from ._execution import Execution
from ._log import POOL, Line

__all__ = ["host_calls", "labels"]

# Calls that enqueue nothing.
_SYNCHRONIZE = "synchronize"
_QUERY = "query"
_OPEN = "open gate"


def labels(execution: Execution, lines: Mapping[int, Line]) -> dict[int, str]:
    """Return what each stream of a run is called, by its number there: ``stream 2``, or a default stream."""
    found: dict[int, tuple[int, int]] = {}
    for item, number in execution.ids.items():
        line = lines.get(number)
        if line is not None:
            found.setdefault(int(item.partition(".")[0]), (line.device, line.stream))
    several = len({device for device, _ in found.values()}) > 1
    return {
        number: (f"stream {number}" if index else "default stream") + (f" of device {device}" if several else "")
        for number, (device, index) in found.items()
    }


def host_calls(execution: Execution, lines: Mapping[int, Line]) -> dict[int, Line]:
    """Return the line of the log for each call of the host that has one.

    The log tells of calls in the same order, but not of queries that found
    work pending, nor of waits that ended otherwise.
    """
    streams: dict[tuple[int, int], int] = {}
    for item, number in execution.ids.items():
        line = lines.get(number)
        if line is not None:
            streams.setdefault((line.device, line.stream), int(item.partition(".")[0]))
    told: dict[tuple[int, str, int], deque[Line]] = defaultdict(deque)
    threads: dict[int, int] = {}
    for number in sorted(lines):
        line = lines[number]
        kind = _kind(line)
        if kind:
            thread = threads.setdefault(line.thread, len(threads) + 1)
            stream = streams.get((line.device, line.stream), 0) if kind == "enqueue" else 0
            told[thread, kind, stream].append(line)
    found = {}
    for number, text in enumerate(execution.calls.splitlines(), 1):
        first, _, rest = text.partition(" ")
        kind, _, last = rest.rpartition(" ")
        kind = kind if kind in (_SYNCHRONIZE, _QUERY, _OPEN) else "enqueue"
        waiting = told[int(first), kind, int(last) if kind == "enqueue" else 0]
        if waiting:
            found[number] = waiting.popleft()
    return found


def _kind(line: Line) -> str:
    """Return the class of calls that a line tells of, '' for what is no schedule point."""
    if line.host:
        first = line.kind.partition(" ")[0]
        return line.kind if line.kind == _OPEN else first if first in (_SYNCHRONIZE, _QUERY) else ""
    return "" if line.kind in POOL else "enqueue"
