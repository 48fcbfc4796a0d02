"""Reads a trace back with Perfetto's own messages, and checks what holds for every trace."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto


class Slice(NamedTuple):
    """A slice or, with `instant`, a moment."""

    track: str
    category: str
    name: str
    begin: int
    end: float  #: infinity where the trace has no end
    args: dict[str, Any]
    flows: tuple[int, ...]
    terminates: tuple[int, ...]
    place: tuple[str, int, str] | None  #: file, line, function
    instant: bool


class Trace:
    """A trace, taken apart."""

    def __init__(self, data: bytes) -> None:
        self.groups: dict[str, str] = {}  # of each track
        self.units: dict[str, int] = {}
        self.rows: dict[int, list[Slice]] = {}  # by track uuid: names may repeat
        self.counters: dict[str, list[tuple[int, int]]] = {}
        self.names: dict[int, str] = {}
        self._parents: dict[int, int] = {}
        self._interned: dict[tuple[str, int], Any] = {}
        self._open: dict[int, list[Slice]] = {}
        times = []
        for packet in proto.Trace.FromString(data).packet:
            assert packet.trusted_packet_sequence_id == 1
            if packet.sequence_flags & proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
                assert not self.names, "texts are numbered anew within the trace"
            self._intern(packet.interned_data)
            if packet.HasField("track_descriptor"):
                self._track(packet.track_descriptor)
            if packet.HasField("track_event"):
                times.append(packet.timestamp)
                self._event(packet.timestamp, packet.track_event)
        assert times == sorted(times)
        for uuid, begun in self._open.items():
            self.rows[uuid] += begun
        for uuid, parent in self._parents.items():
            self.groups[self.names[uuid]] = self.names[parent]

    @property
    def slices(self) -> list[Slice]:
        """Everything on all tracks."""
        return [one for row in self.rows.values() for one in row]

    def on(self, track: str) -> list[Slice]:
        """What is on the tracks of a name, in the order of time."""
        return sorted((s for s in self.slices if s.track == track), key=lambda s: (s.begin, s.end))

    def of(self, category: str) -> list[Slice]:
        """The slices of a category."""
        return [s for s in self.slices if s.category == category]

    def edges(self) -> set[tuple[int, int]]:
        """Flows as pairs of the numbers of the operations that they join."""
        begins = {flow: s for s in self.slices for flow in s.flows}
        ends = {flow: s for s in self.slices for flow in s.terminates}
        assert begins.keys() == ends.keys()
        assert sum(len(s.flows) for s in self.slices) == len(begins), "a flow begins once"
        for flow, source in begins.items():
            assert source.begin <= ends[flow].begin
        return {(begins[flow].args["id"], ends[flow].args["id"]) for flow in begins}

    def check(self) -> None:
        """Fail if slices overlap on a track, or a track has no group."""
        for uuid, row in self.rows.items():
            assert uuid in self._parents
            free = -math.inf
            for one in sorted((s for s in row if not s.instant), key=lambda s: (s.begin, s.end)):
                assert one.begin >= free, f"slices overlap on {one.track}: {one.name} begins before {free}"
                assert one.end >= one.begin
                free = one.end

    def _intern(self, data: Any) -> None:
        for field in ("event_names", "event_categories", "debug_annotation_names"):
            for entry in getattr(data, field):
                assert (field, entry.iid) not in self._interned
                self._interned[field, entry.iid] = entry.name
        for entry in data.debug_annotation_string_values:
            self._interned["values", entry.iid] = entry.str.decode()
        for entry in data.source_locations:
            self._interned["places", entry.iid] = entry.file_name, entry.line_number, entry.function_name

    def _track(self, track: Any) -> None:
        assert track.uuid not in self.names and track.uuid != 0
        self.names[track.uuid] = track.name
        if track.parent_uuid:
            assert track.parent_uuid in self.names
            self._parents[track.uuid] = track.parent_uuid
        if track.HasField("counter"):
            self.units[track.name] = track.counter.unit

    def _event(self, time: int, event: Any) -> None:
        uuid = event.track_uuid
        name = self.names[uuid]
        if event.type == proto.TrackEvent.TYPE_COUNTER:
            assert name in self.units
            self.counters.setdefault(name, []).append((time, event.counter_value))
            return
        row, begun = self.rows.setdefault(uuid, []), self._open.setdefault(uuid, [])
        if event.type == proto.TrackEvent.TYPE_SLICE_END:
            row.append(begun.pop()._replace(end=time))
            return
        instant = event.type == proto.TrackEvent.TYPE_INSTANT
        one = Slice(
            name,
            self._interned["event_categories", event.category_iids[0]],
            self._interned["event_names", event.name_iid],
            time,
            time if instant else math.inf,
            {self._interned["debug_annotation_names", a.name_iid]: self._value(a) for a in event.debug_annotations},
            tuple(event.flow_ids),
            tuple(event.terminating_flow_ids),
            self._interned["places", event.source_location_iid] if event.source_location_iid else None,
            instant,
        )
        (row if instant else begun).append(one)

    def _value(self, argument: Any) -> Any:
        kind = argument.WhichOneof("value")
        value = getattr(argument, kind)
        return self._interned["values", value] if kind == "string_value_iid" else value


def read(path: Path) -> Trace:
    """Return the checked trace in a file."""
    trace = Trace(path.read_bytes())
    trace.check()
    return trace
