"""What the tools find, as plain data: for files that other programs read, and across processes."""

from __future__ import annotations

import traceback
from typing import Literal, NamedTuple, TypedDict

from .. import _sites
from .._core._assertions import on_stream
from .._errors import StallError
from .._sites import Frame
from .._traces.sequence import Sequence
from .edit import Edit, edits
from .finding import Access, Finding
from .nearby import sequence_of
from .remedy import remedy, stream_label
from .report import LOST, described, how, reason

__all__ = [
    "CALLER", "RULES", "Change", "Fix", "Place", "Result", "Rule", "Touch", "failing_schedule", "left", "of_exception",
    "of_finding", "under_schedule",
]  # fmt: skip

#: What is said of the calls that led to an access, and how many of them are given.
CALLER = "called from here"
_CALLERS = 5

Level = Literal["error", "warning", "note"]


class Rule(NamedTuple):
    """A kind of result."""

    name: str
    level: Level
    text: str


RULES = {
    "race": Rule("UnorderedAccess", "error", "Two operations work on the same bytes, and nothing orders them."),
    "refill": Rule(
        "RefilledPinnedMemory",
        "error",
        "Pinned memory changed before the host waited for a copy of it.",
    ),
    "kernel": Rule(
        "KernelMistake", "error", "A kernel raced in shared memory, read what nobody wrote, or split a barrier."
    ),
    "query": Rule("OrderedByQueryOnly", "note", "Two operations are ordered only because a query returned true."),
    "timing": Rule("OrderedByTimingOnly", "note", "Two operations are ordered only by the timing of host threads."),
    "undeclared": Rule(
        "UndeclaredWriter", "note", "Pinned memory changed, and a function that declares no writes may have done it."
    ),
    "leak": Rule("Leak", "error", "A stream, event, memory or work is left at the end."),
    "stall": Rule("WaitWithoutEnd", "error", "A wait can never end: everything that could end it waits, too."),
    "assertion": Rule("AssertionOnStream", "error", "An assertion failed in a function on a stream."),
    "schedule": Rule("FailsUnderSchedule", "error", "A program fails in some order of its operations."),
}


class Place(TypedDict):
    """A place in the source, and what happens there."""

    file: str
    line: int
    function: str
    text: str


class Touch(TypedDict):
    """One of the operations that work on the same bytes."""

    file: str
    line: int
    function: str
    stream: str  #: '' for the host
    operation: str  #: what works on them, such as ``copy`` or ``aten::addmm``
    write: bool
    text: str  #: all of it in words


class Fix(TypedDict):
    """A line of code, and the place that it goes before or after; without one `where` says it in words."""

    code: str
    where: str
    file: str
    line: int
    proven: bool  #: in the recorded run the finding goes away with it


class Change(TypedDict):
    """Lines that go into a file in front of one of its lines, or with a column, from 0 on, text within the line."""

    file: str
    line: int
    text: str
    column: int  #: -1 for lines


class Result(TypedDict):
    """One result."""

    rule: str
    code: str  #: of the page that explains it
    level: Level
    title: str  #: in a phrase
    text: str  #: all of it
    place: Place | None
    others: list[Place]  #: what else takes part, and the calls that led there
    accesses: list[Touch]  #: the operations without an order; of a kernel's mistake its launch
    why: str  #: nothing orders them
    fix: Fix | None
    changes: list[Change]  #: that the fix makes
    count: int
    suppression: str  #: the rule that suppresses it, '' for what no rule is about
    test: str
    token: str  #: of a schedule
    timeline: Sequence | None  #: the operations around it, where a report that draws them was asked for


def of_finding(finding: Finding, test: str = "", *, lost: bool = False) -> Result:
    """Return what the sanitizer found; `lost`: torch.compile made it, and the program has no such accesses."""
    first, second = finding.first, finding.second
    main, other = (first, second) if finding.category in ("refill", "kernel") else (second, first)
    found = remedy(finding)
    at = found.place
    return {
        "rule": finding.category,
        "code": LOST if lost else finding.code,
        "level": RULES[finding.category].level,
        "title": f"{described(finding, main)}; {reason(finding)}",
        "text": "\n  ".join(filter(None, [finding.text, how([finding])])),
        "place": _place(main, described(finding, main)),
        "others": [*_stack(main.frames[1:]), *_others(finding, other)],
        "accesses": [_touch(finding, one) for one in (first, second)[: 1 if finding.category == "kernel" else 2]],
        "why": reason(finding),
        "fix": {
            "code": found.line, "where": found.where, "file": at.file if at else "", "line": at.line if at else 0,
            "proven": found.proven,
        } if found.line else None,
        "changes": [_change(one) for one in edits(found)],
        "count": finding.pairs,
        "suppression": finding.suppression,
        "test": test,
        "token": "",
        "timeline": sequence_of(finding),
    }  # fmt: skip


def _change(one: Edit) -> Change:
    return {"file": one.file, "line": one.line, "text": one.text, "column": one.column}


def left(line: str, place: Frame | None, test: str = "") -> Result:
    """Return something that is left at the end of a program or a test."""
    return _without_accesses("leak", "leak", line, line, place and _at(place, "made here"), test)


def failing_schedule(
    title: str, text: str, place: Frame | None, test: str, token: str, timeline: Sequence | None = None
) -> Result:
    """Return a failure under a schedule."""
    found = _without_accesses("schedule", "schedule-failure", title, text, place and _at(place, title), test)
    return {**found, "token": token, "timeline": timeline}


def of_exception(exc: BaseException, test: str = "") -> Result | None:
    """Return the wait without an end, or the assertion of a function on a stream, that an exception stands for.

    None for any other. The place is the innermost line of the program.
    """
    if isinstance(exc, StallError):
        rule, code, text = "stall", exc._page, str(exc)
    elif isinstance(exc, AssertionError) and on_stream(exc):
        rule, code = "assertion", "assertion-on-stream"
        text = traceback.format_exception_only(exc)[0].strip()  # without the notes
    else:
        return None
    entries = traceback.extract_tb(exc.__traceback__)
    frames = [Frame(one.filename, one.lineno or 1, one.name) for one in reversed(entries)]
    at = _sites.innermost(frames)
    title = text.partition("\n")[0]
    if at is not None:
        frames = [one for one in frames[frames.index(at) + 1 :] if _sites.is_program(one.file)]
    return {
        **_without_accesses(rule, code, title, text, at and _at(at, title), test),
        "others": _stack(tuple(frames)),
    }


def _without_accesses(rule: str, code: str, title: str, text: str, place: Place | None, test: str) -> Result:
    """Return a result that is no pair of accesses."""
    return {
        "rule": rule, "code": code, "level": RULES[rule].level, "title": title, "text": text, "place": place,
        "others": [], "accesses": [], "why": "", "fix": None, "changes": [], "count": 1, "suppression": "",
        "test": test, "token": "", "timeline": None,
    }  # fmt: skip


def _at(frame: Frame, text: str) -> Place:
    return {"file": frame.file, "line": frame.line, "function": frame.function, "text": text}


def under_schedule(one: Result, text: str, token: str, timeline: Sequence | None) -> Result:
    """Return a result of `of_exception` with the schedule that leads there, and what explains it."""
    return {**one, "text": f"{one['text']}\n\n{text}", "token": token, "timeline": timeline}


def _place(access: Access, text: str) -> Place | None:
    for frame in access.frames[:1]:
        return {"file": frame.file, "line": frame.line, "function": frame.function, "text": text}
    return None


def _touch(finding: Finding, access: Access) -> Touch:
    file, line, function = access.frames[0] if access.frames else ("", 0, "")
    return {
        "file": file, "line": line, "function": function,
        "stream": "" if access.host else stream_label(finding, access),
        "operation": access.operation or access.kind,
        "write": access.write,
        "text": described(finding, access),
    }  # fmt: skip


def _stack(frames: tuple[Frame, ...]) -> list[Place]:
    return [{"file": f.file, "line": f.line, "function": f.function, "text": CALLER} for f in frames[:_CALLERS]]


def _others(finding: Finding, access: Access) -> list[Place]:
    found = _place(access, described(finding, access))
    made = finding.made_at
    places = [found] if found else []
    places += _stack(access.frames[1:])
    if made is not None:
        places.append({"file": made.file, "line": made.line, "function": made.function, "text": "the memory"})
    return places
