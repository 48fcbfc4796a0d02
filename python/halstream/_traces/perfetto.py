"""Traces for Perfetto (ui.perfetto.dev), written with its published schema.

The schema comes with the ``perfetto`` package, which the extra ``cli`` brings
and which is imported at the first use.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import _sites
from .._records import ExecutionRecord, OperationRecord
from .timeline import Slice, Timeline, lay_out

__all__ = ["build", "chunks", "schema"]

# Packets that are encoded at once; between two such the display of progress moves.
_CHUNK = 4096

# All packets are of one sequence, which shares the numbers of its texts.
_SEQUENCE = 1

# What `halstream run` runs programs with: its frames are none of the program's.
_RUNNER = str(Path(__file__).parents[1] / "_cli" / "script.py")


def schema() -> Any:
    """Return the module with Perfetto's messages.

    Raises
    ------
    ImportError
        If the perfetto package is not installed; the text says what to do.
    """
    try:
        from perfetto.protos.perfetto.trace import (  # type: ignore[import-untyped]
            perfetto_trace_pb2,
        )
    except ImportError as exc:
        raise ImportError(
            "traces are written with the perfetto package, which is not installed here "
            f"({exc}); say pip install 'halstream[cli]'"
        ) from None
    return perfetto_trace_pb2


def build(
    operations: Iterable[OperationRecord],
    executed: Iterable[ExecutionRecord] | None,
    text_of_site: Callable[[int], str],
) -> bytes:
    """Return the trace of a log.

    Parameters
    ----------
    operations : iterable of OperationRecord
        As `_native.trace_take` gives them.
    executed : iterable of ExecutionRecord or None
        As `_native.executed_take` gives them; None if the backend
        does not report it.
    text_of_site : callable
        Gives the stack of a site, as `_native.position_text` does.

    Raises
    ------
    ImportError
        If the perfetto package is not installed.
    """
    return b"".join(data for data, _ in chunks(lay_out(operations, executed), text_of_site))


def chunks(timeline: Timeline, text_of_site: Callable[[int], str]) -> Iterator[tuple[bytes, float]]:
    """Yield a trace in pieces, which together are the file, with the part that is done.

    Raises
    ------
    ImportError
        If the perfetto package is not installed.
    """
    proto = schema()
    writer = _Writer(proto, timeline, text_of_site)
    moments = _moments(timeline)
    for at in range(0, max(1, len(moments)), _CHUNK):
        yield writer.chunk(moments[at : at + _CHUNK]), min(1.0, (at + _CHUNK) / max(1, len(moments)))


# What a packet of a slice is.
_BEGIN, _END, _INSTANT, _COUNTER = range(4)

Moment = tuple[int, int, int, Any]


def _moments(timeline: Timeline) -> list[Moment]:
    """Return the packets to be: (time, position among those of one time, what, of what).

    Of two slices that meet in one moment the earlier one ends first, and the
    beginning of a flow comes before its end.
    """
    slices = sorted(timeline.slices, key=lambda s: (s.begin, s.begin if s.end is None else s.end, s.order))
    found: list[Moment] = []
    for at, one in enumerate(slices):
        found.append((one.begin, 2 * at, _INSTANT if one.instant else _BEGIN, one))
        if not one.instant and one.end is not None:
            found.append((one.end, 2 * at + 1, _END, one))
    last = 2 * len(slices)
    found += [(counter.time, last + at, _COUNTER, counter) for at, counter in enumerate(timeline.counters)]
    found.sort(key=lambda moment: moment[:2])
    return found


class _Writer:
    """Encodes moments; texts are written once and then named by number."""

    def __init__(self, proto: Any, timeline: Timeline, text_of_site: Callable[[int], str]) -> None:
        self._proto = proto
        self._timeline = timeline
        self._text_of_site = text_of_site
        self._numbers: dict[tuple[str, str], int] = {}
        self._sites: dict[int, tuple[int, int]] = {0: (0, 0)}
        self._interned: Any = None
        self._first = True
        event = proto.TrackEvent
        self._types = {
            _BEGIN: event.TYPE_SLICE_BEGIN,
            _END: event.TYPE_SLICE_END,
            _INSTANT: event.TYPE_INSTANT,
            _COUNTER: event.TYPE_COUNTER,
        }

    def chunk(self, moments: list[Moment]) -> bytes:
        """Return the packets of some moments, the first time after those of the tracks."""
        trace = self._proto.Trace()
        needs = self._proto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        head = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)
        head.timestamp = moments[0][0] if moments else 0
        head.sequence_flags = needs
        if self._first:
            head.sequence_flags = self._proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
            self._tracks(trace)
            self._first = False
        self._interned = head.interned_data
        types = self._types
        for time, _, what, of in moments:
            packet = trace.packet.add()
            packet.timestamp = time
            packet.trusted_packet_sequence_id = _SEQUENCE
            packet.sequence_flags = needs
            event = packet.track_event
            event.type = types[what]
            event.track_uuid = _uuid(of.track)
            if what == _COUNTER:
                event.counter_value = of.value
            elif what != _END:
                self._describe(event, of)
        data: bytes = trace.SerializeToString()
        return data

    def _tracks(self, trace: Any) -> None:
        """Add the tracks, each below that of its group."""
        proto, groups = self._proto, {}
        explicit = proto.TrackDescriptor.EXPLICIT
        tracks = self._timeline.tracks
        for rank, group in enumerate(sorted({track.group for track in tracks}, key=_group_rank)):
            groups[group] = _uuid(len(tracks) + rank)
            packet = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)
            top = packet.track_descriptor
            top.uuid, top.name = groups[group], group
            top.child_ordering, top.sibling_order_rank = explicit, rank
        for number, track in enumerate(tracks):
            packet = trace.packet.add(trusted_packet_sequence_id=_SEQUENCE)
            row = packet.track_descriptor
            row.uuid, row.parent_uuid, row.name = _uuid(number), groups[track.group], track.name
            row.sibling_order_rank = number
            if track.unit:
                counter = proto.CounterDescriptor
                row.counter.unit = counter.UNIT_SIZE_BYTES if track.unit == "bytes" else counter.UNIT_COUNT

    def _describe(self, event: Any, of: Slice) -> None:
        """Fill in what a slice is."""
        event.name_iid = self._number("event_names", of.name)
        event.category_iids.append(self._number("event_categories", of.category))
        for key, value in of.args.items():
            argument = event.debug_annotations.add()
            argument.name_iid = self._number("debug_annotation_names", key)
            if isinstance(value, bool):
                argument.bool_value = value
            elif isinstance(value, int):
                argument.int_value = value
            else:
                argument.string_value_iid = self._number("debug_annotation_string_values", value)
        if of.flows:
            event.flow_ids.extend(of.flows)
        if of.terminates:
            event.terminating_flow_ids.append(of.terminates)
        location, stack = self._sites[of.site] if of.site in self._sites else self._site(of.site)
        if location:
            event.source_location_iid = location
        if stack:
            argument = event.debug_annotations.add()
            argument.name_iid = self._number("debug_annotation_names", "stack")
            argument.string_value_iid = stack

    def _number(self, table: str, text: str) -> int:
        """Return the number of a text, which is written where it is new."""
        key = table, text
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
            entry = getattr(self._interned, table).add(iid=number)
            if table == "debug_annotation_string_values":
                entry.str = text.encode()
            else:
                entry.name = text
        return number

    def _site(self, site: int) -> tuple[int, int]:
        """Return the numbers of a site's place and stack, 0 where nothing is known."""
        stack_of_site = _sites.parse(self._text_of_site(site))
        # Frames of the code that runs the program are left out.
        program = itertools.takewhile(lambda frame: frame.file != _RUNNER, stack_of_site)
        frames = tuple(_sites.Frame(_encodable(file), line, _encodable(function)) for file, line, function in program)
        found = 0, 0
        if frames:
            own = _sites.outside(frames)
            place, line, function = _sites.innermost(frames) or frames[0]
            location = len(self._sites)
            self._interned.source_locations.add(iid=location, file_name=place, function_name=function, line_number=line)
            stack = "\n".join(f"{place}:{line} in {function}" for place, line, function in own or frames)
            found = location, self._number("debug_annotation_string_values", stack)
        self._sites[site] = found
        return found


def _encodable(text: str) -> str:
    """Return a text without surrogates that stand alone, which UTF-8 has no form for."""
    return text.encode(errors="backslashreplace").decode()


def _uuid(number: int) -> int:
    return number + 1  # 0 is the track of the whole trace


def _group_rank(group: str) -> tuple[int, int, str]:
    """Devices by their ordinals, then the rest."""
    word, _, number = group.partition(" ")
    return (0, int(number), "") if word == "device" else (1, 0, word)
