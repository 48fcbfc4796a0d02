"""What a thread of the program waits for, read from its frames."""

from __future__ import annotations

import concurrent.futures.thread
import os
import sys
import threading
import time

from .._sites import frame_line

__all__ = ["Stillness", "is_idle_worker", "others_run", "waits_of"]

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.dirname(threading.__file__) + os.sep
#: Files whose methods are named as what a thread waits in.
_WAITS = frozenset(
    (
        *(f"{_LIBRARY}{name}.py" for name in ("threading", "queue")),
        *(os.path.join(_LIBRARY, "concurrent", "futures", f"{name}.py") for name in ("_base", "thread")),
        *(f"{_HERE}{name}.py" for name in ("threadlocks", "threadhooks")),
    )
)
# Seconds in which nothing of the process moves, after which the thread with the turn
# counts as waiting outside of what is known; and the limits where other threads use the processor,
# and where they would if they had one. A thread that asks for Python's lock sleeps, and has it one look later.
_LIMIT = 0.25
_HARD = 10.0
_STARVED = 30.0
_LOOKS = 3
_APART = 0.025  # seconds between two looks, at least, for the second one to count

_monotonic = time.monotonic  # before a schedule replaces it
_WORK = concurrent.futures.thread._WorkItem.run.__code__


def waits_of(ident: int) -> str:
    """Return in which call a thread waits and where, in words; '' for a thread that has ended."""
    frame = sys._current_frames().get(ident)
    call, at = "", frame
    while at is not None:
        file = at.f_code.co_filename
        if file in _WAITS:
            name, owner = at.f_code.co_name, at.f_locals.get("self")
            if owner is not None and not name.startswith("_"):
                call = f"in {type(owner).__name__}.{name} "
        elif not file.startswith(_HERE):
            break
        at = at.f_back
    return f"{call}at {frame_line(frame)}" if frame is not None else ""


def others_run() -> bool:
    """Whether another thread of the process runs, or would run on a machine that is less busy.

    Where the system does not tell, none does.
    """
    own = str(threading.get_native_id())
    try:
        for thread in os.listdir("/proc/self/task"):
            if thread != own and _is_ready(thread):
                return True
    except OSError:
        pass
    return False


def _is_ready(thread: str) -> bool:
    try:
        with open(f"/proc/self/task/{thread}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].startswith(b"R")
    except OSError:  # it has ended
        return False


class Stillness:
    """Whether a process does not move any more, from repeated looks at it."""

    def __init__(self) -> None:
        self._seen = (-1, 0.0, 0.0)
        self._quiet = (0, 0.0)  # looks that found no other thread ready to run, and when the last one was

    def lasts(self, progress: int, others_run: bool) -> bool:
        """Look once more; `progress` differs after each move that is known."""
        now, used = _monotonic(), time.process_time()
        seen, since, before = self._seen
        if seen != progress:
            self._seen, self._quiet = (progress, now, used), (0, now)
            return False
        looks, last = self._quiet
        if others_run:
            looks = 0
        elif now - last > _APART:
            looks, last = looks + 1, now
        self._quiet = (looks, last)
        if now - since < _LIMIT:
            return False
        busy = used - before > 0.2 * (now - since)
        if (busy or looks < _LOOKS) and now - since < (_HARD if busy else _STARVED):
            return False
        self._seen, self._quiet = (progress, now, used), (0, now)
        return True


def is_idle_worker(ident: int) -> bool:
    """Whether a thread is one of a pool that waits for work."""
    frame, worker = sys._current_frames().get(ident), False
    while frame is not None:
        if frame.f_code is _WORK:
            return False
        worker = worker or frame.f_code is concurrent.futures.thread._worker.__code__
        frame = frame.f_back
    return worker
