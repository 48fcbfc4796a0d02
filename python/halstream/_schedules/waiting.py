"""What a thread of the program waits for, read from its frames."""

from __future__ import annotations

import concurrent.futures.thread
import os
import sys
import threading

from .._sites import frame_line

__all__ = ["is_idle_worker", "others_run", "waits_of"]

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


def is_idle_worker(ident: int) -> bool:
    """Whether a thread is one of a pool that waits for work."""
    frame, worker = sys._current_frames().get(ident), False
    while frame is not None:
        if frame.f_code is _WORK:
            return False
        worker = worker or frame.f_code is concurrent.futures.thread._worker.__code__
        frame = frame.f_back
    return worker
