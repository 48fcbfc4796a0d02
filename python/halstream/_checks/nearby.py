"""The operations around those of a finding, to be drawn; they are gathered where a report that draws them is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import _native, _sites
from .._native._constants import OP_CALL, OP_NATIVE, OP_REPORT
from .._records import MadeRecord, NearbyRecord, decode, encode
from .._runtime import State, runtime
from .._traces import sequence as _sequence
from .._traces.log import Line, parse
from . import proving as _proving
from . import source as _source
from .finding import Access, Finding, Frame, Made
from .remedy import stream_label
from .variables import stood_for, stream_key

__all__ = ["sequence_of", "settle", "want", "wanted"]

#: Operations that are drawn of one finding.
_MOST = 24
_KEPT = 10_000
_CHUNK = 250  # findings whose operations are asked for at a time
_TOO_LONG = "the run was too long to be recorded: only the operations of the finding are drawn"


class _Gathered(State):
    """What was gathered for findings, by their checks and numbers."""

    def __init__(self) -> None:
        self.wanted = False
        self.sequences: dict[tuple[int, int], _sequence.Sequence] = {}


_gathered = runtime.add("operations around findings", _Gathered())


def want() -> None:
    """Say that a report will draw the operations around findings."""
    _gathered.wanted = True


def wanted() -> bool:
    """Return whether a report will draw the operations around findings."""
    return _gathered.wanted


def sequence_of(f: Finding) -> _sequence.Sequence | None:
    """Return the operations around those of a finding, None where nobody wanted them."""
    return _gathered.sequences.get((f.check, f.number))


def settle(findings: Iterable[Finding]) -> None:
    """Gather the operations around findings of the check that is on, while the run is known."""
    if not _gathered.wanted:
        return
    now = _proving.current()
    mine = [f for f in findings if f.check == now and f.number >= 0 and (now, f.number) not in _gathered.sequences]
    if not mine:
        return
    for key in list(_gathered.sequences)[: max(0, len(_gathered.sequences) + len(mine) - _KEPT)]:
        del _gathered.sequences[key]
    made_records: list[MadeRecord] = decode(_native.check_made())
    made = Made(made_records)
    for begin in range(0, len(mine), _CHUNK):
        some = mine[begin : begin + _CHUNK]
        around = [[one.id for one in (f.first, f.second, f.wait, f.record) if one is not None and one.id] for f in some]
        found: NearbyRecord = decode(_native.check_nearby(encode(around), _MOST))
        lines = [parse([one])[0] for one in found["operations"]]
        for f, indices in zip(some, found["around"], strict=True):
            near = [found["places"][i] for i in indices], [lines[i] for i in indices]
            _gathered.sequences[f.check, f.number] = _drawn(f, *near, made)


def _drawn(f: Finding, places: Sequence[int], lines: Sequence[Line], made: Made) -> _sequence.Sequence:
    rows: list[_sequence.Row] = []
    numbers: dict[tuple[int, int], int] = {}  # of rows, by device and stream; the device of a host thread is -1
    steps: list[_sequence.Step] = []

    def row(device: int, stream: int, name: str) -> int:
        if (device, stream) not in numbers:
            numbers[device, stream] = len(rows)
            rows.append({"name": name, "host": device < 0})
        return numbers[device, stream]

    for access in (f.first, f.second):  # their rows come first
        if not access.unknown:
            row(*_key(access), _name_of(f, access))
    marks = {access.id: mark for mark, access in (("first", f.first), ("second", f.second)) if not access.unknown}
    index = {}
    for number, line in zip(places, lines, strict=True):
        if line.host:
            at = row(-1, line.thread, _thread(line.thread))
        else:
            at = row(line.device, line.stream, _stream(f, line, made))
        index[line.id] = len(steps)
        frames = _sites.program_frames(line.site)
        frame = frames[0] if frames else None
        mine = [one.function or one.operation for one in (f.first, f.second) if one.id == line.id]
        name = mine[0] if mine else _function(line, frame)
        steps.append(_sequence.step_of(line, at, frame, number, marks.get(line.id, ""), name))
    note = "" if steps else _TOO_LONG
    for access, mark in ((f.first, "first"), (f.second, "second")):
        if access.unknown or any(step["mark"] == mark for step in steps):
            continue
        index[access.id] = len(steps)
        steps.append({
            "name": access.operation or access.function or access.kind, "kind": access.kind, "small": False,
            "row": row(*_key(access), _name_of(f, access)), "mark": mark, "after": [], "number": 0,
            "place": _sequence.place_of(access.frames[0] if access.frames else None),
        })  # fmt: skip
    for here, ends in _sequence.after(lines, lambda line: index[line.id]).items():
        steps[here]["after"] = ends
    missing = [i for mark in ("first", "second") for i, step in enumerate(steps) if step["mark"] == mark]
    return {
        "rows": rows, "steps": steps, "missing": missing if len(missing) == 2 else [], "order": "calls", "note": note
    }  # fmt: skip


def _key(access: Access) -> tuple[int, int]:
    return (-1, access.thread) if access.host else (access.device, access.stream)


def _name_of(f: Finding, access: Access) -> str:
    return _thread(access.thread) if access.host else stream_label(f, access)


def _thread(number: int) -> str:
    return f"host thread {number}"


def _stream(f: Finding, line: Line, made: Made) -> str:
    label = f"stream {line.stream}" if line.stream else "the default stream"
    name, _ = made.stream(line.device, line.stream)
    if not _sites.real_torch.paddle and not stood_for(name, stream_key(line.device, line.stream)):
        name = ""  # of what the program made, which may hold the stream
    other = {f.first.device, f.second.device, line.device} - {-1}
    return label + (f" ({name})" if name else "") + (f" of device {line.device}" if len(other) > 1 else "")


def _function(line: Line, frame: Frame | None) -> str:
    if line.kind in (OP_CALL, OP_REPORT, OP_NATIVE) and frame is not None:
        here = _source.statement(frame.file, frame.line)
        return here.function() if here is not None else ""
    return ""
