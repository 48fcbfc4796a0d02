"""One thread of the program at a time: which one runs is chosen at points that repeat.

The thread that has the turn runs; at a point it may hand the turn to another one. A
thread that waits for a lock, a thread or a time gives the turn away until that is there. Threads
that wait elsewhere (a socket, a native call) lose the turn after a limit, and the run
counts as not wholly controlled. Whatever goes wrong, `close` lets every thread run freely.
"""

from __future__ import annotations

import _thread
import itertools
import os
import time
from collections.abc import Callable
from typing import Any

from .._core import _hostfunc
from .._errors import StallError
from .turns import AFTER, Turn, stay, strategy
from .waiting import Stillness, is_idle_worker, others_run, waits_of

__all__ = ["Control", "Ended", "Member", "active"]

# Seconds between two looks of a thread that waits for its turn.
_SLICE = 0.05
# Points after the main thread's end, and departures that are noted in words.
_LATE, _NOTED = 10_000, 20

READY, BLOCKED, SLEEPING, AWAY, FINISHING, ENDED = "ready", "blocked", "sleeping", "away", "finishing", "ended"

_monotonic = time.monotonic


class Member:
    """A thread that takes turns."""

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.ident = 0
        self.state = READY
        self.points = 0
        self.inside = False  # it is in the control's own code, or starts a thread
        self.waits: Any = None  # the object
        self.deadline: float | None = None
        self.fired = False  # its deadline has come
        self.stalled = False
        self.turn = _thread.allocate_lock()
        self.turn.acquire()

    def __str__(self) -> str:
        return f"thread {self.number} ({self.name})"


class Ended(SystemExit):
    """Ends a thread that would wait for ever, after the run has failed."""


class _Mutex:
    """A lock that says which thread has it: what a signal handler calls must not take it again."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self.owner = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.owner = _thread.get_ident()

    def __exit__(self, *_: object) -> None:
        self.owner = 0
        self._lock.release()


class Control:
    """The turns of the threads of one run; see `threadhooks.install`.

    Attributes
    ----------
    uncontrolled : str
        Where a thread waited that had the turn; '' if all waits were known ones.
    turns : list of Turn
        The departures from the default, in order; `handovers` has the first of them in words.
    """

    def __init__(self, text: str) -> None:
        self._choose = strategy(text)
        self._mutex = _Mutex()
        self._numbers = itertools.count(1)
        self._members: dict[int, Member] = {}
        self._by_ident: dict[int, Member] = {}
        self._offset = 0.0
        self._row = 0
        self._progress = 0
        self._still = Stillness()
        self._idle_points = 0
        self._late = 0
        self._pid = os.getpid()
        self.closed = False
        self.failed = False
        self.uncontrolled = ""
        self.stall = ""
        self.turns: list[Turn] = []
        self.handovers: list[str] = []
        self.points = 0
        self.holder: Member | None = None
        self.main = self.add("main thread")
        self.main.ident = _thread.get_ident()
        self._by_ident[self.main.ident] = self.main
        self.holder = self.main

    # -- members --------------------------------------------------------------

    def add(self, name: str) -> Member:
        """Add a thread that is about to be started."""
        with self._mutex:
            member = Member(next(self._numbers), name)
            self._members[member.number] = member
        return member

    def discard(self, member: Member) -> None:
        """Take back a thread that could not be started."""
        with self._mutex:
            member.state = ENDED

    def member(self) -> Member | None:
        """Return the calling thread if it takes turns, and is not in the control's own code."""
        if self.closed or self._mutex.owner == _thread.get_ident() or os.getpid() != self._pid:
            return None
        member = self._by_ident.get(_thread.get_ident())
        return None if member is None or member.inside else member

    def enter(self, member: Member) -> None:
        """Begin the calling thread's part."""
        member.ident = _thread.get_ident()
        self._by_ident[member.ident] = member
        self._await(member)

    def leave(self, member: Member) -> None:
        """End the calling thread's part."""
        with self._mutex:
            self._by_ident.pop(member.ident, None)
            member.state = ENDED
            self._wake(member)
            if not self.closed and (self.holder is member or self.holder is None):
                self._hand_over(member)

    # -- points ---------------------------------------------------------------

    def clock(self) -> float:
        """Return the time in seconds, with the waits that took none added."""
        return _monotonic() + self._offset

    def point(self) -> None:
        """Let another thread go on here, or none."""
        member = self.member()
        if member is None:
            return
        with self._mutex:
            if self.holder is not member:  # it waited outside of what is known
                member.state = READY
                if self.holder is None:
                    self._hand_over(None)
            else:
                self._progress += 1
                following = self._next(member)
                if following is member:
                    return
                self._give(following)
        self._await(member)

    def wait(self, member: Member, waits: Any, there: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `there`; others go on meanwhile. False if the time is over first."""
        end = None if timeout is None else self.clock() + timeout
        while True:
            with self._mutex:
                if there():
                    return True
                if self.closed:
                    return False
                member.state, member.waits, member.deadline = BLOCKED, waits, end
                member.fired = False
                if self.holder is member:
                    self._progress += 1
                    self._hand_over(member)
                elif self.holder is None:
                    self._hand_over(None)
            self._await(member)
            if member.fired:
                return there()

    def sleep(self, member: Member, seconds: float) -> None:
        """Let others go on; no time passes but the control's own."""
        with self._mutex:
            member.state, member.deadline = SLEEPING, self.clock() + max(0.0, seconds)
            if self.holder is member:
                self._progress += 1
                self._hand_over(member)
        self._await(member)

    def wake(self, waits: Any) -> None:
        """Say that an object may be there for those that wait for it; any thread may call this."""
        if self.closed or self._mutex.owner == _thread.get_ident():
            return
        own = self._by_ident.get(_thread.get_ident())
        if own is not None and own.inside:
            return
        with self._mutex:
            self._wake(waits)
            if self.holder is None:
                self._hand_over(None)

    def _wake(self, waits: Any) -> None:
        for member in self._members.values():
            if member.state == BLOCKED and member.waits is waits:
                member.state = READY

    # -- the turn; the mutex is held -------------------------------------------

    def _candidates(self, late: bool) -> list[int]:
        found = [member.number for member in self._members.values() if member.state == READY]
        asleep = [member for member in self._members.values() if member.state == SLEEPING]
        if asleep and not late:
            found.append(min(asleep, key=lambda one: (one.deadline, one.number)).number)
        return sorted(found)

    def _next(self, member: Member | None) -> Member | None:
        """Return who goes on at a point of `member`; None if nobody can."""
        finishing = self.main.state == FINISHING
        candidates = self._candidates(finishing)
        if finishing:
            self._late += 1
            if self._late > _LATE:
                return None
        number = member.number if member is not None else 0
        if not candidates:
            return None
        if len(candidates) == 1:
            return self._take(self._members[candidates[0]])
        self.points += 1
        if member is not None:
            member.points += 1
            point = member.points
        else:
            self._idle_points += 1
            point = self._idle_points
        awake = [one for one in candidates if self._members[one].state == READY]
        usual = stay(number, awake or candidates)
        chosen = self._choose(number, point, candidates, usual)
        self._row = self._row + 1 if chosen == number else 0
        if self._row > AFTER:
            self._row = 0
            rest = [one for one in candidates if one != number]
            chosen = usual = stay(number, rest)
        if chosen != usual:
            self.turns.append(Turn(number, point, chosen))
            if len(self.turns) <= _NOTED:
                place = f" {waits_of(member.ident)}" if member is not None and member.state != ENDED else ""
                self.handovers.append(f"{member or 'when all wait'}{place}: {self._members[chosen]} goes on")
        return self._take(self._members[chosen])

    def _take(self, member: Member) -> Member:
        if member.state == SLEEPING:
            assert member.deadline is not None
            self._offset += max(0.0, member.deadline - self.clock())
            member.state = READY
        return member

    def _give(self, member: Member | None) -> None:
        self.holder = member
        self._progress += 1
        if member is not None:
            member.turn.release()

    def _hand_over(self, member: Member | None) -> None:
        """Give the turn away, to nobody if nobody can go on."""
        following = self._next(member)
        if following is None:
            if self.main.state == FINISHING:
                self.main.state = READY
                following = self.main
            elif not self._device_may_act():
                following = self._expired()
        self._give(following)

    def _expired(self) -> Member | None:
        """Return the first thread whose time is over, as nothing else can happen."""
        waiting = [one for one in self._members.values() if one.state == BLOCKED and one.deadline is not None]
        if not waiting or any(one.state == AWAY for one in self._members.values()):
            return None
        first = min(waiting, key=lambda one: (one.deadline, one.number))
        assert first.deadline is not None
        self._offset += max(0.0, first.deadline - self.clock())
        first.fired, first.state = True, READY
        return first

    @staticmethod
    def _device_may_act() -> bool:
        return bool(_hostfunc.running()) or _hostfunc.pending(graphs=False) > 0

    def _await(self, member: Member) -> None:
        """Wait for the turn."""
        try:
            while not member.turn.acquire(timeout=_SLICE):
                if self.closed:
                    break
                run = others_run()
                with self._mutex:
                    self._look(run)
        except BaseException:  # Ctrl-C, or a time limit of a test
            self.close(failed=True)
            raise
        if member.stalled:
            member.stalled = False
            if member is self.main:
                raise StallError(self.stall, operation="wait for a thread")
            raise Ended

    # -- what nobody reports ----------------------------------------------------

    def _look(self, others_run: bool) -> None:
        """Look whether the thread with the turn waits outside of what is known, or all wait for each other."""
        if not self._still.lasts(self._progress, others_run):
            return
        holder = self.holder
        if holder is not None:
            if holder.state != READY or not self._others(holder):
                return
            holder.state = AWAY
            self.uncontrolled = self.uncontrolled or f"{holder} waited {waits_of(holder.ident)}"
            self._wake(holder)  # the end of the program does not wait for it here
            self._hand_over(holder)
        elif (first := self._expired()) is not None:
            self._give(first)
        elif not self._device_may_act() and all(one.state in (BLOCKED, ENDED) for one in self._members.values()):
            self._end_stalled()

    def _others(self, holder: Member) -> bool:
        return any(one.state in (READY, SLEEPING, BLOCKED) for one in self._members.values() if one is not holder)

    def _end_stalled(self) -> None:
        """End a run in which every thread waits for another one."""
        waiting = [one for one in self._members.values() if one.state == BLOCKED]
        lines = [f"  {one} waits {waits_of(one.ident)}{_held(one)}" for one in waiting]
        self.stall = "every thread of the program waits for another one:\n" + "\n".join(lines)
        self.closed = self.failed = True
        for one in waiting:
            one.stalled = True
            one.turn.release()

    # -- the end ----------------------------------------------------------------

    def finish(self, failed: bool) -> None:
        """End the run of the calling thread: others go on while they can, then all run freely."""
        if not failed and self.member() is self.main:
            with self._mutex:
                self.main.state = FINISHING
                self._hand_over(self.main)
            self._await(self.main)
        self.close(failed)

    def close(self, failed: bool = False) -> None:
        """Let every thread run freely; after a failure those that wait without a limit end."""
        with self._mutex:
            if self.closed:
                return
            self.closed, self.failed = True, failed
            for member in self._members.values():
                if member is self.main or member.state in (ENDED, AWAY) or member is self.holder:
                    continue
                if failed and member.state == BLOCKED and member.deadline is None and not is_idle_worker(member.ident):
                    member.stalled = True
                member.turn.release()


class _Active:
    """The control that is in force."""

    control: Control | None = None


active = _Active()


def _held(member: Member) -> str:
    """Return who has what a thread waits for, in words."""
    owner = getattr(member.waits, "owner", None)
    return f", which {owner} holds" if isinstance(owner, Member) else ""
