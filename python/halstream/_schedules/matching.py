"""Finds the operations that a token names in a program that has changed since.

A token keeps for each operation and call that it names a few *marks*, numbers below
128 that stand for a kind and for a line of source: those of the named one and
of those before it on its stream. An operation with the same kind and line is taken for
the same one, wherever it is now; where there are several, what comes before decides.
"""

from __future__ import annotations

import linecache
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .._sites import Frame, innermost, outside, parse
from .._traces import log as _log
from .execution import Execution
from .steps import host_calls
from .token import Hold, Token, parse_spec, spec_text

__all__ = ["Match", "marks_of", "match", "place_of"]

# Operations before a named one that are kept, and named ones with marks in a token.
_BEFORE = 4
_MOST = 16

Text = Callable[[int], str]


class Mark(NamedTuple):
    """What an operation or a call is recognised by."""

    kind: int
    line: int

    @property
    def both(self) -> int:
        return (self.kind * 31 + self.line) % 128


class _Named(NamedTuple):
    """An operation or a call that a token names; stream 0 has the calls."""

    stream: int
    number: int
    mark: Mark
    occurrence: int  #: how many before it have the same mark
    before: tuple[int, ...]  #: the marks before it, the nearest last


class Match(NamedTuple):
    """What became of a token's schedule.

    Attributes
    ----------
    spec : str
        The schedule in the numbers of the changed program.
    kept, lost : int
        How many of its holds that has, and how many it cannot have: an
        operation was not found, or both are on one stream now.
    """

    spec: str
    kept: int
    lost: int

    def __str__(self) -> str:
        if not self.spec.startswith("holds") and not self.lost:
            return "under the same schedule"
        order = f"in the order of the token, matched for {self.kept} of {self.kept + self.lost} held operation(s)"
        return f"{order}; the others cannot come in it any more" if self.lost else order


def place_of(stack: str) -> Frame | None:
    """Return the program's frame of a stack that the runtime gave as text."""
    frames = parse(stack)
    return innermost(frames) if outside(frames) else None


# -- marks ------------------------------------------------------------------------


def _number(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % 127 + 1


def _mark(line: _log.Line, text: Text) -> Mark:
    place = place_of(text(line.site)) if line.site else None
    if place is None:
        return Mark(_number(line.kind), 0)
    source = linecache.getline(place.file, place.line)
    words = " ".join(source.split()) or f"{place.function} {place.line}"
    return Mark(_number(line.kind), _number(words))


def _sequences(execution: Execution, text: Text) -> dict[int, list[Mark]]:
    """Return the marks of a run: for each stream those of its operations, under 0 those of the calls."""
    linecache.checkcache()
    lines = {line.id: line for line in _log.parse(execution.trace)}
    known = host_calls(execution, lines)
    calls = execution.calls.splitlines()
    found: dict[int, list[Mark]] = {0: []}
    numbers: dict[tuple[int, int], int] = {}  # of streams, by device and index
    for number, call in enumerate(calls, 1):
        kind, _, stream = call.partition(" ")[2].rpartition(" ")
        line = known.get(number)
        found[0].append(_mark(line, text) if line is not None else Mark(_number(kind), 0))
        if line is not None and not line.host and int(stream):
            numbers.setdefault((line.device, line.stream), int(stream))
    ran: Counter[int] = Counter()
    for item, number in execution.ids.items():
        stream, _, place = item.partition(".")
        own = found.setdefault(int(stream), [])
        own += [Mark(0, 0)] * (int(place) - len(own))
        line = lines.get(number)
        if line is not None:
            own[int(place) - 1] = _mark(line, text)
            numbers[line.device, line.stream] = int(stream)
        ran[int(stream)] = max(ran[int(stream)], number)
    for number in sorted(lines):  # what was dropped before it could run
        line = lines[number]
        at = numbers.get((line.device, line.stream), 0)
        if at and not line.host and number > ran[at]:
            found.setdefault(at, []).append(_mark(line, text))
    return found


def _named(spec: str, sequences: dict[int, list[Mark]]) -> list[tuple[int, int]]:
    """Return the stream and the number of what the marks of a token are for."""
    kind, parameters = parse_spec(spec)
    if kind == "holds":
        ends = [end for hold in parameters if isinstance(hold, Hold) for end in (hold[:2], hold[2:])]
        return list(dict.fromkeys((stream, number) for stream, number in ends))[:_MOST]
    if kind in ("random", "pct"):
        return []  # which order these give depends on how many operations there are
    streams = sorted(stream for stream in sequences if stream)
    if kind == "starve":
        streams = [stream for stream in parameters if isinstance(stream, int) and stream in sequences]
    return [(stream, len(sequences[stream])) for stream in streams[:_BEFORE]]


def marks_of(execution: Execution, text: Text) -> tuple[int, ...]:
    """Return the marks for the token of a run, none where the run has no trace."""
    if not execution.trace:
        return ()
    sequences = _sequences(execution, text)
    marks: list[int] = []
    for stream, number in _named(execution.spec, sequences):
        own = sequences.get(stream, [])
        mark = own[number - 1] if number <= len(own) else Mark(0, 0)
        before = own[max(0, number - 1 - _BEFORE) : number - 1]
        occurrence = own[: number - 1].count(mark)
        marks += [len(before), *mark, occurrence, *(one.both for one in before)]
        if not execution.spec.startswith("holds"):
            marks += [stream, number]
    return tuple(marks)


def _read(token: Token) -> list[_Named]:
    """Return what a token names; what does not fit together is left out."""
    ends = iter(_named(token.spec, {}) if token.kind == "holds" else ())
    rest, found = list(token.marks), []
    while len(rest) >= 4 and len(rest) >= 4 + rest[0]:
        count, kind, line, occurrence = rest[:4]
        before, rest = tuple(rest[4 : 4 + count]), rest[4 + count :]
        end = next(ends, None) if token.kind == "holds" else (rest[0], rest[1]) if len(rest) > 1 else None
        rest = rest if token.kind == "holds" else rest[2:]
        if end is None:
            break
        found.append(_Named(*end, Mark(kind, line), occurrence, before))
    return found


# -- matching ---------------------------------------------------------------------


def match(token: Token, execution: Execution, text: Text) -> Match | None:
    """Return a token's schedule for a program that has changed; None where nothing of it is found there.

    Parameters
    ----------
    token : Token
    execution : Execution
        A run of the program under ``fifo``, with its trace.
    text : function
        Gives the stack of a site.
    """
    sequences = _sequences(execution, text)
    places = {one[:2]: _find(one, sequences) for one in _read(token)}
    sure = {end for end, (_, exact) in places.items() if exact}
    if not sure:
        return None
    if token.kind != "holds":
        starved = next((place for place, _ in places.values() if place is not None), None)
        spec = f"starve {starved[0]}" if token.kind == "starve" and starved is not None else token.spec
        return Match(spec, 0, 0)
    holds: dict[Hold, None] = {}
    lost = 0
    for hold in token.parameters:
        assert isinstance(hold, Hold)
        one, _ = places.get(hold[:2], (None, False))
        two, _ = places.get(hold[2:], (None, False))
        if one is None or two is None or one[0] == two[0] or not sure & {hold[:2], hold[2:]}:
            lost += 1
        else:
            holds[Hold(*one, *two)] = None
    return Match(spec_text("holds", tuple(holds)) if holds else "fifo", len(token.parameters) - lost, lost)


def _find(named: _Named, sequences: dict[int, list[Mark]]) -> tuple[tuple[int, int] | None, bool]:
    """Return where a named operation is now, None if it is not found, and whether its line is the same."""
    best: tuple[tuple[object, ...], tuple[int, int], bool] | None = None
    for stream, marks in sequences.items():
        if bool(stream) != bool(named.stream):
            continue
        seen: Counter[Mark] = Counter()
        for place, mark in enumerate(marks):
            occurrence, same = seen[mark], mark == named.mark
            seen[mark] += 1
            if mark.kind != named.mark.kind or (mark.kind == 0 and mark.line == 0):
                continue
            near = _common([one.both for one in marks[max(0, place - 2 * _BEFORE) : place]], named.before)
            if not same and not near and (stream, place + 1) != named[:2]:
                continue
            # An unchanged line that is where it was: context, then the turn, then the number.
            rank = (same, near, stream == named.stream, -abs(occurrence - named.occurrence), -place)
            if best is None or rank > best[0]:
                best = rank, (stream, place + 1), same and bool(mark.line)
    return (best[1], best[2]) if best is not None else (None, False)


def _common(one: Sequence[int], two: Sequence[int]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(two) + 1)
    for a in one:
        diagonal = 0
        for index, b in enumerate(two, 1):
            diagonal, row[index] = row[index], diagonal + 1 if a == b else max(row[index], row[index - 1])
    return row[-1]
