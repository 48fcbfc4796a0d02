"""Matches the lines of a log with the items of an order, and names the streams."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import NamedTuple

from .._native._constants import OP_SYNCHRONIZE_DEVICE
from .._traces.log import POOL, Line
from .execution import Execution

__all__ = ["LAUNCH", "host_calls", "labels"]

#: How what a branch of a launch is called begins.
LAUNCH = "launch on "

_ENQUEUE = "enqueue"
# Calls that enqueue nothing.
_SYNCHRONIZE, _QUERY, _OPEN = _WAITS = ("synchronize", "query", "open gate")


def labels(execution: Execution, lines: Mapping[int, Line]) -> dict[int, str]:
    """Return what each stream of a run is called, by its number there: ``stream 2``, or a default stream.

    The branches of a launch have numbers as well: they are called ``launch on stream 2``.
    """
    found: dict[int, tuple[int, int]] = {}
    branches: dict[int, tuple[int, int]] = {}
    for item, number in execution.ids.items():
        line = lines.get(number)
        if line is not None:
            (branches if line.launch else found).setdefault(int(item.partition(".")[0]), (line.device, line.stream))
    several = len({device for device, _ in (*found.values(), *branches.values())}) > 1
    names = {
        number: (f"stream {number}" if index else "default stream") + (f" of device {device}" if several else "")
        for number, (device, index) in found.items()
    }
    launched = {stream: names[number] for number, stream in found.items()}
    return names | {
        number: f"{LAUNCH}{launched.get(stream, 'a stream' if stream[1] else 'default stream')}"
        for number, stream in branches.items()
    }


def host_calls(execution: Execution, lines: Mapping[int, Line]) -> dict[int, Line]:
    """Return the line of the log for each call of the host that has one.

    The log has a thread's calls in the order in which they were made, without
    queries that found work pending and waits that failed. A wait begins with a
    query, and is no more than that where the work has completed.
    """
    calls: dict[int, list[_Call]] = defaultdict(list)
    for number, text in enumerate(execution.calls.splitlines(), 1):
        thread, _, rest = text.partition(" ")
        kind, _, stream = rest.rpartition(" ")
        calls[int(thread)].append(_Call(number, kind if kind in _WAITS else _ENQUEUE, int(stream)))
    logged: dict[int, list[Line]] = defaultdict(list)
    for number in sorted(lines):
        if _kind(lines[number]):
            logged[lines[number].thread].append(lines[number])
    streams: dict[tuple[int, int], int] = {}
    for item, number in execution.ids.items():
        line = lines.get(number)
        if line is not None and not line.launch:
            streams.setdefault((line.device, line.stream), int(item.partition(".")[0]))
    found: dict[int, Line] = {}
    # Threads are numbered by their first call.
    for mine, own in zip(sorted(calls), logged.values(), strict=False):
        _match(calls[mine], own, streams, found)
    return found


class _Call(NamedTuple):
    number: int
    kind: str
    stream: int


def _match(
    calls: list[_Call], logged: list[Line], streams: Mapping[tuple[int, int], int], found: dict[int, Line]
) -> None:
    """Match the calls of a thread with their lines."""
    enqueued = [line for line in logged if _kind(line) == _ENQUEUE]
    own = [call for call in calls if call.kind == _ENQUEUE]
    if len(own) == len(enqueued):
        found.update({call.number: line for call, line in zip(own, enqueued, strict=True)})
    else:
        # Some calls are not in the log: require at least the same stream.
        left: dict[int, deque[Line]] = defaultdict(deque)
        for line in enqueued:
            left[streams.get((line.device, line.stream), 0)].append(line)
        for call in own:
            if left[call.stream]:
                found[call.number] = left[call.stream].popleft()
    waits = deque(line for line in logged if _kind(line) != _ENQUEUE)
    others = [call for call in calls if call.kind != _ENQUEUE]
    for call, following in zip(others, [*others[1:], None], strict=False):
        first = call.kind == _QUERY and following is not None and following.kind == _SYNCHRONIZE
        if not waits or not _may_be(call, waits[0], streams):
            continue
        if first and following is not None and following.stream == call.stream:
            found[call.number] = waits[0]  # the same wait
        else:
            found[call.number] = waits.popleft()


def _may_be(call: _Call, line: Line, streams: Mapping[tuple[int, int], int]) -> bool:
    if call.kind != _kind(line) and (call.kind, _kind(line)) != (_QUERY, _SYNCHRONIZE):
        return False
    number = streams.get((line.device, line.stream), 0)
    return line.kind in (OP_SYNCHRONIZE_DEVICE, _OPEN) or not (call.stream and number) or call.stream == number


def _kind(line: Line) -> str:
    """Return the class of call that a line records, '' if it is no schedule point."""
    if line.launch:
        return ""  # the launch was the call
    if line.host:
        first = line.kind.partition(" ")[0]
        return line.kind if line.kind == _OPEN else first if first in _WAITS else ""
    return "" if line.kind in POOL else _ENQUEUE
