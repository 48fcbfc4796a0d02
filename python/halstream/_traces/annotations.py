"""Ranges and marks that a program names: stored while a trace is recorded, otherwise without cost."""

from __future__ import annotations

import itertools
import threading
from typing import NamedTuple

from .. import _native
from .._runtime import State, runtime

__all__ = ["Annotation", "end", "mark", "pop", "push", "record", "start", "take"]


class Annotation(NamedTuple):
    """A range of time that a program named, or a mark."""

    text: str
    thread: str
    begin: int  #: ns of the runtime's clock
    end: int  #: as `begin` for a mark; -1 where the range had not ended


class _Open(NamedTuple):
    text: str
    begin: int


class _Recorder(State):
    """What is recorded, None while nothing is, and the ranges that have not ended."""

    def __init__(self) -> None:
        self.found: list[Annotation] | None = None
        self.started: dict[int, tuple[str, _Open]] = {}  # by number, for `end`


class _Thread(threading.local):
    """The ranges of a thread that enclose what it does now."""

    def __init__(self) -> None:
        self.stack: list[_Open] = []


_recorder = runtime.add("annotations", _Recorder())
_thread = _Thread()
_numbers = itertools.count(1)


def record() -> None:
    """Keep the annotations from now on."""
    _recorder.found = []


def take() -> list[Annotation]:
    """Return what was kept since `record`, and keep nothing more."""
    found, _recorder.found = _recorder.found, None
    return found or []


def _now() -> int:
    return int(_native.runtime_now()) if _recorder.found is not None else -1


def _keep(what: _Open, end: int, thread: str) -> None:
    # A range that began before the recording has no start time in it.
    if _recorder.found is not None and what.begin >= 0:
        _recorder.found.append(Annotation(what.text, thread, what.begin, end))


def push(text: str) -> int:
    """Begin a range inside those of this thread; return how many enclose it."""
    _thread.stack.append(_Open(text, _now()))
    return len(_thread.stack) - 1


def pop() -> int:
    """End the innermost range of this thread; return how many enclosed it, -1 without one."""
    if not _thread.stack:
        return -1
    what = _thread.stack.pop()
    _keep(what, _now(), threading.current_thread().name)
    return len(_thread.stack)


def start(text: str) -> int:
    """Begin a range that any thread may end; return its number."""
    number = next(_numbers)
    _recorder.started[number] = threading.current_thread().name, _Open(text, _now())
    return number


def end(number: int) -> None:
    """End a range of `start`; one that is unknown is ignored."""
    found = _recorder.started.pop(number, None)
    if found is not None:
        _keep(found[1], _now(), found[0])


def mark(text: str) -> None:
    """Name a moment."""
    now = _now()
    _keep(_Open(text, now), now, threading.current_thread().name)
