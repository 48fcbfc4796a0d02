"""Waits that can never end: they raise instead of hanging.

From time to time, and only while nothing of the runtime moves by itself, the
extension asks whether a wait of the host that has no limit can still end. It can as
long as some thread of the program may act. `StallError` is raised only where it is
certain that none may: each thread or stream that could help waits for another one.
"""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import time
import warnings
from typing import Any

from .. import _native, _sites
from .._core import _hostfunc
from .._core._base import reap
from .._core._context import ReportQueue
from .._errors import StallError
from .._runtime import runtime
from . import blocked as _blocked
from . import waiters as _waiters
from .waiters import EVENT, FUNCTION, GATE, ORDER, REPORT, STREAM, VALUE, Node, Picture

__all__ = ["asked"]

# A stall is reported when two looks at most this far apart find the same.
_AGREE_S = 2.0

# How long native threads must be the only ones that could help before a warning says so.
_WARN_S = 2.0

# For how long a thread leaves it to a better one, such as the main thread, to raise the error.
_DEFER_S = 2.0


class _Suspicion:
    """What a thread's last look found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.first = self.since = time.monotonic()
        self.warned = False


_suspicions: dict[int, _Suspicion] = runtime.keep("suspected stalls", {})


def asked() -> int:
    """Answer the extension: about a function that runs, or about the wait of this thread.

    Returns
    -------
    int
        Of a function: 1 if it waits for something that only another thread can give
        it, 2 if none can but those that wait for it. Of a wait: 1 to be asked again soon.

    Raises
    ------
    StallError
        If the wait can never end. Its text is the chain of who waits for whom.
    """
    token = int(_native.stall_asked())
    if token:
        return _waiters.function_waits(token, threading.get_ident())
    if os.environ.get("HALSTREAM_STALL") == "0":
        return False
    try:
        text, again = _judge(threading.get_ident())
    except RuntimeWarning:
        raise  # where warnings are errors
    except Exception:
        # A look that fails is no reason to end a wait.
        return False
    if text:
        raise StallError(text, operation="synchronize")
    return again


def _judge(me: int) -> tuple[str, bool]:
    """Return the text of the error, if the wait of thread `me` has no end, and whether to ask again."""
    text, better, native = _look(me)
    known = _suspicions.pop(me, None)
    if not text:
        return "", False
    if known is None or known.text != text or time.monotonic() - known.since > _AGREE_S:
        _suspicions[me] = _Suspicion(text)
        # A gate without references opens when it is collected.
        gc.collect()
        while reap:
            _native.reap(reap.pop())
        return "", True
    if native:
        known.since = time.monotonic()
        _suspicions[me] = known
        if not known.warned and known.since - known.first >= _WARN_S:
            known.warned = True
            _warn(text, native)
        return "", False
    if better and time.monotonic() - known.first < _DEFER_S:
        known.since = time.monotonic()
        _suspicions[me] = known
        return "", True
    return text, False


def _warn(text: str, native: list[str]) -> None:
    """Warn of a wait that only threads unknown to Python could end."""
    at: Any = sys._getframe()
    while at.f_back is not None and _sites.is_own(at.f_code.co_filename):
        at = at.f_back
    names = ", ".join(native[:_SHOWN]) + (", ..." if len(native) > _SHOWN else "")
    warnings.warn_explicit(
        f"only threads that Python does not know could still end this wait: {names}. If they will not, {text}",
        RuntimeWarning,
        at.f_code.co_filename,
        at.f_lineno,
    )


def _look(me: int) -> tuple[str, bool, list[str]]:
    """Return why thread `me` can never go on, '' if it may, and whether another thread should raise that.

    The third value are the native threads that may still help it.
    """
    picture = _waiters.take(me)
    if me not in picture.waits:
        return "", False, []
    hopeless, native = picture.hopeless(me), []
    if me not in hopeless and picture.native:
        hopeless, native = picture.hopeless(me, native=True), picture.native
    if me not in hopeless:
        return "", False, []
    # The main thread's errors are seen best; one that waits for reports has the least to say.
    waits = picture.waits
    main = threading.main_thread().ident
    better = main != me and main in waits and main in hopeless and not waits[main].report
    if waits[me].report:
        better = any(ident in hopeless and not wait.report for ident, wait in waits.items())
    return _Chain(picture, hopeless).text(), better, native


class _Chain:
    """The text of who waits for whom."""

    def __init__(self, picture: Picture, hopeless: set[Any]) -> None:
        self.picture, self.hopeless = picture, hopeless
        self.lines: list[str] = []
        self.named: set[Any] = set()
        self.advice = ""

    def text(self) -> str:
        """Return the whole of it, a line for each that waits."""
        one: Any = self.picture.me
        while one is not None and one not in self.named:
            self.named.add(one)
            one = self._stream(one) if isinstance(one, tuple) else self._thread(one)
        if one is not None:
            self.advice = "Break the circle: " + (
                "a function must not wait for a thread that waits for the function's stream."
                if self.advice
                else "a stream must record an event of this kind before it waits for another stream's."
            )
        head = "this wait can never end: " + (
            "each of these waits for the next, and the last for an earlier one"
            if one is not None
            else "everything that could end it waits, too"
        )
        text = "\n".join([head, *("  " + line for line in (*self.lines, *self._others())), self.advice])
        return re.sub(r"\bdevice (\d+)", lambda found: _sites.real_torch.device(int(found[1])), text)

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
                self.advice = "Give the function what it waits for before the host waits for the function."
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
        made = f", made at {site}" if site and node.need == GATE else f", from {site}" if site else ""
        start = f"{node.title} has {node.pending} operation(s) pending; the first is "
        self.lines.append(start + (self._head(node) + made))
        if node.need in (STREAM, ORDER):
            return next((other for other in node.on if other in self.hopeless), None)
        if node.need in (FUNCTION, REPORT):
            return self._function(node)
        if node.need == GATE:
            self.lines.append(f"gate {node.number} is closed, and nobody is left who could open it")
            self.advice = "Open the gate before the wait, or from a thread or a function that does not wait itself."
        elif node.need == EVENT and node.on:
            late = self._title(node.on[0])
            self.lines.append(f"event {node.number} is not recorded yet: {late} does that, further behind")
            return node.on[0]
        elif node.need == EVENT:
            self.lines.append(
                f"event {node.number} is not recorded, and nobody is left who could record it; "
                "a wait for an event of this kind waits for a record in the future"
            )
            self.advice = "Record the event before the host waits for a stream that waits for it."
        elif node.need == VALUE:
            self.lines.append(
                f"the value at {node.number:#x} is not what the stream waits for, and nobody is left who could write it"
            )
            self.advice = "Write the value before the wait, or from a thread or a stream that does not wait itself."
        return None

    def _head(self, node: Node) -> str:
        if node.need == ORDER:
            return f"{node.head}, which the order of the legacy default stream holds back"
        if node.need == FUNCTION:
            return f"the function {_sites.function_line(self._find(node))}"
        return node.head

    def _find(self, node: Node) -> Any:
        """Return the function at the head of a stream."""
        picture = self.picture
        runs = (picture.calls if node.need == FUNCTION else picture.reports).get(node.number)
        if runs is not None:
            return picture.running[runs].function
        if node.need == REPORT:
            return ReportQueue._tasks.get(node.number)
        return _hostfunc.function_of(node.number)

    def _function(self, node: Node) -> Any:
        """Add who should run the function at the head of a stream; return the thread that does."""
        picture = self.picture
        runs = (picture.calls if node.need == FUNCTION else picture.reports).get(node.number)
        if runs is not None:
            return runs
        if node.need == REPORT:
            self.lines.append("no thread takes the reports of this stream")
            self.advice = "Let a thread process the reports while the host waits for the stream."
            return None
        busy = [ident for ident in picture.calls.values() if ident in picture.blocks]
        self.lines.append(f"all {len(picture.calls)} threads for functions are busy, none of them can end")
        for ident in busy[:_SHOWN]:
            self.named.add(ident)
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
        if len(found) > _SHOWN:
            found[_SHOWN:] = [f"{len(found) - _SHOWN} more threads wait"]
        return found


# How many threads outside the chain a text names.
_SHOWN = 8
