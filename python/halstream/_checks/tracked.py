"""What `threading` and `queue` make while a sanitizer is on: locks and simple queues that say what they order."""

from __future__ import annotations

import queue
import sys
import threading
from typing import Any

from .._native._constants import ORDER_ACQUIRE, ORDER_RELEASE
from .orderobjects import Items, Number, report_order

__all__ = ["SIMPLE", "Lock", "RLock", "SimpleQueue", "raw_lock", "use"]

_LOCK: Any = threading.Lock
_RLOCK: Any = threading.RLock
SIMPLE: Any = queue.SimpleQueue
#: Modules whose own locks order nothing of the program's, or are seen by their conditions.
_LIBRARIES = frozenset({"threading", "queue", "logging", "asyncio", "concurrent", "weakref", "importlib", "functools"})


def _for_library() -> bool:
    """Return True if the caller of the caller is a module whose locks stay as they are."""
    name = sys._getframe(2).f_globals.get("__name__") or ""
    root = name.partition(".")[0]
    return root in _LIBRARIES or root == __name__.partition(".")[0]


class _Kind(type):
    """The class of the classes below: the library's own locks are instances of them, too."""

    def __instancecheck__(cls, one: Any) -> bool:
        return type.__instancecheck__(cls, one) or type(one) is cls._raw_type  # type: ignore[attr-defined]


class _Tracked(metaclass=_Kind):
    """A lock that reports to the checker when a thread acquires and releases it."""

    __slots__ = ("__weakref__", "_number", "_raw")
    _make: Any = None  # the library's function
    _raw_type: Any = None

    def __new__(cls) -> Any:
        raw = cls._make()
        if _for_library():
            return raw
        self: Any = object.__new__(cls)
        self._raw = raw
        return self

    def __init__(self) -> None:
        self._number = Number()

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # what isinstance() looks at, also after the sanitizer's end
        return type(self._raw)

    def acquire(self, blocking: Any = True, timeout: Any = -1) -> Any:
        taken = self._raw.acquire(blocking, timeout)
        if taken:
            report_order(ORDER_ACQUIRE, self._number.value)
        return taken

    def release(self) -> None:
        report_order(ORDER_RELEASE, self._number.value)
        self._raw.release()

    def __enter__(self) -> Any:
        return self.acquire()

    def __exit__(self, *args: Any) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def __repr__(self) -> str:
        return repr(self._raw)


class Lock(_Tracked):
    """What `threading.Lock` makes while a sanitizer is on."""

    __slots__ = ()
    _make = staticmethod(_LOCK)
    _raw_type = type(_LOCK())


class RLock(_Tracked):
    """What `threading.RLock` makes while a sanitizer is on."""

    __slots__ = ()
    _make = staticmethod(_RLOCK)
    _raw_type = type(_RLOCK())

    # What a condition calls around its waits.
    def _release_save(self) -> Any:
        report_order(ORDER_RELEASE, self._number.value)
        return self._raw._release_save()

    def _acquire_restore(self, state: Any) -> None:
        self._raw._acquire_restore(state)
        report_order(ORDER_ACQUIRE, self._number.value)


class SimpleQueue(SIMPLE, metaclass=_Kind):  # type: ignore[misc]
    """What `queue.SimpleQueue` makes while a sanitizer is on."""

    _raw_type = SIMPLE

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return SIMPLE() if cls is SimpleQueue and _for_library() else super().__new__(cls, *args, **kwargs)

    def put(self, item: Any, block: Any = True, timeout: Any = None) -> None:
        Items.of(self).put_begins(item)
        super().put(item, block, timeout)

    def put_nowait(self, item: Any) -> None:
        self.put(item)

    def get(self, block: Any = True, timeout: Any = None) -> Any:
        item = super().get(block, timeout)
        Items.of(self).got(item)
        return item

    def get_nowait(self) -> Any:
        return self.get(False)


def use(lock: Any = _LOCK, rlock: Any = _RLOCK) -> None:
    """Have the locks that are made from now on stand on those of other classes; without arguments on the library's."""
    Lock._make, RLock._make = staticmethod(lock), staticmethod(rlock)


def raw_lock(frame: Any) -> Any:
    """Return what a frame of the classes above waits for without a limit, None for other frames."""
    names = frame.f_locals
    if frame.f_code is _Tracked.acquire.__code__ and names["blocking"] and names["timeout"] == -1:
        return names["self"]._raw
    if frame.f_code is SimpleQueue.get.__code__ and names["block"] and names["timeout"] is None:
        return names["self"]
    return None
