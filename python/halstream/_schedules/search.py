"""Search for a schedule that makes a program fail."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from .. import _native
from .._errors import ScheduleError
from .execution import Execution, first_difference
from .matching import marks_of
from .prove import MOST_COUNTED, Proof, prove
from .replay import replay_changed
from .shrink import Budget, Shrunk, shrink
from .shrinkthreads import shrink_threads
from .token import Token, spec_text
from .turns import STAY, join, split

__all__ = ["MOST", "Explored", "Found", "Settings", "derived", "plans", "search", "worth_keeping"]

#: Schedules that one exploration may ask for.
MOST = 100_000
#: Number of the last schedule that one exploration may begin with.
MOST_FIRST = 10**12
#: Orders that one proof may run.
MOST_ORDERS = 10_000_000

# Streams that are starved, each in a schedule of its own.
_STARVED = 4


@dataclass(frozen=True)
class Settings:
    """How much to try.

    Attributes
    ----------
    schedules : int
        How many, the first ``fifo`` included; 1 to 100,000.
    depth : int
        Of PCT: how many steps must come in a certain order for the program to fail.
    seed : int
        Equal settings give equal schedules.
    shrink_runs, shrink_seconds : int, float
        What may be spent on making a failing schedule small.
    prove : int
        Run every order that can make a difference, up to so many, in place of a number of
        schedules; 0: do not.
    threads : bool
        Let the threads of the program take turns as the schedule says.
    first : int
        Number of the first schedule that is tried, for an exploration in parts: parts of `schedules` each, that
        begin at 0, `schedules`, and so on, try together what one exploration of all would try. A part other than
        the first also runs ``fifo``, which its schedules are made from, and does not count it.

    Raises
    ------
    ScheduleError
        If a number is out of range.
    """

    schedules: int = 50
    depth: int = 3
    seed: int = 0
    shrink_runs: int = 200
    shrink_seconds: float = 20.0
    prove: int = 0
    threads: bool = False
    first: int = 0

    def __post_init__(self) -> None:
        check("schedules", self.schedules, 1, MOST, "with none nothing would be run")
        check("depth", self.depth, 1, 64)
        check("seed", self.seed, 0, 2**63 - 1)
        check("shrink_runs", self.shrink_runs, 0, 10**9)
        check("prove", self.prove, 0, MOST_ORDERS)
        if self.threads and self.prove:
            raise ScheduleError(
                "prove runs every order of a program's operations, and not every order of its host threads: "
                "give threads=True with a number of schedules, or prove without it"
            )
        check("first", self.first, 0, MOST_FIRST)
        if isinstance(self.shrink_seconds, bool) or not isinstance(self.shrink_seconds, (int, float)):
            raise TypeError(f"shrink_seconds must be a number, not {self.shrink_seconds!r}")
        if not self.shrink_seconds >= 0:
            raise ScheduleError(f"shrink_seconds is {self.shrink_seconds}; give 0 or more")


def check(name: str, value: int, least: int, most: int, why: str = "") -> None:
    """Refuse a setting that is no whole number or out of range."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if not least <= value <= most:
        more = f" ({why})" if why and value < least else ""
        raise ScheduleError(f"{name} is {value}; give {least} to {most}{more}")


class Run(Protocol):
    """Runs the program under a spec; with `trace` it also gives the operations."""

    def __call__(self, spec: str, trace: bool = False) -> Execution: ...


@dataclass
class Found:
    """A schedule under which the program fails.

    Attributes
    ----------
    execution : Execution
        The last run that failed, with its trace.
    fifo : Execution
        The first run.
    shrunk : Shrunk or None
        None where there was nothing to shrink.
    original : str
        Spec of the schedule that failed first.
    tried : int
        How many schedules come up to it, those of earlier parts included; 0 if a token was replayed or remembered.
    difference : str
        Where two runs under one schedule parted, if they did: the program is
        not deterministic by itself.
    differs : str
        Spec of those two runs if it differs from that of `execution`.
    remembered : bool
        Whether an earlier run found the token, which was tried first in this one.
    marks : tuple of int
        For the token; see `matching`.
    """

    execution: Execution
    fifo: Execution
    shrunk: Shrunk | None = None
    original: str = ""
    tried: int = 1
    difference: str = ""
    differs: str = ""
    remembered: bool = False
    marks: tuple[int, ...] = ()

    @property
    def token(self) -> Token:
        """The token that replays the failure."""
        ran = self.execution
        return Token.of(ran.spec, ran.fingerprint, self.marks, controlled=not ran.uncontrolled)


@dataclass(frozen=True)
class Explored:
    """An exploration in which nothing failed.

    Attributes
    ----------
    schedules : int
        Schedules that were run, those of earlier parts included; 1 for a program that uses no streams.
    streams, steps : int
        Of the run under ``fifo``: streams used, and operations plus calls.
    orders : int
        Orders that make a difference and were run, each of which stands for all that are
        equivalent to it; 0 if none were asked for.
    exhausted : bool
        Whether these are all.
    uncontrolled : str
        Where a host thread waited without giving its turn away, in the first run in which one did.
    expected : int
        At most so many orders there are if the program makes the same calls in each, as far as they were counted.
    """

    schedules: int
    streams: int
    steps: int
    orders: int = 0
    exhausted: bool = False
    uncontrolled: str = ""
    expected: int = 0

    def __str__(self) -> str:
        if not self.orders:
            loose = f", not wholly controlled: {self.uncontrolled}" if self.uncontrolled else ""
            return f"{self.schedules:,} schedules pass{loose}"
        if not self.exhausted:
            if self.orders < self.expected <= MOST_COUNTED:
                return f"not exhausted: {self.orders:,} of up to {self.expected:,} orders pass"
            return f"not exhausted: {self.orders:,} orders pass, and there are more"
        return f"all {self.orders:,} orders pass" if self.orders > 1 else "the only order passes"


@dataclass
class _Search:
    run: Run
    settings: Settings
    tried: int = 0
    fifo: Execution = field(default_factory=lambda: Execution("fifo"))
    proof: Proof = field(default_factory=lambda: Proof(exhausted=False))
    remembered: Token | None = None
    uncontrolled: str = ""

    @property
    def first(self) -> str:
        """The spec of the first run: in the order of the calls, and each thread until it waits."""
        return join("fifo", STAY if self.settings.threads else "")

    def __call__(self) -> Found | None:
        if self.remembered is not None and (found := self._recall(self.remembered)) is not None:
            return found
        self.tried = self.settings.first
        self.fifo = self.run(self.first) if self.tried else self._try(self.first)
        if self.fifo.failure is not None:
            return self._found(self.fifo)
        if not used(self.fifo):
            return None
        if self.settings.prove:
            return self._prove()
        count = self.settings.first + self.settings.schedules - self.tried
        for spec in itertools.islice(plans(self.settings, self.fifo), count):
            execution = self._try(spec)
            if execution.failure is not None:
                return self._found(execution)
        return None

    def _recall(self, token: Token) -> Found | None:
        """Run the program under a token of an earlier run; None if it is not that schedule which makes it fail."""
        first = self.run(token.spec)
        if used(first) and first.fingerprint[:8] != token.fingerprint:
            changed = replay_changed(self.run, token, getattr(self.run, "text", None))
            first = first if changed is None else changed.execution
        if first.failure is None or not used(first):
            return None
        self.fifo = self.run(join("fifo", STAY if token.threads else ""))
        if self.fifo.failure is not None:
            return None  # it fails in any order
        last = self.run(first.spec, trace=True)
        if last.failure != first.failure:
            return None
        return Found(last, self.fifo, original=first.spec, tried=0, remembered=True)

    def _prove(self) -> Found | None:
        for spec in ("latest", "earliest"):  # what the host reads without a wait is in no order
            execution = self._try(spec)
            if execution.failure is not None:
                return self._found(execution)
        self.proof = prove(lambda spec: self.run(spec, trace=True), self.settings.prove)
        self.tried += self.proof.runs
        return self._found(self.proof.failing) if self.proof.failing is not None else None

    def _try(self, spec: str) -> Execution:
        self.tried += 1
        execution = self.run(spec)
        self.uncontrolled = self.uncontrolled or execution.uncontrolled
        return execution

    def _found(self, failing: Execution) -> Found:
        found = Found(failing, self.fifo, original=failing.spec, tried=self.tried)
        assert failing.failure is not None
        if not failing.failure.search or not used(failing):
            return found
        again = self.run(failing.spec, trace=True)
        if not again.same(failing):
            # The first run may have filled caches and pools that all later runs use.
            third = self.run(failing.spec, trace=True)
            if third.failure is None or not third.same(again):
                kept = next((e for e in (third, again) if e.failure is not None), failing)
                difference = first_difference(failing, again) if kept is failing else first_difference(again, third)
                return replace(found, execution=kept, difference=difference)
            again = third
        found.execution = again
        if self._by_itself(found):
            return found
        if failing.spec != self.first:
            self._shrink(found)
        return found

    def _by_itself(self, found: Found) -> bool:
        """Whether runs differ for another reason than the schedule.

        A program that passed under fifo must pass again, or state that earlier runs
        left makes it fail; the failing schedule must fail after that, too. Both
        are checked twice, to find failures by chance.
        """
        before = [found.execution] if found.execution.spec == self.first else [self.fifo, found.execution]
        for execution in before * 2:
            again = self.run(execution.spec, trace=True)
            if again.failure != execution.failure:
                found.difference = first_difference(execution, again)
                found.differs = execution.spec
                return True
        return False

    def _shrink(self, found: Found) -> None:
        budget = Budget(self.settings.shrink_runs, self.settings.shrink_seconds)
        fifo, threads = self.fifo, ""
        if self.settings.threads:
            small = shrink_threads(self.run, found.execution, budget)
            device, threads = split(small.spec)
            if small.spec != found.execution.spec:
                found.execution = self.run(small.spec, trace=True)
            if device == "fifo" or found.execution.failure != small.failure:
                return
            fifo = self.run(join("fifo", threads))
        found.shrunk = shrink(lambda spec: self.run(join(spec, threads)), fifo, found.execution, budget)
        if not found.shrunk.holds:
            return
        last = self.run(join(spec_text("holds", found.shrunk.holds), threads), trace=True)
        if last.failure == found.execution.failure:
            found.execution = last


def used(execution: Execution) -> bool:
    """Whether a run did anything with streams."""
    return execution.steps > 0 or execution.points > 0 or bool(execution.calls)


def worth_keeping(found: Found) -> bool:
    """Whether a later run of the program shall try the token first: not where it fails in the order of the calls."""
    return used(found.execution) and not found.difference and found.execution.spec not in ("fifo", join("fifo", STAY))


def search(run: Run, settings: Settings, remembered: Token | None = None) -> tuple[Found | None, Explored]:
    """Run a program under schedules until it fails.

    The first is ``fifo``, in the order of the calls; a program that uses no
    streams in it is run no more. A failure is confirmed by further runs, under
    ``fifo``, too, and then shrunk.

    Parameters
    ----------
    run : function
    settings : Settings
    remembered : Token, optional
        Under which the program failed in an earlier run; it is tried first.

    Returns
    -------
    tuple
        What fails, None if nothing does, and what was tried.
    """
    searching = _Search(run, settings, remembered=remembered)
    found = searching()
    if found is not None and not found.difference:
        found.marks = marks_of(found.execution, getattr(run, "text", _native.position_text))
    fifo, proof = searching.fifo, searching.proof
    return found, Explored(
        searching.tried,
        len(fifo.streams),
        fifo.steps,
        proof.orders,
        proof.exhausted,
        searching.uncontrolled,
        proof.expected,
    )


def plans(settings: Settings, fifo: Execution) -> Iterator[str]:
    """Yield the specs after ``fifo``, without end: the extremes, then random ones; of a later part, its own."""
    start = max(0, settings.first - 1)  # fifo is number 0
    if not settings.threads or not fifo.points:
        device = _device_plans(settings, fifo, start)
        yield from (join(spec, STAY if settings.threads else "") for spec in device)
    yield from itertools.islice(_thread_plans(settings, fifo), start, None)


def _thread_plans(settings: Settings, fifo: Execution) -> Iterator[str]:
    device = _device_plans(settings, fifo, 0)
    for number in itertools.count():
        # The turns of threads alone, then with another order of the device.
        seed = derived(settings.seed, -1 - number)
        turns = f"pct {seed} {settings.depth} {max(1, fifo.points)}" if number // 2 % 2 else f"random {seed}"
        yield join(next(device) if number % 2 else "fifo", turns)


def _device_plans(settings: Settings, fifo: Execution, start: int) -> Iterator[str]:
    extremes = ["latest", "earliest"]
    streams = fifo.streams
    if len(streams) > 1:
        # The busiest: most can overtake them.
        busiest = sorted(streams, key=lambda stream: (-streams[stream], stream))
        extremes += (f"starve {stream}" for stream in sorted(busiest[:_STARVED]))
    yield from extremes[start:]
    for number in itertools.count(max(0, start - len(extremes))):
        seed = derived(settings.seed, number)
        if number % 2:
            yield f"random {seed}"
        else:
            depth = settings.depth - number // 2 % settings.depth
            yield f"pct {seed} {depth} {max(1, fifo.steps)}"


def derived(seed: int, number: int) -> int:
    """Return the seed of a schedule, of 31 bits so that tokens stay short."""
    digest = hashlib.sha256(f"{seed}.{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1
