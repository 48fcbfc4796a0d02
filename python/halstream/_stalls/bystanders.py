"""Threads that a library starts for itself while it is imported: no wait of the program waits for them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from .._runtime import runtime

__all__ = ["is_bystander", "library_threads"]

_TASKS = Path("/proc/self/task")


_started: set[tuple[int, str]] = runtime.keep("threads that libraries started for themselves", set())


@contextlib.contextmanager
def library_threads() -> Iterator[None]:
    """Take the threads that are started meanwhile for those of the library that is imported.

    Threads that Python knows are left out, as they may be the program's.
    """
    before = _numbers()
    try:
        yield
    finally:
        python = {thread.native_id for thread in threading.enumerate()}
        _started.update((number, _began(number)) for number in _numbers() - before - python)


def is_bystander(number: int) -> bool:
    """Return True for a thread of a library, by the system's number of it."""
    # The system gives the number of a thread that has ended to another one.
    return (number, _began(number)) in _started


def _numbers() -> set[int]:
    with contextlib.suppress(OSError):
        return {int(name) for name in os.listdir(_TASKS)}
    return set()


def _began(number: int) -> str:
    """Return when a thread was started, in the system's own count; "" if it is not known."""
    try:
        text = (_TASKS / str(number) / "stat").read_text(errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
