"""What one run of a program under a schedule did, and how two runs differ."""

from __future__ import annotations

import functools
import traceback
from dataclasses import dataclass, field, replace
from typing import Any

from .._records import OperationRecord

__all__ = ["Execution", "Failure", "first_difference"]


@dataclass(frozen=True)
class Failure:
    """How a run failed: two failures that are equal are taken for the same one."""

    type: str
    place: str = ""  #: of an assertion: its place in the source
    text: str = field(default="", compare=False)
    #: Whether other schedules are worth trying: a report of the sanitizer and a
    #: time limit are complete by themselves.
    search: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, exc: BaseException, search: bool = True) -> Failure:
        """Return the failure that an exception which ended a run stands for."""
        kind = type(exc)
        place = ""
        if isinstance(exc, AssertionError) or kind.__name__ == "Failed":
            frames = traceback.extract_tb(exc.__traceback__)
            if frames:
                place = f"{frames[-1].filename}:{frames[-1].lineno}"
        name = kind.__qualname__
        if kind.__module__ not in ("builtins", "halstream._errors", "_pytest.outcomes"):
            name = f"{kind.__module__}.{name}"
        try:
            text = str(exc)
        except Exception:
            text = "(its text cannot be had)"
        return cls(name, place, text, search)

    def __str__(self) -> str:
        line = self.text.strip().partition("\n")[0]
        return f"{self.type}: {line}" if line else self.type


@dataclass(frozen=True)
class Execution:
    """What the runtime noted while a program ran under a schedule.

    Attributes
    ----------
    order : str
        ``hM`` for the M-th call of the host, ``S.N#ID`` for the N-th operation
        of stream S, in the order in which they happened.
    calls : str
        A line for each call of the host: thread, kind, stream.
    trace : tuple of OperationRecord
        The log of the run, where it was asked for.
    declared : frozenset of int
        With it: the numbers of functions that declare all that they work on.
    turns : str
        The strategy that makes the host threads take the turns of this run; '' where they were not controlled.
    points : int
        At how many points more than one thread could go on.
    handovers : tuple of str
        The first departures in words.
    uncontrolled : str
        Where a thread waited that the control knew nothing of; '' if the run is wholly controlled.
    kept : object
        What the runner stores with the run, such as the exception.
    """

    spec: str
    order: str = ""
    calls: str = ""
    fingerprint: str = ""
    steps: int = 0
    failure: Failure | None = None
    trace: tuple[OperationRecord, ...] = ()
    declared: frozenset[int] = frozenset()
    turns: str = ""
    points: int = 0
    uncontrolled: str = ""
    handovers: tuple[str, ...] = ()
    kept: Any = field(default=None, compare=False, repr=False)

    def bare(self) -> Execution:
        """Return the same without what is kept, such as the frames of an exception."""
        return replace(self, kept=None)

    @functools.cached_property
    def items(self) -> list[str]:
        """What happened, without the numbers of operations."""
        return [item.partition("#")[0] for item in self.order.split()]

    @functools.cached_property
    def ids(self) -> dict[str, int]:
        """The runtime's number of each operation that has one."""
        found = {}
        for entry in self.order.split():
            item, _, number = entry.partition("#")
            if number and number != "0":
                found[item] = int(number)
        return found

    @property
    def streams(self) -> dict[int, int]:
        """How many operations ran on each stream."""
        counts: dict[int, int] = {}
        for item in self.items:
            if item[0] != "h":
                stream = int(item.partition(".")[0])
                counts[stream] = counts.get(stream, 0) + 1
        return counts

    def same(self, other: Execution) -> bool:
        """Whether another run did the same and ended in the same way."""
        return (self.failure, self.calls, self.items) == (other.failure, other.calls, other.items)


def first_difference(first: Execution, second: Execution) -> str:
    """Return, in a sentence, the first difference of two runs under one schedule."""
    return (
        _calls_differ(first.calls.splitlines(), second.calls.splitlines())
        or _order_differs(first.items, second.items)
        or _failures_differ(first.failure, second.failure)
    )


def _calls_differ(first: list[str], second: list[str]) -> str:
    for number, (one, two) in enumerate(zip(first, second, strict=False), 1):
        if one != two:
            return f"call {number} of the host was {call_words(one)} in one run and {call_words(two)} in the other"
    if len(first) != len(second):
        longer = max(first, second, key=len)
        number = min(len(first), len(second)) + 1
        return (
            f"one run made {len(first)} call{'s' * (len(first) != 1)} and the other {len(second)}: "
            f"call {number}, {call_words(longer[number - 1])}, is only in one"
        )
    return ""


def _order_differs(first: list[str], second: list[str]) -> str:
    for one, two in zip(first, second, strict=False):
        if one != two:
            return f"{item_words(one)} came in one run where {item_words(two)} came in the other"
    if len(first) != len(second):
        longer = max(first, second, key=len)
        return f"{item_words(longer[min(len(first), len(second))])} is only in one of the runs"
    return ""


def _failures_differ(first: Failure | None, second: Failure | None) -> str:
    if first == second:
        return ""
    one, two = (f"failed with {f}" + (f" at {f.place}" if f.place else "") if f else "passed" for f in (first, second))
    return f"with the same calls in the same order one run {one} and the other {two}"


def call_words(line: str) -> str:
    """Return a line of the runtime's calls in words."""
    thread, _, rest = line.partition(" ")
    kind, _, stream = rest.rpartition(" ")
    where = f" on stream {stream}" if stream not in ("", "0") else ""
    return f"'{kind}'{where} by thread {thread}"


def item_words(item: str) -> str:
    """Return an item of an order in words."""
    if item.startswith("h"):
        return f"call {item[1:]} of the host"
    stream, _, number = item.partition(".")
    return f"operation {number} of stream {stream}"
