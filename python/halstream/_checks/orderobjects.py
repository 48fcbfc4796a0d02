"""Objects that order host threads, by number, and how the checker learns what threads do with them."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import Any

from .. import _native
from .._native._constants import ORDER_ACQUIRE, ORDER_FORGET, ORDER_RELEASE
from .._runtime import runtime

__all__ = [
    "Items",
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
_NAME, _ITEMS = "_halstream_order", "_halstream_items"


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


class Items:
    """What orders the threads that use a queue: who gets an item comes after who put that item, not after later puts.

    Methods are called outside of the queue's own locks, which would order more by chance.
    """

    __slots__ = ("_any", "_of", "_room")

    def __init__(self) -> None:
        #: By the identity of an item, which the queue keeps alive: a number for each time that it was put.
        self._of: dict[int, list[Number]] = {}
        self._any = Number()  # of puts whose items come out as other objects
        self._room = Number()  # of gets

    @classmethod
    def of(cls, queue: Any) -> Items:
        """Return that of a queue."""
        found: Items = vars(queue).setdefault(_ITEMS, cls())  # in one step: several threads may come here
        return found

    def put_begins(self, item: Any) -> None:
        """Report that the calling thread is about to put an item."""
        number = Number()
        self._of.setdefault(id(item), []).append(number)
        report_order(ORDER_RELEASE, number.value)
        report_order(ORDER_RELEASE, self._any.value)

    def put_fails(self, item: Any) -> None:
        """Take back the last `put_begins` of an item."""
        self._take(item, -1)

    def put_found_room(self) -> None:
        """Report that the calling thread has put an item into a bounded queue, for which others have made room."""
        report_order(ORDER_ACQUIRE, self._room.value)

    def got(self, item: Any) -> None:
        """Report that the calling thread has got an item."""
        number = self._take(item, 0) or self._any  # kept meanwhile: who is collected is forgotten
        report_order(ORDER_ACQUIRE, number.value)
        report_order(ORDER_RELEASE, self._room.value)

    def _take(self, item: Any, which: int) -> Number | None:
        numbers = self._of.get(id(item))
        if not numbers:
            return None
        number = numbers.pop(which)
        if not numbers:
            self._of.pop(id(item), None)
        return number


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
