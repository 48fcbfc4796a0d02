"""Who waits for whom: the host's threads and the device's streams at one moment."""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .. import _native
from .._core import _context, _hostfunc
from .._records import BusyRecord, PlaceRecord, StateRecord, WaitRecord, decode
from . import actors as _actors
from . import blocked as _blocked
from .blocked import Block

__all__ = ["Node", "Picture", "Running", "take"]

# Needs of the operation at the head of a stream; the same numbers are in hal/driver/graph.go.
NOTHING, GATE, EVENT, STREAM, ORDER, FUNCTION, REPORT, VALUE = range(8)

#: A stream: its device and its number there.
Name = tuple[int, int]

_PROCESS: CodeType = _context.ReportQueue.process.__code__
#: The functions whose frames tell what a thread that runs functions of streams does.
_TAKERS = (_hostfunc._dispatch.__code__, _hostfunc._perform.__code__, _PROCESS)


class Node(NamedTuple):
    """A stream with pending work, and what its first operation waits for."""

    name: Name
    title: str
    pending: int
    head: str
    need: int
    number: int  #: of the gate, the event or the function
    site: int
    on: tuple[Name, ...]


class Wait(NamedTuple):
    """A wait of a host thread that has no limit."""

    report: bool
    on: tuple[Name, ...]


class Running(NamedTuple):
    """A function that a thread runs for a stream."""

    token: int
    function: Any
    args: Any


class Picture:
    """The threads and streams, as long as the caller keeps Python's lock."""

    def __init__(self, me: int) -> None:
        self.me = me
        state: StateRecord = decode(_native.stall_state())
        self.quiet = state["quiet"]
        #: Functions that were handed over and that no thread has taken.
        self.waiting = state["waiting"]
        self.waits = _waits()
        self.streams = _streams()
        frames = sys._current_frames()
        frames.pop(me, None)  # with it the dictionary would hold itself
        self.frames = frames
        self.calls: dict[int, int] = {}  #: token -> the thread that runs it
        self.reports: dict[int, int] = {}
        self.running: dict[int, Running] = {}
        self.blocks: dict[int, Block] = {}
        #: Those that may do something by themselves; a text for each.
        self.actors: dict[int, str] = {}
        for ident, frame in frames.items():
            self._look(ident, frame)
        #: True if there is somebody who may do something that nothing here tells of.
        self.unforeseen = bool(self.actors) or _actors.unseen(frames, me) or _actors.alarm()
        #: Threads that may act, but of which Python knows nothing; a text for each.
        self.native = _actors.native_threads(frames)
        #: True if anything can happen that nobody waits for, native threads left out.
        self.someone = self.unforeseen or self._moving()

    def _look(self, ident: int, frame: FrameType) -> None:
        found = _task(frame)
        if found is not None:
            ours, running, report = found
            if running is not None:
                self.running[ident] = running
                (self.reports if report else self.calls)[running.token] = ident
            elif ours and not report:
                self.blocks[ident] = Block("is idle", idle=True)
                return
        if ident in self.waits:
            return
        block = _blocked.blocked(frame, ident)
        if block is None and found is not None and found[0] and found[1] is not None:
            block = _blocked.calling(found[1].function, found[1].args, ident)
        if block is not None:
            self.blocks[ident] = block
        elif found is not None or not _actors.bystander(ident, frame):
            self.actors[ident] = _blocked.thread_name(ident)

    def _moving(self) -> bool:
        return any(node.need == NOTHING for node in self.streams.values()) or not self.quiet

    def thread_needs(self, ident: int) -> tuple[bool, list[Any]]:
        """Return whether a thread goes on when any other can act, and else what all must go on."""
        wait = self.waits.get(ident)
        if wait is not None:
            return wait.report, [*wait.on]
        block = self.blocks.get(ident)
        if block is None:
            return True, []  # it may act; or it is none of the threads there are
        return not block.owner, [block.owner] if block.owner else []

    def stream_needs(self, name: Name) -> tuple[bool, list[Any]]:
        """Return the same for a stream."""
        node = self.streams.get(name)
        if node is None or node.need in (NOTHING, GATE, EVENT, VALUE):
            return True, []
        if node.need in (STREAM, ORDER):
            return False, [*node.on]
        runs = (self.calls if node.need == FUNCTION else self.reports).get(node.number)
        return (True, []) if runs is None else (False, [runs])

    def hopeless(self, start: int, native: bool = False) -> set[Any]:
        """Return the threads (by number) and streams (by name) that can never go on.

        Of those that the thread `start` waits for, directly or not. Each needs
        something from another one of them, or from anybody where nobody can act.
        With `native` also those that only a native thread could let go on.
        """
        if not self.someone and (native or not self.native):
            return {start, *self.waits, *self.blocks, *self.streams}
        needs: dict[Any, tuple[bool, list[Any]]] = {}
        pending: list[Any] = [start]
        while pending:
            one = pending.pop()
            if one not in needs:
                needs[one] = self.stream_needs(one) if isinstance(one, tuple) else self.thread_needs(one)
                pending += needs[one][1]
        stuck = {one for one, (anybody, _) in needs.items() if not anybody}
        order = [*reversed(needs)]  # what is waited for comes before who waits
        changed = True
        while changed:
            changed = False
            for one in order:
                if one in stuck and not any(other in stuck for other in needs[one][1]):
                    stuck.discard(one)
                    changed = True
        return stuck


def take(me: int) -> Picture:
    """Return who waits for whom now; `me` is the calling thread."""
    return Picture(me)


def function_waits(token: int, me: int) -> int:
    """Return whether a function that runs waits for something only another thread can give.

    0 if not, 2 if no thread can act but those that wait for the function's end,
    as `me` does, else 1.
    """
    picture = Picture(me)
    ident = picture.calls.get(token)
    if ident is None or ident not in picture.blocks:
        return 0
    return 1 if picture.unforeseen or picture.native else 2


def _task(frame: FrameType) -> tuple[bool, Running | None, bool] | None:
    """Return what a thread that takes functions from streams does, None for other threads.

    Whether nothing else is on its stack above, the function that it runs, if any,
    and whether that is a report.
    """
    at: FrameType | None = frame
    while at is not None and at.f_code not in _TAKERS:
        at = at.f_back
    if at is None:
        return None
    names = at.f_locals
    report = at.f_code is _PROCESS
    if "function" not in names:
        return at is frame, None, report
    token = names["token"] if report else names["task"]
    return at is frame, Running(token, names["function"], () if report else names["args"]), report


def _names(places: list[PlaceRecord]) -> tuple[Name, ...]:
    return tuple((place["device"], place["stream"]) for place in places)


def _waits() -> dict[int, Wait]:
    records: list[WaitRecord] = decode(_native.stall_waits())
    return {one["ident"]: Wait(one["report"], _names(one["on"])) for one in records}


def _streams() -> dict[Name, Node]:
    records: list[BusyRecord] = decode(_native.stall_graph())
    nodes = [
        Node(
            _names([one["at"]])[0], one["title"], one["pending"], one["head"], one["need"], one["number"], one["site"],
            _names(one["on"]),
        )
        for one in records
    ]  # fmt: skip
    return {node.name: node for node in nodes}
