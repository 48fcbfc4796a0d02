"""Find that the main thread, which waits in Python, can never go on, and raise it there.

A thread that waits in the runtime asks by itself. One that waits for a queue, a lock, a
future, an event loop or in a loop of questions does not: while pending work does not
move the extension asks for the main thread, on a thread of its own. What is found twice
is raised on the main thread, which a signal takes out of its wait.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from types import FrameType
from typing import NamedTuple

from .. import _native, _sites
from .._core._reap import close, reap
from .._errors import StallError
from .._runtime import runtime
from . import actors as _actors
from . import loops as _loops
from . import waiters as _waiters
from .blocked import Block
from .chain import Chain
from .polling import Polling, polling

__all__ = ["DELIVERS", "WATCHES", "deliver", "watch"]

#: What the extension calls a look at the main thread, and a call on it after `stall_interrupt`.
WATCHES, DELIVERS = -1, -2


class _Verdict(NamedTuple):
    """What a look found."""

    text: str
    mark: int  #: of the work that was pending
    frame: FrameType  #: the innermost one of the program on the main thread
    instruction: int  #: where it is there; -1 while it asks again and again
    question: Polling | None


# The verdict of the last look, and the one that the main thread is to raise.
_found: list[_Verdict] = runtime.keep("suspected stalls of the main thread", [])
_to_raise: list[_Verdict] = runtime.keep("stalls for the main thread to raise", [])


def watch() -> int:
    """Look at the main thread from another one; return 1 to be asked again soon."""
    before = _found.pop() if _found else None
    if os.environ.get("HALSTREAM_STALL") == "0" or sys.is_finalizing():
        return 0
    try:
        found = _look()
    except Exception:
        return 0  # a look that fails says nothing
    if found is None:
        return 0
    verdict, block = found
    if before is None or before[:2] != verdict[:2] or before.frame is not verdict.frame:
        _found.append(verdict)
        return 1
    _to_raise[:] = [verdict]
    if block.run is not None:
        _loops.end_in_trio(block.run, deliver)
        return 0
    if block.loop is not None and _loops.end_in_asyncio(block.loop, deliver):
        return 0
    _native.stall_interrupt(threading.main_thread().ident or 0)
    if block.loop is not None:
        block.loop.call_soon_threadsafe(int)  # it sleeps in a call that signals do not end; this does
    return 0


def deliver() -> int:
    """Raise on the main thread what was found of it, unless anything has changed.

    Raises
    ------
    StallError
        If it has not.
    """
    if not _to_raise:
        return 0
    verdict = _to_raise.pop()
    gc.collect()  # a gate without references opens when it is collected
    while reap:
        close([reap.pop()])
    at = _innermost(sys._getframe())
    if at is not verdict.frame or verdict.instruction not in (-1, at.f_lasti):
        return 0
    if verdict.question is not None and verdict.question.ask():
        return 0
    if _waiters.mark() != verdict.mark:
        return 0
    raise StallError(verdict.text, operation="wait")


def _look() -> tuple[_Verdict, Block] | None:
    """Return the verdict if the main thread waits in Python and can never go on."""
    main = threading.main_thread().ident or 0
    frame = sys._current_frames().get(main)
    if frame is None:
        return None
    question = polling(frame)
    asks = {} if question is None else {main: Block(f"asks again and again for {question.question}")}
    picture = _waiters.take(threading.get_ident(), asks)
    block = picture.blocks.get(main)
    if block is None or block.idle or picture.native or _actors.signal_may_come():
        return None
    hopeless = picture.hopeless(main)
    # A thread that waits in the runtime raises its own error, after which the main thread may go on.
    if main not in hopeless or any(ident in picture.waits for ident in hopeless):
        return None
    at = _innermost(frame)
    text = Chain(picture, main, hopeless).text()
    return _Verdict(text, picture.mark, at, -1 if question else at.f_lasti, question), block


def _innermost(frame: FrameType) -> FrameType:
    """Return the innermost frame of the program; the outermost one if it has none."""
    at = frame
    while not _sites.is_program(at.f_code.co_filename) and at.f_back is not None:
        at = at.f_back
    return at
