"""The timeline of a log of operations: slices on tracks, flows, lifetimes.

Pure functions over the records that `_native.trace_take` and `_native.executed_take`
give; `perfetto` only encodes the result.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .._native._constants import (
    OP_ALLOCATE,
    OP_EMPTY,
    OP_FREE,
    OP_FREE_MEMORY,
    OP_GRAPH,
    OP_NEW_MEMORY,
    OP_NEW_STREAM,
    OP_WAIT_STREAM,
)
from .._records import ExecutionRecord, OperationRecord
from .._sites import real_torch
from .log import POOL, Line, other_name, parse, parse_executed, size, title
from .releases import Releases

__all__ = ["Counter", "Slice", "Timeline", "Track", "lay_out"]

# Many programs make an event for each record; nothing happens then.
_UNTOLD = frozenset({"new event", "close event"})

_MEMORY = POOL | {OP_NEW_MEMORY, OP_FREE_MEMORY}

Times = dict[int, tuple[int, int]]


class Track(NamedTuple):
    """A row of the trace; tracks of one group may share a name."""

    group: str
    name: str
    unit: str = ""  #: of a counter: ``'bytes'`` or ``'count'``; empty for slices


class Slice:
    """Something that took time on a track, or an instant."""

    __slots__ = ("args", "begin", "category", "end", "flows", "instant", "name", "order", "site", "terminates", "track")

    def __init__(
        self, track: int, category: str, name: str, begin: int, end: int | None, order: int, site: int = 0
    ) -> None:
        self.track = track
        self.category = category  #: ``'stream'``, ``'node'``, ``'blocked'``, ``'host'`` or ``'memory'``
        self.name = name
        self.begin = begin
        self.end = end  #: None: had not ended when the log ended
        self.order = order  #: the operation's number; orders slices of the same time
        self.site = site
        self.instant = False
        self.args: dict[str, int | str | bool] = {}
        self.flows: list[int] = []  #: that begin here
        self.terminates = 0  #: the flow that ends here


class Counter(NamedTuple):
    """The value of a counter from a time on."""

    track: int
    time: int
    value: int


class Timeline:
    """Tracks and what is on them."""

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.slices: list[Slice] = []
        self.counters: list[Counter] = []
        self._numbers: dict[tuple[str, str, int], int] = {}

    def track(self, group: str, name: str, unit: str = "", lane: int = 0) -> int:
        """Return the number of a track, which is made at the first call."""
        key = group, name, lane
        if key not in self._numbers:
            self._numbers[key] = len(self.tracks)
            self.tracks.append(Track(group, name, unit))
        return self._numbers[key]

    def count(self, track: int, changes: Iterable[tuple[int, int]]) -> None:
        """Add the values of a counter that starts at 0, given (time, change)."""
        value, when = 0, None
        for time, change in sorted(changes):
            if when is not None and time != when:
                self.counters.append(Counter(track, when, value))
            value, when = value + change, time
        if when is not None:
            self.counters.append(Counter(track, when, value))


def lay_out(
    log_records: Iterable[OperationRecord],
    executed: Iterable[ExecutionRecord] | None,
    tick: Callable[[], object] | None = None,
) -> Timeline:
    """Return the timeline of a log.

    Parameters
    ----------
    log_records : iterable of OperationRecord
        As `_native.trace_take` gives them.
    executed : iterable of ExecutionRecord or None
        As `_native.executed_take` gives them; None on a backend that does not
        report them: operations are instants at their calls then.
    tick : callable, optional
        Called now and then, for a display of progress.
    """
    everything = parse(log_records)
    log = [line for line in everything if not line.launch]
    times = parse_executed(executed or ())
    tick = tick or _nothing
    timeline = Timeline()
    streams = _streams(log)
    made = {(line.device, line.stream) for line in log if line.kind == OP_NEW_STREAM}
    releases = Releases(log, times)
    for (device, index), operations in sorted(streams.items()):
        group = real_torch.device(device)
        track = timeline.track(group, f"{group} / {_stream_name(device, index, made)}")
        if executed is None:
            timeline.slices += _calls(track, operations)
        else:
            timeline.slices += _stream(track, operations, times, releases)
        tick()
    _nodes(timeline, everything, times if executed is not None else None, made)
    _draw(timeline.slices, releases, executed is not None)
    _memory(timeline, log, _Ends(streams, times))
    tick()
    if executed is not None:
        _pending(timeline, streams, times)
    _host(timeline, log)
    tick()
    return timeline


def _stream_name(device: int, index: int, made: set[tuple[int, int]]) -> str:
    if index and made and (device, index) not in made:
        return f"default stream {index}"  # of a thread or a context
    return f"stream {index}" if index else "default stream"


def _nodes(timeline: Timeline, log: list[Line], times: Times | None, made: set[tuple[int, int]]) -> None:
    """Add the nodes of launches of graphs, each branch on a track of its own; `times` is None without executions."""
    for line in log:
        if not line.launch or line.kind in (OP_EMPTY, OP_GRAPH):
            continue
        group = real_torch.device(line.device)
        name = f"{group} / {_stream_name(line.device, line.stream, made)} / branch {line.branch}"
        track = timeline.track(group, name)
        if times is not None and line.id not in times:
            continue  # it has not run
        begin, end = times[line.id] if times is not None else (line.time, line.time)
        node = _slice(track, "node", line, begin, end)
        node.instant = times is None
        node.args |= {"launch": line.launch, "branch": line.branch}
        timeline.slices.append(node)


def _nothing() -> None:
    pass


def _slice(track: int, category: str, line: Line, begin: int, end: int | None) -> Slice:
    """Return the slice of a line."""
    made = Slice(track, category, title(line), begin, end, line.id, line.site)
    made.args = {"kind": line.kind, "id": line.id, "thread": line.thread}
    if line.event:
        made.args |= {"event": line.event, "version": line.version}
    if line.reads:
        made.args["bytes read"] = size(line.reads)
    if line.writes:
        made.args["bytes written"] = size(line.writes)
    if line.kind == OP_WAIT_STREAM:
        made.args["waits for"] = other_name(line)
    if line.token:
        made.args["token"] = line.token
    return made


# -- streams ------------------------------------------------------------------


def _streams(log: list[Line]) -> dict[tuple[int, int], list[Line]]:
    """Return what is enqueued on each stream, by device and index."""
    streams: dict[tuple[int, int], list[Line]] = {}
    for line in log:
        if not line.host and line.kind not in POOL:
            streams.setdefault((line.device, line.stream), []).append(line)
    return streams


def _calls(track: int, operations: list[Line]) -> Iterator[Slice]:
    """Yield an instant for each operation, when it was enqueued."""
    for line in operations:
        instant = _slice(track, "stream", line, line.time, line.time)
        instant.instant = True
        yield instant


def _stream(track: int, operations: list[Line], times: Times, releases: Releases) -> Iterator[Slice]:
    """Yield the slices of one stream, none of which overlap."""
    ran = []
    free = 0
    for line in operations:
        if line.id in times:
            began, ended = times[line.id]
            if began == ended:
                # Some waits pass within their call, whatever is before them on
                # the stream; their place is behind that.
                began = ended = max(began, free)
            free = max(free, ended)
            ran.append((began, ended, line.id, line))
    ran.sort()
    free = 0
    for began, ended, _, line in ran:
        begin = max(began, free)
        since = max(free, line.time)
        if (reason := releases.reason(line, since, begin)) and since < begin:
            yield _blocked(track, line, reason, since, begin)
        free = max(begin, ended)
        yield _slice(track, "stream", line, begin, free)
    newest = max((line.id for *_, line in ran), default=0)
    # An operation without times before others that have some did nothing, or was dropped.
    left = [line for line in operations if line.id > newest]
    if left:
        since = max(free, left[0].time)
        reason = releases.reason(left[0], since, None)
        if reason:
            last = _blocked(track, left[0], reason, since, None)
        else:
            last = _slice(track, "stream", left[0], since, None)
        last.args |= {"unfinished": True, "operations behind": len(left) - 1}
        yield last


def _blocked(track: int, line: Line, reason: str, begin: int, end: int | None) -> Slice:
    made = Slice(track, "blocked", f"blocked: {reason}", begin, end, line.id, line.site)
    made.args = {"operation": title(line), "id": line.id}
    return made


def _draw(slices: list[Slice], releases: Releases, ordered: bool) -> None:
    """Add a flow from each record to each wait that it released, and so for streams.

    With `ordered` the times are those of execution.
    """
    found = {s.order: s for s in slices if s.category == "stream"}
    for number, line in releases.waits.items():
        origin, target = releases.of(line), found.get(number)
        if origin is None or target is None or origin.id not in found:
            continue
        source = found[origin.id]
        if source.end is None or target.end is None or (ordered and source.end > target.begin):
            continue  # one has not run, or the wait's limit passed first
        source.flows.append(number)
        target.terminates = number


# -- everything else ------------------------------------------------------------


class _Ends:
    """When the operations of each stream before a number were done."""

    def __init__(self, streams: dict[tuple[int, int], list[Line]], times: Times) -> None:
        self._ids: dict[tuple[int, int], list[int]] = {}
        self._ends: dict[tuple[int, int], list[int]] = {}
        for key, operations in streams.items():
            ran = [line.id for line in operations if line.id in times]
            self._ids[key] = ran
            self._ends[key] = list(itertools.accumulate((times[number][1] for number in ran), max))

    def before(self, line: Line) -> int:
        key = line.device, line.stream
        at = bisect.bisect_left(self._ids.get(key, []), line.id)
        return self._ends[key][at - 1] if at else 0


class _Life(NamedTuple):
    """A block from its allocation to its end, None if the log ended before."""

    begin: int
    end: int | None
    nbytes: int
    line: Line


def _lives(log: list[Line], ends: _Ends) -> Iterator[_Life]:
    """Yield what blocks there were."""
    alive: dict[int, tuple[Line, int]] = {}
    for line in log:
        if line.kind in _MEMORY and line.writes:
            start, nbytes = line.writes[0]
            if start in alive:
                made, size = alive.pop(start)
                # Freed in stream order it is in use until the stream gets there.
                end = max(line.time, ends.before(line)) if line.kind == OP_FREE else line.time
                yield _Life(made.time, end, size, made)
            if line.kind in {OP_NEW_MEMORY, OP_ALLOCATE}:
                alive[start] = line, nbytes
    for made, size in alive.values():
        yield _Life(made.time, None, size, made)


def _memory(timeline: Timeline, log: list[Line], ends: _Ends) -> None:
    """Add the lifetime of every block, and how many bytes are in use."""
    changes: dict[int, list[tuple[int, int]]] = {}
    lanes: dict[str, list[tuple[float, int]]] = {}  # when each is free again
    for life in sorted(_lives(log, ends), key=lambda life: (life.begin, life.line.id)):
        device = life.line.device
        # Pinned memory is of no device, and not every log has the device of other memory.
        group = real_torch.device(device) if device >= 0 else "memory"
        counter = timeline.track(group, f"{group} bytes in use", "bytes")
        changes.setdefault(counter, []).append((life.begin, life.nbytes))
        # Lifetimes overlap: each block takes a row that no other one uses at the time.
        busy = lanes.setdefault(group, [])
        lane = heapq.heappop(busy)[1] if busy and busy[0][0] <= life.begin else len(busy)
        heapq.heappush(busy, (math.inf if life.end is None else life.end, lane))
        block = _slice(timeline.track(group, f"{group} blocks", lane=lane), "memory", life.line, life.begin, life.end)
        block.name = f"{life.nbytes} bytes"
        block.args["address"] = str(life.line.writes[0][0])
        timeline.slices.append(block)
        if life.end is not None:
            changes[counter].append((life.end, -life.nbytes))
    for counter, list_ in changes.items():
        timeline.count(counter, list_)


def _pending(timeline: Timeline, streams: dict[tuple[int, int], list[Line]], times: Times) -> None:
    """Add how many operations of each device are enqueued and not done."""
    changes: dict[int, list[tuple[int, int]]] = {}
    for (device, _), operations in streams.items():
        newest = max((line.id for line in operations if line.id in times), default=0)
        for line in operations:
            if line.id in times or line.id > newest:
                changes.setdefault(device, []).append((line.time, 1))
                if line.id in times:
                    changes[device].append((max(line.time, times[line.id][1]), -1))
    for device, list_ in sorted(changes.items()):
        group = real_torch.device(device)
        timeline.count(timeline.track(group, f"{group} pending operations", "count"), list_)


def _host(timeline: Timeline, log: list[Line]) -> None:
    """Add what host threads did besides enqueueing, as instants: only its end is known."""
    for line in log:
        if line.host and line.kind not in _UNTOLD:
            track = timeline.track("host", f"thread {line.thread}")
            instant = _slice(track, "host", line, line.time, line.time)
            instant.instant = True
            timeline.slices.append(instant)
