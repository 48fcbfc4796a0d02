"""Says why a schedule makes a program fail: the operations whose order matters, with source lines."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .. import _native
from .._checks.source import statement
from .._native._constants import (
    OP_OPEN_GATE,
    OP_QUERY_EVENT,
    OP_QUERY_STREAM,
    OP_RECORD,
    OP_SYNCHRONIZE_DEVICE,
    OP_SYNCHRONIZE_EVENT,
    OP_SYNCHRONIZE_STREAM,
    OP_WAIT,
    OP_WAIT_STREAM,
)
from .._records import Range
from .._sites import Frame, outside, package, parse
from .._traces import log as _log
from .._traces import sequence as _sequence
from .execution import Execution, item_words
from .matching import place_of
from .search import Found
from .shrink import departures
from .steps import LAUNCH, host_calls, labels
from .token import Hold, parse_spec
from .turns import parse_turns, split

__all__ = ["explain", "nondeterminism", "sequence_of"]

# Packages between a program and its streams; '' is Python's own library.
_WRAPPERS = {"", "torch", "paddle"}

# Lines that a timeline may have.
_MOST = 12

# Departures from fifo that are shown of a schedule that could not be made smaller.
_FEW = 5

# Steps of a failing run that are drawn.
_DRAWN = 80

# Operations on the same bytes that are shown beside a held one.
_NEAR = 3

# What the host does, in a word.
_CALLS = {
    OP_SYNCHRONIZE_STREAM: "synchronize",
    OP_SYNCHRONIZE_EVENT: "synchronize",
    OP_SYNCHRONIZE_DEVICE: "synchronize",
    OP_QUERY_STREAM: "query",
    OP_QUERY_EVENT: "query",
    OP_OPEN_GATE: "opening of a gate",
}


class Step(NamedTuple):
    """An operation or a call of the host in a run, with its place, stream and bytes."""

    item: str
    stream: str  #: in words, 'host' for a call of the host
    what: str
    place: Frame | None
    reads: tuple[Range, ...]
    writes: tuple[Range, ...]
    node: int = -1  #: of the graph that was launched, -1 for others

    @property
    def title(self) -> str:
        return self.what if self.node < 0 else f"node {self.node} ({self.what})"

    @property
    def short(self) -> str:
        """The step in a phrase: ``the call on stream 2 at app.py:40``."""
        where = f" at {self.place}" if self.place else ""
        if self.stream == "host":
            return f"the host's {self.what}{where}"
        if self.stream.startswith(LAUNCH):
            what = f"the {self.what}" if self.node < 0 else f"node {self.node}, the {self.what},"
            return f"{what} of the {self.stream}{where}"
        number = "" if self.place else f" ({item_words(self.item)})"
        return f"the {self.what} on {self.stream}{number}{where}"


def explain(found: Found, replay: str, text: Callable[[int], str] | None = None) -> str:
    """Return the explanation of a schedule that fails.

    Parameters
    ----------
    found : Found
        With the trace of its last run.
    replay : str
        What the user types to run it again.
    text : function
        Gives the stack of a site; the runtime's own if left out.
    """
    parts = [_headline(found)]
    if split(found.execution.spec)[0] == "fifo":
        parts.append("It fails under fifo, where everything runs in the order of the calls: no other order is needed.")
    else:
        view = _View(found.execution, text or _native.position_text)
        holds = [hold for hold in parse_spec(found.execution.spec)[1] if isinstance(hold, Hold)]
        if holds:
            parts.append(view.timeline(holds))
            parts.extend(view.sentence(hold) for hold in holds[:_MOST])
        else:
            parts.append(view.timeline(departures(found.fifo.items, found.execution.items)[:_FEW]))
    parts.append(_threads_text(found.execution))
    parts.append(f"Replay: {replay}")
    return "\n".join(part for part in parts if part)


def _threads_text(execution: Execution) -> str:
    """Return how the host threads of a run took turns."""
    lines = []
    if execution.handovers:
        lines.append("Host threads run until they wait, but for these turns:")
        lines.extend(f"  {line}" for line in execution.handovers[:_MOST])
        more = len(parse_turns(execution.turns)) - _MOST
        lines.extend([f"  and {more} more"] if more > 0 else [])
    elif execution.turns:
        lines.append("Host threads run each until it waits.")
    if execution.uncontrolled:
        lines.append(f"The run was not wholly controlled, so that another one may differ: {execution.uncontrolled}.")
    return "\n".join(lines)


def _headline(found: Found) -> str:
    token = str(found.token)
    shrunk = found.shrunk
    if found.remembered:
        return f"Fails under schedule {token}, a token remembered from an earlier run."
    if not found.tried:
        return f"Fails under schedule {token}, replayed."
    if shrunk is None:
        return f"Fails under schedule {token}, the {_nth(found.tried)} tried."
    spent = f"{shrunk.runs} run{'s' * (shrunk.runs != 1)} and {shrunk.seconds:.1f} s"
    if not found.execution.spec.startswith("holds"):
        why = "the budget was used up" if not shrunk.complete else "no list of held operations fails in the same way"
        return (
            f"Fails under schedule {token}, the {_nth(found.tried)} tried.\n"
            f"It could not be made smaller in {spent}: {why}."
        )
    count = len(shrunk.holds)
    more = "" if shrunk.complete else ", the whole budget, so fewer may do"
    # The holds of an order that a proof tried are many, and say less than those that are left.
    where = "in an order" if found.original.startswith("holds") else f"under '{found.original}'"
    return (
        f"Fails under schedule {token}: as fifo, but {count} operation{'s are' if count > 1 else ' is'} held.\n"
        f"Found {where}, the {_nth(found.tried)} schedule tried, which departs from fifo in "
        f"{shrunk.first} place{'s' * (shrunk.first != 1)};\nshrunk in {spent}{more}."
    )


def _nth(number: int) -> str:
    if number == 1:
        return "first"
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


def sequence_of(found: Found, text: Callable[[int], str] | None = None) -> _sequence.Sequence | None:
    """Return the operations and calls of a failing run as they ran, None if these are not known.

    Parameters
    ----------
    found : Found
        With the trace of its last run.
    text : function
        Gives the stack of a site; the runtime's own if left out.
    """
    if found.difference or not found.execution.trace:
        return None
    holds = [hold for hold in parse_spec(found.execution.spec)[1] if isinstance(hold, Hold)]
    return _View(found.execution, text or _native.position_text).sequence(holds)


def nondeterminism(found: Found) -> str:
    """Return the text for a program that does not do the same twice."""
    return (
        f"the program is not deterministic by itself: two runs under the schedule "
        f"{found.differs or found.original} differ. "
        f"{found.difference[:1].upper()}{found.difference[1:]}. Random numbers, times, threads of the program, and "
        "what one run leaves for the next are usual causes; until they are removed a schedule cannot be replayed"
    )


class _View:
    """Operations and calls of a traced run, looked up by their names in its order."""

    def __init__(self, execution: Execution, text: Callable[[int], str]) -> None:
        self._execution = execution
        self._text = text
        self._lines = {line.id: line for line in _log.parse(execution.trace)}
        self._labels = labels(execution, self._lines)
        self._host = host_calls(execution, self._lines)

    @functools.cache  # noqa: B019 - lives for one explanation
    def step(self, item: str) -> Step:
        """Return what is known of an item of the order."""
        if item.startswith("h"):
            line = self._host.get(int(item[1:]))
            return self._host_step(item, line)
        number = int(item.partition(".")[0])
        stream = self._labels.get(number, f"stream {number}")
        line = self._lines.get(self._execution.ids.get(item, 0))
        if line is None:
            return Step(item, stream, "operation", None, (), ())
        place = self._place(line)
        found = statement(place.file, place.line) if place and not self._in_library(line, place) else None
        if found is not None and not line.launch and (name := found.stream(line.kind)):
            stream = f"{stream} ({name})"
        return Step(item, stream, _what(line), place, line.reads, line.writes, line.node)

    def _host_step(self, item: str, line: _log.Line | None) -> Step:
        calls = self._execution.calls.splitlines()
        number = int(item[1:])
        if line is not None:
            what = _CALLS.get(line.kind, line.kind) if line.host else f"call that enqueued the {_what(line)}"
            return Step(item, "host", what, self._place(line), (), ())
        kind = calls[number - 1].split(" ", 1)[1].rpartition(" ")[0] if number <= len(calls) else "call"
        return Step(item, "host", f"{kind} (call {number} of the run)", None, (), ())

    def _in_library(self, line: _log.Line, place: Frame) -> bool:
        """Return whether the program's call led to a library, which has streams of its own, and that to the call."""
        frames = outside(parse(str(self._text(line.site))))
        return any(package(frame.file) not in _WRAPPERS for frame in frames[: frames.index(place)])

    def _place(self, line: _log.Line) -> Frame | None:
        return place_of(str(self._text(line.site))) if line.site else None

    def timeline(self, holds: Iterable[Hold]) -> str:
        """Return the operations of holds, what ends these, and what works on the same bytes, as they ran."""
        held = {f"{hold.stream}.{hold.number}": _target(hold) for hold in holds}
        wanted = dict.fromkeys([*held, *held.values()])
        if len(held) == 1:
            wanted.update(dict.fromkeys(self._conflicts(next(iter(held)))))
        order = {item: place for place, item in enumerate(self._execution.items)}
        items = sorted((item for item in wanted if item in order), key=order.__getitem__)[:_MOST]
        rows = []
        for item in items:
            step = self.step(item)
            mark = ""
            if item in held:
                mark = f"held until {self.step(held[item]).short}"
            place, source = "", ""
            if step.place:
                place = f"{step.place} {step.place.function}()".replace("<module>()", "")
                source = linecache.getline(step.place.file, step.place.line).strip()
            rows.append(((step.stream, step.title, place, source), mark))
        widths = [max((len(cells[column]) for cells, _ in rows), default=0) for column in range(4)]
        lines = []
        for cells, mark in rows:
            padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            lines.append(f"  {'  '.join(padded)}".rstrip())
            if mark:
                lines.append(" " * (widths[0] + 4) + mark)
        return "\n".join(lines)

    def sequence(self, holds: Iterable[Hold]) -> _sequence.Sequence:
        """Return the items of the order around the holds, at most `_DRAWN`."""
        marks = {_target(hold): "until" for hold in holds}
        marks.update((f"{hold.stream}.{hold.number}", "held") for hold in holds)
        items = self._execution.items
        marked = [at for at, item in enumerate(items) if item in marks]
        begin = max(0, min(marked[0] - _DRAWN // 4 if marked else 0, len(items) - _DRAWN))
        rows: dict[str, int] = {}
        steps: list[_sequence.Step] = []
        lines: dict[int, _log.Line] = {}
        for at, item in enumerate(items[begin : begin + _DRAWN], begin):
            step = self.step(item)
            if line := self._lines.get(self._execution.ids.get(item, 0)) or self._host_line(item):
                lines[len(steps)] = line
            name = step.stream.partition(" (")[0]
            if line is not None and line.launch and item[:1] != "h":
                name += f", branch {line.branch}"
            row = rows.setdefault(name, len(rows))
            kind = line.kind if line is not None and item[:1] != "h" else step.what
            steps.append({
                "name": step.title, "kind": kind, "row": row, "place": _sequence.place_of(step.place),
                "small": kind.startswith(_sequence.SMALL) or step.stream == "host", "mark": marks.get(item, ""),
                "after": [], "number": at,
            })  # fmt: skip
        number = {id(line): at for at, line in lines.items()}
        for at, ends in _sequence.after(lines.values(), lambda line: number[id(line)]).items():
            steps[at]["after"] = [end for end in ends if end < at]
        pair = [at for at, one in enumerate(steps) if one["mark"]]
        note = f"{len(steps)} of {len(items)} steps of the run are drawn" if len(steps) < len(items) else ""
        return {
            "rows": [{"name": name, "host": name == "host"} for name in rows],
            "steps": steps, "missing": pair if len(pair) == 2 else [], "order": "run", "note": note,
        }  # fmt: skip

    def _host_line(self, item: str) -> _log.Line | None:
        line = self._host.get(int(item[1:])) if item.startswith("h") else None
        return line if line is not None and line.host else None

    def _conflicts(self, item: str) -> list[str]:
        """Return operations of other streams that work on the bytes of one, one of them writing."""
        own = self.step(item)
        found = []
        for name in self._execution.ids:
            other = self.step(name)
            both = (*other.reads, *other.writes)
            clash = _overlap(own.writes, both) or _overlap(own.reads, other.writes)
            if clash and name.partition(".")[0] != item.partition(".")[0]:
                found.append(name)
        place = {name: at for at, name in enumerate(self._execution.items)}
        return sorted(found, key=lambda name: abs(place[name] - place[item]))[:_NEAR]

    def sentence(self, hold: Hold) -> str:
        """Return a sentence on the order of a held operation and the step that ends its hold."""
        own, end = self.step(f"{hold.stream}.{hold.number}"), self.step(_target(hold))
        if hold.until:
            return f"It fails when {end.short} runs before {own.short}: nothing orders them."
        late = f"It fails when {own.short} has not run before {end.short}: "
        if end.what == "synchronize":  # it runs while the host waits there
            return f"{late}nothing makes the host wait for it earlier."
        return f"{late}nothing makes the host wait for it."


def _target(hold: Hold) -> str:
    return f"{hold.until}.{hold.after}" if hold.until else f"h{hold.after}"


def _what(line: _log.Line) -> str:
    """Return an operation in words, with how many bytes it works on."""
    size = max(_log.size(line.reads), _log.size(line.writes))
    if line.kind == OP_WAIT:
        return f"wait for event {line.event}"
    if line.kind == OP_WAIT_STREAM:
        return f"wait for {_log.other_name(line)}"
    if line.kind == OP_RECORD:
        return f"record of event {line.event}"
    what = line.name or line.kind
    return f"{what} of {size} bytes" if size else what


def _overlap(first: Iterable[Range], second: Sequence[Range]) -> bool:
    return any(start < other + length and other < start + size for start, size in first for other, length in second)
