"""Waits that can never end: they raise instead of hanging.

From time to time, and only while nothing of the runtime moves by itself, the
extension asks whether a wait of the host that has no limit can still end. It can as
long as some thread of the program may act. `StallError` is raised only where it is
certain that none may: each thread or stream that could help waits for another one.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from typing import Any

from .. import _native, _sites
from .._core._handlers import raise_of_handler
from .._core._reap import close, reap
from .._errors import StallError
from .._runtime import runtime
from . import actors as _actors
from . import ranks as _ranks
from . import waiters as _waiters
from . import watching as _watching
from .blocked import Block, looking_loop
from .chain import SHOWN, Chain

__all__ = ["ask_for_loop", "asked"]

# A stall is reported when two looks at most this far apart find the same.
_AGREE_S = 2.0

# How long native threads must be the only ones that could help before a warning says so.
_WARN_S = 2.0

# For how long a thread leaves it to a better one, such as the main thread, to find the
# same; once that has, it is left to it for as long as what it found counts.
_DEFER_S = 2.0


class _Suspicion:
    """What a thread's last look found."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.first = self.since = time.monotonic()
        self.warned = False

    def counts(self) -> bool:
        """Return whether a look that finds the same now agrees with the last one."""
        return time.monotonic() - self.since <= _AGREE_S


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
    if token == _watching.WATCHES:
        return _watching.watch()
    if token == _watching.DELIVERS:
        return _watching.deliver()
    if token:
        return _waiters.function_waits(token, threading.get_ident())
    if os.environ.get("HALSTREAM_STALL") == "0":
        return False
    try:
        text, again = _judge(threading.get_ident())
    except RuntimeWarning:
        raise  # where warnings are errors
    except Exception as error:
        raise_of_handler(error)
        # A look that fails is no reason to end a wait.
        return False
    if text:
        raise StallError(text, operation="synchronize")
    return again


def _judge(me: int) -> tuple[str, bool]:
    """Return the text of the error, if the wait of thread `me` has no end, and whether to ask again."""
    text, again = _decide(me, *_look(me))
    if text:
        return ("", True) if _ranks.tell(text) else (text, False)
    return (text, again) if again else _ranks.look(me)


def ask_for_loop(line: Any) -> bool:
    """Ask whether the waits of an event loop whose tasks look again and again can ever end.

    Parameters
    ----------
    line : _Line
        The loop's; the calling thread runs it.

    Returns
    -------
    bool
        Whether to be asked again soon.

    Raises
    ------
    StallError
        If they cannot.
    """
    me = threading.get_ident()
    block = None if os.environ.get("HALSTREAM_STALL") == "0" else looking_loop(line)
    if block is None or _actors.signal_may_come():
        _suspicions.pop(me, None)
        return False
    try:
        text, again = _decide(me, *_look(me, block))
    except RuntimeWarning:
        raise  # where warnings are errors
    except Exception as error:
        raise_of_handler(error)
        return False  # a look that fails is no reason to end a wait
    if text:
        raise StallError(text, operation="wait")
    return again


def _decide(me: int, text: str, better: Sequence[int], native: list[str]) -> tuple[str, bool]:
    """Return what `_judge` does of what a look found."""
    known = _suspicions.pop(me, None)
    if not text:
        return "", False
    if known is None or known.text != text or not known.counts():
        # A gate without references opens when it is collected.
        gc.collect()
        while reap:
            close([reap.pop()])
        _suspicions[me] = _Suspicion(text)  # now: a collection may take longer than _AGREE_S
        return "", True
    if native:
        known.since = time.monotonic()
        _suspicions[me] = known
        if not known.warned and known.since - known.first >= _WARN_S:
            known.warned = True
            _warn(text, native)
        return "", False
    if better and (time.monotonic() - known.first < _DEFER_S or _found_by(better)):
        known.since = time.monotonic()
        _suspicions[me] = known
        return "", True
    return text, False


def _warn(text: str, native: list[str]) -> None:
    """Warn of a wait that only threads unknown to Python could end."""
    at: Any = sys._getframe()
    while at.f_back is not None and _sites.is_own(at.f_code.co_filename):
        at = at.f_back
    names = ", ".join(native[:SHOWN]) + (", ..." if len(native) > SHOWN else "")
    warnings.warn_explicit(
        f"only threads that Python does not know could still end this wait: {names}. If they will not, {text}",
        RuntimeWarning,
        at.f_code.co_filename,
        at.f_lineno,
    )


def _found_by(threads: Sequence[int]) -> bool:
    """Return whether one of the threads has found a stall, so that its next look raises it."""
    return any(known is not None and known.counts() for known in map(_suspicions.get, threads))


def _look(me: int, block: Block | None = None) -> tuple[str, list[int], list[str]]:
    """Return why thread `me` can never go on, '' if it may, and the threads that should rather raise that.

    The third value are the native threads that may still help it. `block` says what the thread
    waits for if that is not in the runtime.
    """
    picture = _waiters.take(me)
    if block is not None:
        picture.blocks[me] = block
    elif me not in picture.waits:
        return "", [], []
    hopeless, native = picture.hopeless(me), []
    if me not in hopeless and picture.native:
        hopeless, native = picture.hopeless(me, native=True), picture.native
    if me not in hopeless:
        return "", [], []
    # The main thread's errors are seen best; one that waits for reports has the least to say.
    waits = picture.waits
    main = threading.main_thread().ident
    better = [ident for ident, wait in waits.items() if ident in hopeless and not wait.report]
    if block is not None or not waits[me].report:
        better = [ident for ident in better if ident == main != me]
    return Chain(picture, me, hopeless).text(), better, native
