"""Objects that order host threads, by number, and how the checker learns what threads do with them."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from .. import _native
from .._native._constants import ORDER_FORGET
from .._runtime import runtime

__all__ = [
    "Number",
    "State",
    "muted",
    "number_of",
    "number_of_lock",
    "report_order",
]

_order = _native.raw("check_order")
_numbers = itertools.count(1)
# Numbers of collected objects; finalizers only append.
_collected: list[int] = runtime.keep("collected objects that ordered threads", [])
_NAME = "_halstream_order"


class Number:
    """The number of an object that orders threads, until the object is collected."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = next(_numbers)

    def __del__(self) -> None:
        if _collected is not None:
            _collected.append(self.value)

    def __reduce__(self) -> Any:
        return Number, ()  # a copy of the object is another one


_locks: weakref.WeakKeyDictionary[Any, Number] = runtime.keep("numbers of locks", weakref.WeakKeyDictionary())


class State:
    """Whether the hooks report what threads do."""

    on = False


class _Muted(threading.local):
    """Whether this thread is inside an object that orders less than the locks that it is made of."""

    muted = False
    round: Number | None = None  #: of the barrier that it waits at


muted = _Muted()


def number_of(one: Any) -> int:
    """Return the number of an object with a dictionary, 0 if it has none."""
    try:
        space = one.__dict__
    except AttributeError:
        return 0
    found = space.get(_NAME)
    if found is None:
        found = space.setdefault(_NAME, Number())  # in one step: several threads may come here
    return int(found.value)


def number_of_lock(lock: Any) -> int:
    """Return the number of a lock, which has no dictionary; 0 if it has no weak references either."""
    try:
        found = _locks.get(lock)
        if found is None:
            found = _locks.setdefault(lock, Number())
    except TypeError:
        return number_of(lock)
    return int(found.value)


def report_order(what: int, number: int) -> None:
    """Tell the checker; nothing that goes wrong there is the program's."""
    if not State.on or not number or muted.muted:
        return
    try:
        while _collected:
            _order(ORDER_FORGET, _collected.pop())
        _order(what, number)
    except Exception:
        return
