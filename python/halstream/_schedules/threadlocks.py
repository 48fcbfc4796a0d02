"""Locks whose waits are known to the control of host threads.

Each is one of the library's own locks. A thread that takes turns asks whether it is free and gives
its turn away while it is not; any other thread, and all after the end of the control, wait for it as ever.
"""

from __future__ import annotations

import _thread
import time
from typing import Any

from .control import Member, active

__all__ = ["Lock", "RLock", "raw_lock"]


class Lock:
    """What `threading.Lock` makes while host threads are controlled."""

    __slots__ = ("__weakref__", "_raw", "owner")
    _make: Any = staticmethod(_thread.allocate_lock)

    def __init__(self) -> None:
        self._raw = self._make()
        self.owner: Member | None = None  #: who has it, as far as known

    def acquire(self, blocking: Any = True, timeout: Any = -1) -> Any:
        control = active.control
        member = control.member() if control is not None else None
        if control is None or member is None:
            return self._raw.acquire(blocking, timeout)
        control.point()
        if self._raw.acquire(False):
            self.owner = member
            return True
        if not blocking or timeout == 0 or (timeout < 0 and timeout != -1):
            return self._raw.acquire(blocking, timeout)  # what is wrong with the arguments is said there
        limit = None if timeout == -1 else timeout
        end = None if limit is None else time.monotonic() + limit
        if control.wait(member, self, lambda: self._raw.acquire(False), limit):
            self.owner = member
            return True
        if not control.closed:
            return False
        return self._raw.acquire(True, -1 if end is None else max(0.0, end - time.monotonic()))

    def release(self) -> None:
        self._raw.release()
        self.owner = None
        if active.control is not None:
            active.control.wake(self)

    acquire_lock = acquire
    release_lock = release

    def __enter__(self) -> Any:
        return self.acquire()

    def __exit__(self, *args: Any) -> None:
        self.release()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def __repr__(self) -> str:
        return repr(self._raw)


class RLock(Lock):
    """What `threading.RLock` makes while host threads are controlled."""

    __slots__ = ()
    _make = staticmethod(_thread.RLock)

    # What a condition calls around its waits.
    def _release_save(self) -> Any:
        state = self._raw._release_save()
        self.owner = None
        if active.control is not None:
            active.control.wake(self)
        return state

    def _acquire_restore(self, state: Any) -> None:
        if self.acquire():  # others go on until it is free
            self._raw.release()
        self._raw._acquire_restore(state)


def raw_lock(frame: Any) -> Any:
    """Return the library's lock for which a thread that takes no turns waits without a limit, None for other frames."""
    names = frame.f_locals
    waits = frame.f_code is Lock.acquire.__code__ and names.get("member") is None
    if waits and names["blocking"] and names["timeout"] == -1:
        return names["self"]._raw
    return None
