"""Who waits for whom: the host's threads and the device's streams at one moment."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple

from .. import _native, _sites
from .._core import _context, _hostfunc
from .._native._constants import NEED_NATIVE, NEED_NOTHING
from .._records import BusyRecord, GraphRecord, PartyRecord, PlaceRecord, StateRecord, WaitRecord, decode, encode
from . import actors as _actors
from . import blocked as _blocked
from . import peers as _peers
from .blocked import Block

__all__ = ["Node", "Picture", "Running", "mark", "take"]

#: A stream: its device and its number there.
Name = tuple[int, int]

_PROCESS: CodeType = _context.ReportQueue.process.__code__
#: The functions whose frames tell what a thread that runs functions of streams does.
_TAKERS = (_hostfunc._dispatch.__code__, _PROCESS)


class Node(NamedTuple):
    """A stream with pending work, and what its first operation waits for."""

    name: Name
    title: str
    pending: int
    head: str
    need: int
    number: int  #: of the gate, the event, the function or the thread that runs it
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
    arguments: int  #: how many it takes


class Picture:
    """Who waits for whom; valid as long as the caller keeps Python's lock."""

    def __init__(self, me: int, blocks: Mapping[int, Block] | None = None) -> None:
        self.me = me
        #: What is known of the ranks of this process' groups; None without any.
        self.ranks = _peers.state()
        #: The threads that carry out collectives, and those among them that wait for other ranks.
        self.carrying: set[int] = set(self.ranks["threads"]) if self.ranks else set()
        self.collectives: set[int] = {one["thread"] for one in self.ranks["waiting"]} if self.ranks else set()
        state: StateRecord = decode(_native.stall_state())
        self.quiet, self.mark = state["quiet"], state["mark"]
        #: Functions that were handed over and that no thread has taken.
        self.waiting = state["waiting"]
        self.wait_records: list[WaitRecord] = decode(_native.stall_waits())
        self.waits = {one["ident"]: Wait(one["report"], _names(one["on"])) for one in self.wait_records}
        self.stream_records: list[BusyRecord] = decode(_native.stall_graph())
        self.streams = {node.name: node for node in map(_node, self.stream_records)}
        frames = sys._current_frames()
        frames.pop(me, None)  # with it the dictionary would hold itself
        self.frames = frames
        self.performed = _hostfunc.running()
        #: What native functions that will never go on by themselves wait for, by thread.
        self.native_waits: dict[int, str] = {}
        for node in self.streams.values():
            if (
                node.need == NEED_NATIVE
                and node.number not in self.carrying
                and (why := _actors.waits_for_ever(node.number))
            ):
                self.native_waits[node.number] = why
        self.calls: dict[int, int] = {}  #: token -> the thread that runs it
        self.reports: dict[int, int] = {}
        self.running: dict[int, Running] = {}
        self.blocks: dict[int, Block] = {}
        #: Threads that may act by themselves: the name of each.
        self.actors: dict[int, str] = {}
        for ident, frame in frames.items():
            if blocks and ident in blocks and ident not in self.waits:
                self.blocks[ident] = blocks[ident]
            else:
                self._classify(ident, frame)
        #: True if a thread or a signal handler may do something that this picture does not show.
        self.others_may_act = bool(self.actors) or _actors.idle_thread_exists(frames, me) or _actors.signal_may_come()
        #: Threads that Python does not know, which may act: the name of each.
        self.native = _actors.native_threads(frames, len(self.carrying))
        #: The same, or if work of the device moves by itself. Native threads do not count.
        self.anyone_may_act = self.others_may_act or self._moving()

    def _classify(self, ident: int, frame: FrameType) -> None:
        found = _task(ident, frame, self.performed)
        if found is not None:
            outermost, running, report = found
            if running is not None:
                self.running[ident] = running
                (self.reports if report else self.calls)[running.token] = ident
            elif outermost and not report:
                self.blocks[ident] = Block("is idle", idle=True)
                return
        if ident in self.waits:
            return
        block = _blocked.blocked(frame, ident)
        if block is None and found is not None and found[0] and found[1] is not None and not found[1].arguments:
            block = _blocked.calling(found[1].function, ident)
        if block is not None:
            self.blocks[ident] = block
        elif found is not None or not _actors.belongs_to_tool(ident, frame):
            self.actors[ident] = _blocked.thread_name(ident)

    def _moving(self, ranks: bool = False) -> bool:
        waiting = {*self.native_waits, *(self.collectives if ranks else ())}
        return not self.quiet or any(
            node.need == NEED_NOTHING or (node.need == NEED_NATIVE and node.number not in waiting)
            for node in self.streams.values()
        )

    def hopeless(self, start: int, native: bool = False, ranks: bool = False) -> set[Any]:
        """Return the threads (by number) and streams (by name) that can never go on.

        They are `start` and those that it waits for, directly or not; none if `start`
        may go on. With `native` those count, too, that only a native thread could help, and
        with `ranks` those that only another rank could.
        """
        graph: GraphRecord = {
            "blocked": self.wait_records,
            "streams": self.stream_records,
            "held": [{"ident": ident, "owner": block.owner} for ident, block in self.blocks.items()],
            "running": [
                {"ident": ident, "token": token, "report": report}
                for report, threads in ((False, self.calls), (True, self.reports))
                for token, ident in threads.items()
            ],
            "others": self.others_may_act or self._moving(ranks) or (bool(self.native) and not native),
        }
        stuck: list[PartyRecord] = decode(_native.stall_stuck(encode(graph), start))
        return {one["thread"] or (one["device"], one["stream"]) for one in stuck}


def take(me: int, blocks: Mapping[int, Block] | None = None) -> Picture:
    """Return who waits for whom now; `me` is the calling thread.

    `blocks` says what threads wait for of which the caller has found that out.
    """
    return Picture(me, blocks)


def mark() -> int:
    """Return a number that is the same as long as the same work is pending and none moves, else -1."""
    state: StateRecord = decode(_native.stall_state())
    return state["mark"] if state["quiet"] else -1


def function_waits(token: int, me: int) -> int:
    """Return whether a function that runs waits for something only another thread can give.

    0 if not, 2 if no thread can act but those that wait for the function's end,
    as `me` does, else 1.
    """
    picture = Picture(me)
    ident = picture.calls.get(token)
    if ident is None or ident not in picture.blocks:
        return 0
    return 1 if picture.others_may_act or picture.native else 2


def _task(
    ident: int, frame: FrameType, performed: dict[int, tuple[int, Any, int]]
) -> tuple[bool, Running | None, bool] | None:
    """Return what a thread that takes functions from streams does, None for other threads.

    Whether nothing else is on its stack above, the function that it runs, if any,
    and whether that is a report.
    """
    at: FrameType | None = frame
    while at is not None and at.f_code not in _TAKERS:
        at = at.f_back
    if at is None:
        return None
    if at.f_code is not _PROCESS:
        running = performed.get(ident)
        return at is frame, running and Running(*running), False
    names = _sites.variables(at)
    if "function" not in names:
        return at is frame, None, True
    return at is frame, Running(names["token"], names["function"], 0), True


def _names(places: list[PlaceRecord]) -> tuple[Name, ...]:
    return tuple((place["device"], place["stream"]) for place in places)


def _node(record: BusyRecord) -> Node:
    return Node(
        _names([record["at"]])[0],
        record["title"],
        record["pending"],
        record["head"],
        record["need"],
        record["number"],
        record["site"],
        _names(record["on"]),
    )
