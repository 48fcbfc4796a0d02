"""What torch's own threads still do when the interpreter is about to end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from ... import _native

__all__ = ["wait_for_autograd"]

#: Seconds that the process waits: a thread of the program may run backward passes without end.
LIMIT = 2.0

_TASKS = Path("/proc/self/task")


def wait_for_autograd() -> None:
    """Wait until autograd's threads wait for their next backward pass.

    A backward pass returns to its caller before its thread has dropped the objects of Python
    that belong to it. A thread that asks for Python's lock behind the end of the interpreter is
    ended by it, and C++ then ends the process with SIGABRT. Nothing happens where the system
    does not tell what threads do.
    """
    threads = list(_threads())
    end = time.monotonic() + LIMIT
    quiet = 0
    while threads and quiet < 2 and time.monotonic() < end:  # a thread may wait for another lock for a moment
        time.sleep(0.001)
        quiet = quiet + 1 if all(map(_native.stall_native, threads)) else 0


def _threads() -> Iterator[int]:
    for task in _TASKS.glob("*") if _TASKS.exists() else ():
        with contextlib.suppress(OSError):  # it has ended meanwhile, or nothing may look at it
            if (task / "comm").read_text().startswith("pt_autograd_") and (task / "syscall").read_text():
                yield int(task.name)
