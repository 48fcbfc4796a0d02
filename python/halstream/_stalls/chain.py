"""The text of a stall: who waits for whom, from one thread on."""

from __future__ import annotations

import re
import sys
from typing import Any

from .. import _sites
from .._core import _hostfunc
from .._core._context import ReportQueue
from .._errors import IN_A_CIRCLE
from .._native._constants import (
    NEED_EVENT,
    NEED_FUNCTION,
    NEED_GATE,
    NEED_NATIVE,
    NEED_ORDER,
    NEED_REPORT,
    NEED_STREAM,
    NEED_VALUE,
)
from . import blocked as _blocked
from . import waiters as _waiters
from .waiters import Node, Picture

__all__ = ["SHOWN", "Chain"]

#: How many threads outside the chain a text names.
SHOWN = 8


class Chain:
    """The text of who waits for whom."""

    def __init__(self, picture: Picture, start: int, hopeless: set[Any]) -> None:
        self.picture, self.start, self.hopeless = picture, start, hopeless
        self.lines: list[str] = []
        self.named: dict[Any, None] = {}  # in the order of the lines
        self.advice = ""

    def text(self) -> str:
        """Return the whole of it, a line for each that waits."""
        one = self._follow(self.start)
        if one is not None:
            self.advice = "Break the circle: " + self._break(list(self.named)[list(self.named).index(one) :])
        elif next(reversed(self.named)) in self.picture.blocks:
            # That thread waits for nobody in particular: any of these streams could have helped.
            for name in [name for name in self.picture.streams if name in self.hopeless]:
                if name not in self.named and len(self.lines) < SHOWN:
                    advice, self.advice = self.advice, ""
                    self._follow(name)
                    if advice != self.advice:
                        self.advice = "\n".join(filter(None, (advice, self.advice)))
        head = "this wait can never end: " + (
            IN_A_CIRCLE if one is not None else "everything that could end it waits, too"
        )
        text = "\n".join([head, *("  " + line for line in (*self.lines, *self._others())), self.advice])
        return re.sub(r"\bdevice (\d+)", lambda found: _sites.real_torch.device(int(found[1])), text)

    def of_this_process(self) -> list[str]:
        """Return the lines of those that wait in this process, down to the collectives that wait for other ranks."""
        self._follow(self.start)
        return [
            re.sub(r"\bdevice (\d+)", lambda found: _sites.real_torch.device(int(found[1])), line)
            for line in self.lines
        ]

    def _follow(self, one: Any) -> Any:
        """Add the lines of a party and of those that it waits for; return the one that comes again, if any."""
        while one is not None and one not in self.named:
            self.named[one] = None
            one = self._stream(one) if isinstance(one, tuple) else self._thread(one)
        return one

    def _break(self, circle: list[Any]) -> str:
        """Return what breaks a circle of parties, each of which waits for the next."""
        picture = self.picture
        threads = [one for one in circle if not isinstance(one, tuple)]
        if not threads:
            if len(circle) == 1:
                return (
                    "a stream must record the event before it waits for it; it need not wait for "
                    "its own work, which runs in the order of the calls."
                )
            return "a stream must record an event of this kind before it waits for another stream's."
        waits = [one for one in threads if one in picture.waits]
        locks = [one for one in threads if one in picture.blocks and picture.blocks[one].lock]
        if len(locks) > 1 and not waits:
            return f"take the locks in the same order in {' and in '.join(map(self._short, locks))}."
        if locks and waits:
            keeper = picture.blocks[locks[0]].owner
            return (
                f"{self._short(keeper)} must release the lock before it waits for the stream"
                f"{self._place(keeper)}, as {self._short(locks[0])} needs it to end."
            )
        return "a function must not wait for a thread that waits for the function's stream."

    def _short(self, ident: int) -> str:
        running = self.picture.running.get(ident)
        return f"the function {_sites.function_line(running.function)}" if running else _blocked.thread_name(ident)

    def _place(self, ident: int) -> str:
        frame = sys._getframe() if ident == self.picture.me else self.picture.frames.get(ident)
        return "" if frame is None else f" at {_sites.frame_line(frame)}"

    def _thread(self, ident: int) -> Any:
        """Add a thread's line; return whom it waits for."""
        picture = self.picture
        frame = sys._getframe() if ident == picture.me else picture.frames.get(ident)
        while frame is not None and frame.f_code.co_filename in _blocked.HOOKS:
            frame = frame.f_back
        at = f", at {_sites.frame_line(frame)}" if frame is not None else ""
        wait = picture.waits.get(ident)
        if wait is None:
            block = picture.blocks.get(ident)
            self.lines.append(f"{self._name(ident)} {block.what if block else 'goes on'}{at}")
            if ident in picture.running:
                self.advice = (
                    "Release the lock before the host waits for the function that needs it."
                    if block and block.lock
                    else "Give the function what it waits for before the host waits for it, and not by work behind it."
                )
            elif block and block.lock:
                self.advice = "Release the lock where it is held, before that thread ends or waits itself."
            return block.owner if block and block.owner else None
        if wait.report:
            self.lines.append(f"{self._name(ident)} waits for a report{at}")
            self.advice = "Nobody is left who could send a report; do not wait for one any more."
            return None
        stuck = [name for name in wait.on if name in self.hopeless] or [*wait.on]
        also = f" and {len(wait.on) - 1} other stream(s)" if len(wait.on) > 1 else ""
        self.lines.append(f"{self._name(ident)} waits for {self._title(stuck[0])}{also}{at}")
        return stuck[0]

    def _stream(self, name: _waiters.Name) -> Any:
        """Add a stream's line; return whom it waits for."""
        node = self.picture.streams.get(name)
        if node is None:
            return None
        site = _sites.site_line(node.site)
        if not site and node.need == NEED_FUNCTION:
            site = _hostfunc.place_of(node.number)
        made = f", made at {site}" if site and node.need == NEED_GATE else f", from {site}" if site else ""
        start = f"{node.title} has {node.pending} operation(s) pending; the first is "
        self.lines.append(start + (self._head(node) + made))
        if node.need in (NEED_STREAM, NEED_ORDER):
            return next((other for other in node.on if other in self.hopeless), None)
        if node.need in (NEED_FUNCTION, NEED_REPORT):
            return self._hostfunc(node)
        if node.need == NEED_GATE:
            self.lines.append(f"gate {node.number} is closed, and nobody is left who could open it")
            self.advice = "Open the gate before the wait, or from a thread or a function that does not wait itself."
        elif node.need == NEED_EVENT and node.on:
            late = self._title(node.on[0])
            self.lines.append(f"event {node.number} is not recorded yet: {late} does that, further behind")
            return node.on[0]
        elif node.need == NEED_EVENT:
            self.lines.append(
                f"event {node.number} is not recorded, and nobody is left who could record it; "
                "a wait for an event of this kind waits for a record in the future"
            )
            self.advice = "Record the event before the host waits for a stream that waits for it."
        elif node.need == NEED_NATIVE and node.number not in self.picture.collectives:
            waits = self.picture.native_waits.get(node.number, "something")
            self.lines.append(f"the function, on thread {node.number} of the system, waits for {waits}")
            self.advice = (
                "Nobody sends the signal: let the function return by itself."
                if waits == "a signal"
                else "Give the function what it waits for before the host waits, or from a thread that does not."
            )
        elif node.need == NEED_VALUE:
            self.lines.append(
                f"the value at {node.number:#x} is not what the stream waits for, and nobody is left who could write it"
            )
            self.advice = "Write the value before the wait, or from a thread or a stream that does not wait itself."
        return None

    def _head(self, node: Node) -> str:
        if node.need == NEED_ORDER:
            return f"{node.head}, which the order of the legacy default stream holds back"
        if node.need == NEED_FUNCTION:
            return f"the function {_sites.function_line(self._find(node))}"
        return node.head

    def _find(self, node: Node) -> Any:
        """Return the function at the head of a stream."""
        picture = self.picture
        runs = (picture.calls if node.need == NEED_FUNCTION else picture.reports).get(node.number)
        if runs is not None:
            return picture.running[runs].function
        if node.need == NEED_REPORT:
            return ReportQueue._tasks.get(node.number)
        return _hostfunc.function_of(node.number)

    def _hostfunc(self, node: Node) -> Any:
        """Add who should run the function at the head of a stream; return the thread that does."""
        picture = self.picture
        runs = (picture.calls if node.need == NEED_FUNCTION else picture.reports).get(node.number)
        if runs is not None:
            return runs
        if node.need == NEED_REPORT:
            self.lines.append("no thread takes the reports of this stream")
            self.advice = "Let a thread process the reports while the host waits for the stream."
            return None
        busy = [ident for ident in picture.calls.values() if ident in picture.blocks]
        self.lines.append(f"all {len(picture.calls)} threads for functions are busy, none of them can end")
        for ident in busy[:SHOWN]:
            self.named[ident] = None
            self._thread(ident)
        if _hostfunc.refused:
            self.lines.append(f"a further thread for functions could not be started: {_hostfunc.refused}")
        self.advice = "Let functions end that wait for others" + (
            "." if _hostfunc.refused else ", or raise HALSTREAM_HOST_THREADS."
        )
        return None

    def _name(self, ident: int) -> str:
        running = self.picture.running.get(ident)
        name = _blocked.thread_name(ident)
        return f"the function {_sites.function_line(running.function)}, on {name}," if running else name

    def _title(self, name: _waiters.Name) -> str:
        node = self.picture.streams.get(name)
        return node.title if node else f"stream {name[1]} of device {name[0]}"

    def _others(self) -> list[str]:
        """Return the lines of threads that wait and are not part of the chain."""
        picture = self.picture
        if picture.anyone_may_act:
            return []
        lines, self.lines, advice = self.lines, [], self.advice
        for ident in [*picture.waits, *picture.blocks]:
            if ident not in self.named and not (ident in picture.blocks and picture.blocks[ident].idle):
                self._thread(ident)
        found, self.lines, self.advice = self.lines, lines, advice
        if len(found) > SHOWN:
            found[SHOWN:] = [f"{len(found) - SHOWN} more threads wait"]
        return found
