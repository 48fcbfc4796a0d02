"""From the order in which a program failed to the fewest departures from ``fifo``.

A departure is a *hold*: one operation that does not run before something else
has happened, while everything else runs as under ``fifo``. The holds that an
order amounts to are found by comparing it with that of ``fifo``; delta
debugging then leaves those without which the program does not fail, and each
of these is narrowed down to the two things whose order matters.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

from .execution import Execution
from .token import Hold, spec_text

__all__ = ["Budget", "Shrunk", "chain", "departures", "shrink"]

#: More holds than this are not even tried: the list would be no explanation.
MOST = 4000

Run = Callable[[str], Execution]
Holds = tuple[Hold, ...]


class Spent(Exception):
    """The budget is exhausted."""


class Budget:
    """How many runs and seconds may be spent; checked before each run.

    Parameters
    ----------
    runs : int
    seconds : float
    clock : function
        Returns seconds; for tests.
    """

    def __init__(self, runs: int = 200, seconds: float = 20.0, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs, self.seconds = runs, seconds
        self.used = 0
        self._clock = clock
        self._start = clock()

    @property
    def elapsed(self) -> float:
        """Seconds since it was made."""
        return self._clock() - self._start

    def take(self) -> None:
        """Count one more run, or raise `Spent`."""
        if self.used >= self.runs or self.elapsed >= self.seconds:
            raise Spent
        self.used += 1


@dataclass(frozen=True)
class Shrunk:
    """What is left of a failing schedule.

    Attributes
    ----------
    holds : tuple of Hold
        Empty if no list of holds makes the program fail as it did.
    execution : Execution or None
        The run with these holds.
    first : int
        How many departures there were.
    runs, seconds : int, float
        What it took.
    complete : bool
        False if the budget ended it, so that fewer may do.
    """

    holds: Holds
    execution: Execution | None
    first: int
    runs: int
    seconds: float
    complete: bool


def shrink(run: Run, fifo: Execution, failing: Execution, budget: Budget) -> Shrunk:
    """Find the fewest holds under which the program fails in the same way.

    Parameters
    ----------
    run : function
        Runs the program under a spec.
    fifo, failing : Execution
        A run under ``fifo`` that passed, and the one that failed.
    budget : Budget
        For the runs that this makes.
    """
    search = _Search(run, failing, budget)
    first = 0
    complete = True
    try:
        for make in (departures, chain):
            holds = make(fifo.items, failing.items)
            first = first or len(holds)
            if 0 < len(holds) <= MOST and search.fails(holds):
                break
        if search.holds:
            search.reduce()
            search.narrow(fifo.items)
    except Spent:
        complete = False
    return Shrunk(search.holds, search.execution, first, budget.used, budget.elapsed, complete)


def departures(fifo: list[str], failing: list[str]) -> Holds:
    """Return a hold for each operation that others overtook, until the last of these.

    Operations that wait for no more than the one before them on their stream
    need none.
    """
    places = {item: place for place, item in enumerate(fifo)}
    # In the failing order; by place under fifo it falls from the first entry on.
    above: list[tuple[int, int, str]] = []
    at: dict[str, int] = {}
    holds = []
    for here, item in enumerate(failing):
        at[item] = here
        # What fifo did not get to comes after all that it did.
        place = places.get(item, len(fifo) + here)
        while above and above[-1][0] <= place:
            above.pop()
        if above and item[0] != "h":
            _, overtook, last = above[-1]
            hold = _hold(item, last)
            if hold is not None and at.get(f"{hold.stream}.{hold.number - 1}", -1) < overtook:
                holds.append(hold)
        above.append((place, here, item))
    return tuple(holds)


def chain(fifo: list[str], failing: list[str]) -> Holds:
    """Return a hold for each operation until what came just before it: the very order."""
    pairs = itertools.pairwise(failing)
    return tuple(hold for last, item in pairs if item[0] != "h" and (hold := _hold(item, last)) is not None)


def _hold(item: str, last: str) -> Hold | None:
    """Return the hold of an operation until another or a call; None within one stream."""
    stream, number = map(int, item.split("."))
    if last[0] == "h":
        return Hold(stream, number, 0, int(last[1:]))
    until, after = map(int, last.split("."))
    return None if until == stream else Hold(stream, number, until, after)


def _target(hold: Hold) -> str:
    return f"{hold.until}.{hold.after}" if hold.until else f"h{hold.after}"


class _Search:
    """The best list of holds so far, and the run that failed with it."""

    def __init__(self, run: Run, failing: Execution, budget: Budget) -> None:
        self._run = run
        self._failure = failing.failure
        self._budget = budget
        self._tried: set[Holds] = set()
        self.holds: Holds = ()
        self.execution: Execution | None = None

    def fails(self, holds: Holds) -> bool:
        """Try a list; one that fails in the same way becomes the best so far."""
        if holds in self._tried:
            return False
        self._budget.take()
        self._tried.add(holds)
        execution = self._run(spec_text("holds", holds))
        if execution.failure != self._failure:
            return False
        self.holds, self.execution = holds, execution
        return True

    def reduce(self) -> None:
        """Leave holds out until none can be (delta debugging)."""
        parts = 2
        while len(self.holds) > 1:
            size = -(-len(self.holds) // parts)
            pieces = [self.holds[i : i + size] for i in range(0, len(self.holds), size)]
            if parts == 2 or len(pieces) == 2:
                candidates = pieces  # either half is the other's complement
            else:
                whole = self.holds
                candidates = [tuple(h for h in whole if h not in piece) for piece in map(set, pieces)]
            if any(self.fails(candidate) for candidate in candidates):
                parts = max(2, min(parts - 1, len(self.holds)))
            elif size == 1:
                return
            else:
                parts = min(len(self.holds), 2 * parts)

    def narrow(self, fifo: list[str]) -> None:
        """Hold the last operation for which it matters, until the first thing that overtakes it."""
        places = {item: place for place, item in enumerate(fifo)}
        for index in range(len(self.holds)):
            self._later(index)
            self._sooner(index, places)

    def _replaced(self, index: int, hold: Hold) -> Holds:
        return (*self.holds[:index], hold, *self.holds[index + 1 :])

    def _later(self, index: int) -> None:
        """Move a hold to the last operation of its stream for which the program still fails."""
        assert self.execution is not None
        hold = self.holds[index]
        numbers = [int(item.partition(".")[2]) for item in self.execution.items if item.startswith(f"{hold.stream}.")]
        # An operation has one hold.
        taken = {(other.stream, other.number) for other in self.holds}
        choices = [
            hold._replace(number=number)
            for number in sorted(numbers)
            if number > hold.number and (hold.stream, number) not in taken
        ]
        self._bisect(index, choices[::-1])

    def _sooner(self, index: int, places: dict[str, int]) -> None:
        """Let a hold end with the first thing that overtook its operation."""
        assert self.execution is not None
        hold = self.holds[index]
        own = f"{hold.stream}.{hold.number}"
        items = self.execution.items
        if own not in items or own not in places:
            return
        end = items.index(own)
        if _target(hold) in items:
            end = min(end, items.index(_target(hold)))  # it may have ended before, when nothing else could run
        choices = []
        for item in items[:end]:
            if places.get(item, len(places)) > places[own]:
                choice = _hold(own, item)
                if choice is not None:
                    choices.append(choice)
        self._bisect(index, choices)

    def _bisect(self, index: int, choices: list[Hold]) -> None:
        """Take the first choice that still fails; those after one that fails do, too."""
        low, high = 0, len(choices)
        while low < high:
            middle = (low + high) // 2
            if self.fails(self._replaced(index, choices[middle])):
                high = middle
            else:
                low = middle + 1
