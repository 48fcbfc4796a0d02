"""What may still act although no thread of the program does anything now."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Container, Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any

from . import _where

__all__ = ["alarm", "bystander", "unseen"]

# Signals that ask the program to end; a handler for them is no hope for a wait.
_ENDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}
_TIMERS = {
    signal.SIGALRM: signal.ITIMER_REAL,
    signal.SIGVTALRM: signal.ITIMER_VIRTUAL,
    signal.SIGPROF: signal.ITIMER_PROF,
}


def bystander(ident: int, frame: FrameType) -> bool:
    """Return True for a daemon thread that only libraries know of, such as a progress bar's.

    Nothing of the program is on its stack, nor in what it was made with.
    """
    thread = _threads().get(ident)
    if thread is None or not thread.daemon:
        return False
    at: FrameType | None = frame
    while at is not None:
        if _where.is_program(at.f_code.co_filename):
            return False
        at = at.f_back
    return not _of_program(type(thread)) and not any(map(_programs, _flat([*vars(thread).values()])))


def unseen(frames: Container[int], me: int) -> bool:
    """Return True if a thread exists that runs no Python code now, but may.

    Parameters
    ----------
    frames : container of int
        The threads that do run Python code.
    me : int
        The calling thread.
    """
    if getattr(threading, "_limbo", None):
        return True  # one is being started
    for ident, thread in _threads().items():
        if ident in frames or ident == me:
            continue
        if type(thread).__name__ != "_DummyThread":
            if thread.is_alive():
                return True
        elif os.path.exists(f"/proc/self/task/{thread.native_id}") or not os.path.exists("/proc/self/task"):
            return True  # one of another language, whose end Python does not hear of
    return False


def alarm() -> bool:
    """Return True if the program has a handler for a signal that may come by itself."""
    for number in signal.valid_signals() - _ENDS:
        handler = signal.getsignal(number)
        if not callable(handler) or not _programs(handler):
            continue
        timer = _TIMERS.get(signal.Signals(number)) if number in _TIMERS else None
        if timer is None or signal.getitimer(timer)[0] > 0:
            return True
    return False


def _threads() -> dict[int, threading.Thread]:
    """Return the threads by number, without the lock that `threading.enumerate` takes."""
    return dict(getattr(threading, "_active", {}))


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        yield value
        if isinstance(value, (list, tuple, set)):
            yield from value
        elif isinstance(value, dict):
            yield from value.values()


def _programs(value: Any) -> bool:
    """Return True for a function, class or object of the program, or a method of ours."""
    while hasattr(value, "func") and hasattr(value, "args"):  # functools.partial
        value = value.func
    if _plain(value):
        return True
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        return False
    return (
        _plain(owner)
        or type(owner).__module__.partition(".")[0] == __package__  # such as that which opens a gate
        or any(map(_plain, getattr(owner, "__dict__", {}).values()))
    )


def _plain(value: Any) -> bool:
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        return _where.is_program(code.co_filename)
    return _of_program(value if isinstance(value, type) else type(value))


def _of_program(kind: type) -> bool:
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return kind.__module__ == "__main__" or (isinstance(path, str) and _where.is_program(path))
