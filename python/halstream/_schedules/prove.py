"""Every order of a program's operations that can make a difference, each of them once.

Two operations *conflict* if the order in which they run can matter: they work on the same bytes and one
of them writes, or it is not known what a function touches. A call that asks whether a stream or an event
is done conflicts with the operations that it asks about. Of conflicting operations which streams, events
and waits leave unordered, either may come first. Two runs in which all those pairs have the same order
are equivalent, so that one run stands for all of its class (Mazurkiewicz traces, as in dynamic partial
order reduction).

A run shows pairs that nothing has decided yet. For the first of them the search splits: the run itself
belongs to one half, and the other half begins with a run in which the second operation is held until
the first has run, while all that was decided before stays. No class is run twice.
"""

from __future__ import annotations

import copy
import heapq
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from .._native._constants import (
    OP_CALL,
    OP_IF,
    OP_KERNEL,
    OP_LAUNCH,
    OP_LAUNCH_GRAPH,
    OP_NATIVE,
    OP_REPORT,
    OP_SWITCH,
    OP_WHILE,
)
from .._records import OperationRecord, RangeRecord
from .execution import Execution
from .token import Hold, spec_text

__all__ = ["MOST_COUNTED", "Progress", "Proof", "prove"]

#: A call of the host that no program makes: what is held until then runs when nothing else can.
_NEVER = 2**31 - 1

#: How long a search says nothing, in seconds.
_SECONDS = 2.0

_CALLS_THAT_WAIT = ("synchronize", "query", "open gate")

#: `first` before `second`; items of an order, such as ``2.1`` or ``h7``.
Pair = tuple[str, str]
Run = Callable[[str], Execution]


@dataclass
class Proof:
    """What a search over all orders has done.

    Attributes
    ----------
    orders : int
        Classes of equivalent orders that were run.
    exhausted : bool
        Whether these are all.
    failing : Execution or None
        The run that failed, which ended the search.
    runs : int
        All runs, with those that found out what can precede what.
    expected : int
        At most so many classes there are if the program makes the same calls in each; what it does under some order may
        add others. They are counted before they are run, up to `MOST_COUNTED` and one more.
    """

    orders: int = 0
    exhausted: bool = True
    failing: Execution | None = None
    runs: int = 0
    expected: int = 0


#: How many classes of orders are counted before they are run.
MOST_COUNTED = 10_000


def prove(run: Run, most: int) -> Proof:
    """Run a program in every order that can make a difference.

    Orders with few departures from that of the calls come first.

    Parameters
    ----------
    run : function
        Runs the program under a spec, and returns what it did with the log of its operations.
    most : int
        Orders after which the search gives up.
    """
    search = _Search(run)
    try:
        search.all(most)
    except _Failed as failed:
        search.proof.failing = failed.execution
        search.proof.exhausted = False
    return search.proof


class Progress:
    """Says on a terminal how many orders there may be, and how long they will take, of a search of some seconds."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._said = 0.0

    def passed(self, proof: Proof) -> None:
        """Say how far the search is, at most every two seconds."""
        now, terminal = time.monotonic(), sys.__stderr__
        if now - max(self._began, self._said) < _SECONDS or terminal is None or not terminal.isatty():
            return
        self._said = now
        left = (now - self._began) / proof.orders * (proof.expected - proof.orders)
        text = f"{proof.orders:,} of up to {proof.expected:,} orders pass"
        if proof.expected > MOST_COUNTED:
            text = f"{proof.orders:,} orders pass; there may be more than {MOST_COUNTED:,}"
        elif left > 0:
            text += f", at most about {left:,.0f} s left"
        terminal.write(f"halstream: {text}\n")
        terminal.flush()


class _Failed(Exception):
    def __init__(self, execution: Execution) -> None:
        super().__init__()
        self.execution = execution


@dataclass
class _Search:
    run: Run
    proof: Proof = field(default_factory=Proof)
    progress: Progress = field(default_factory=lambda: Progress())
    # What a program calls can depend on the order. Calls of a run -> which items come after an operation
    # in every order, and the partial order of all items that follows.
    _after: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    _known: dict[str, _Closure] = field(default_factory=dict)

    def all(self, most: int) -> None:
        serial = itertools.count()
        todo: list[tuple[int, int, tuple[Pair, ...]]] = [(0, next(serial), ())]
        while todo:
            if self.proof.orders == most:
                self.proof.exhausted = False
                return
            turned, _, decided = heapq.heappop(todo)
            execution = self._try(decided)
            if not all(_has(execution, pair) for pair in decided):
                continue  # something that the program did in no other run prevents it
            self.proof.orders += 1
            if not decided:
                self.proof.expected = self._count(execution)
            self.progress.passed(self.proof)
            for other in self._others(execution, decided):
                heapq.heappush(todo, (turned + 1, next(serial), other))

    def _try(self, decided: Iterable[Pair]) -> Execution:
        holds = tuple(hold for first, second in decided for hold in _hold(first, second))
        self.proof.runs += 1
        execution = self.run(spec_text("holds", holds) if holds else "fifo")
        if execution.failure is not None:
            raise _Failed(execution)
        return execution

    def _others(self, execution: Execution, decided: tuple[Pair, ...]) -> Iterator[tuple[Pair, ...]]:
        """Yield what to decide for the classes next to a run's own."""
        pairs = list(_conflicts(execution))
        order = self._order(execution, dict.fromkeys(item for pair in pairs for item in pair if item[0] != "h"))
        for first, second in decided:
            order.add(first, second)
        for first, second in pairs:
            if order.has(first, second) or order.has(second, first):
                continue
            yield (*decided, (second, first))
            decided = (*decided, (first, second))
            order.add(first, second)

    def _count(self, execution: Execution) -> int:
        """Return how many classes of orders the pairs of a run leave, `MOST_COUNTED` + 1 if there are more."""
        pairs = list(_conflicts(execution))
        order = self._order(execution, dict.fromkeys(item for pair in pairs for item in pair if item[0] != "h"))
        found, todo = 0, [(0, order)]
        while todo and found <= MOST_COUNTED:
            at, order = todo.pop()
            while at < len(pairs) and (order.has(*pairs[at]) or order.has(*reversed(pairs[at]))):
                at += 1
            if at == len(pairs):
                found += 1
                continue
            other = order.copy()
            order.add(*pairs[at])
            other.add(*reversed(pairs[at]))
            todo += [(at + 1, other), (at + 1, order)]
        return found

    def _order(self, execution: Execution, operations: Iterable[str]) -> _Closure:
        """Return which items of a run come after which in every order, as far as it concerns these operations."""
        known = self._known.get(execution.calls)
        if known is None or not known.holds(execution.items):
            known = self._known[execution.calls] = _Closure(execution.items)
        for item in operations:
            if item not in known.complete:
                known.complete.add(item)
                for later in self._after_in_all(execution, item):
                    known.add(item, later)
        return known.copy()

    def _after_in_all(self, execution: Execution, item: str) -> frozenset[str]:
        """Return what cannot precede an operation: what is left when it runs only because nothing else can."""
        known = self._after.setdefault(execution.calls, {})
        if item not in known:
            last = self._try([(f"h{_NEVER}", item)])
            found: Iterable[str] = ()
            if last.calls == execution.calls and item in last.items:
                found = last.items[last.items.index(item) + 1 :]
            known[item] = frozenset(found)
        return known[item]


class _Closure:
    """A partial order of items, kept transitive.

    Attributes
    ----------
    complete : set of str
        Items of which all that comes after them in every order is known.
    """

    def __init__(self, items: Iterable[str]) -> None:
        self.complete: set[str] = set()
        self._index = {item: number for number, item in enumerate(items)}
        self._before = [0] * len(self._index)
        self._after = [0] * len(self._index)
        last: dict[str, str] = {}
        for item in self._index:
            if item[0] != "h":
                stream = item.partition(".")[0]
                if stream in last:
                    self.add(last[stream], item)
                last[stream] = item

    def holds(self, items: list[str]) -> bool:
        """Whether these are its items."""
        return len(items) == len(self._index) and all(item in self._index for item in items)

    def copy(self) -> _Closure:
        """Return one that can be changed by itself."""
        made = copy.copy(self)
        made._before, made._after = self._before.copy(), self._after.copy()
        return made

    def add(self, first: str, second: str) -> None:
        """Put an item before another one; nothing happens where a run has not both."""
        one, two = self._index.get(first), self._index.get(second)
        if one is None or two is None or self._after[one] >> two & 1:
            return
        before, after = self._before[one] | 1 << one, self._after[two] | 1 << two
        for number in _bits(before):
            self._after[number] |= after
        for number in _bits(after):
            self._before[number] |= before

    def has(self, first: str, second: str) -> bool:
        """Whether an item is before another one."""
        return bool(self._after[self._index[first]] >> self._index[second] & 1)


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _hold(first: str, second: str) -> Iterator[Hold]:
    """Yield the hold that lets an item precede another one; calls of the host need none, since all else runs early."""
    if second[0] == "h":
        return
    stream, _, number = second.partition(".")
    if first[0] == "h":
        yield Hold(int(stream), int(number), 0, int(first[1:]))
    else:
        other, _, of_other = first.partition(".")
        yield Hold(int(stream), int(number), int(other), int(of_other))


def _has(execution: Execution, pair: Pair) -> bool:
    """Whether a run has two items in this order; one that it has not is no contradiction."""
    items = execution.items
    first, second = (items.index(item) if item in items else -1 for item in pair)
    return first < 0 or second < 0 or first < second


def _conflicts(execution: Execution) -> Iterator[Pair]:
    """Yield the conflicting pairs of a run, in the order in which they ran."""
    records = {record["id"]: record for record in execution.trace}
    ids, before = execution.ids, list[tuple[str, OperationRecord | None]]()
    calls = _calls(execution)
    for item in execution.items:
        if item[0] == "h":
            continue
        yield from _asked(item, calls, execution.items)
        record = _own(records.get(ids.get(item, 0)))
        if record is None or record["kind"] == OP_LAUNCH_GRAPH:
            continue  # the nodes of a launch are operations of their own
        known = _known(record, execution.declared)
        if known and not (record["reads"] or record["writes"]):
            continue
        access = record if known else None
        stream = item.partition(".")[0]
        for earlier, other in before:
            if earlier.partition(".")[0] != stream and _conflict(other, access):
                yield earlier, item
        before.append((item, access))


def _own(record: OperationRecord | None) -> OperationRecord | None:
    """Return a record with what the operation touches by itself."""
    if record is not None and record["kind"] in (OP_IF, OP_WHILE, OP_SWITCH):
        # Reads its condition, the first of its ranges; the nodes of its bodies are operations of their own.
        return {**record, "reads": record["reads"][:1], "writes": []}
    return record


def _known(record: OperationRecord, declared: frozenset[int]) -> bool:
    """Whether an operation works on nothing but what its record says."""
    if record["kind"] in (OP_CALL, OP_REPORT):
        return record["token"] in declared
    return record["kind"] not in (OP_NATIVE, OP_LAUNCH, OP_KERNEL) or bool(record["reads"] or record["writes"])


def _conflict(one: OperationRecord | None, two: OperationRecord | None) -> bool:
    """Whether the order of two operations can matter; None stands for one that may work on anything."""
    if one is None or two is None:
        return True
    return (
        _overlap(one["writes"], two["writes"])
        or _overlap(one["writes"], two["reads"])
        or _overlap(one["reads"], two["writes"])
    )


def _overlap(one: list[RangeRecord], two: list[RangeRecord]) -> bool:
    return any(
        a["start"] < b["start"] + b["size"] and b["start"] < a["start"] + a["size"]
        for a, b in itertools.product(one, two)
    )


def _calls(execution: Execution) -> list[tuple[str, str]]:
    """Return the kind and the stream of each call of the host."""
    found = []
    for line in execution.calls.splitlines():
        kind, _, stream = line.partition(" ")[2].rpartition(" ")
        found.append((kind, stream))
    return found


def _asked(item: str, calls: list[tuple[str, str]], items: list[str]) -> Iterator[Pair]:
    """Yield the pair of an operation and the end of the first call that asks whether its stream is done.

    The answer is given before the next call begins. A program may ask again and again; further calls can
    but wait for the answer to change.
    """
    stream, _, number = item.partition(".")
    enqueued = 0
    for at, (kind, of) in enumerate(calls, 1):
        if of != stream:
            continue
        if kind == "query" and enqueued >= int(number):
            end = f"h{at + 1}"
            if end in items:
                yield (item, end) if items.index(item) < items.index(end) else (end, item)
            return
        enqueued += kind not in _CALLS_THAT_WAIT
