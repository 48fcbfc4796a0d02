"""Caching pools over memory that their user supplies, and settings of memory per thread.

The extension divides, merges and counts; a pool here supplies its memory and
owns every segment of it, in use or not.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from .. import _native
from .._core._reap import drain, reap
from .._errors import HalError, OutOfMemoryError
from .._records import decode
from .._runtime import runtime

__all__ = ["UNIT", "Block", "Choice", "Exhausted", "Pool", "reset", "rounded", "thread"]

T = TypeVar("T")

_cache_take = _native.raw("cache_take")
_block_address = _native.raw("block_address")

#: Pools give out multiples of so many bytes.
UNIT = 512


def rounded(nbytes: int) -> int:
    """Return the next multiple of `UNIT`."""
    return (nbytes + UNIT - 1) // UNIT * UNIT


class Exhausted(OutOfMemoryError):
    """A pool has no room: `size` bytes were asked for, it holds `total`, `limit` 0 is none."""

    def __init__(self, size: int, total: int, limit: int) -> None:
        super().__init__(
            f"out of memory. Tried to allocate {size} bytes: the pool holds {total}, its limit is {limit or 'none'}"
        )
        self.size = size
        self.total = total
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self.total, self.limit), self.__dict__


class Block:
    """A part of a pool's memory, in use until `free` or until it is collected.

    Attributes
    ----------
    ptr : int
        Address of its first byte; 0 after `free`.
    nbytes : int
        Size in bytes.
    device : int
        Number of the device.
    """

    __slots__ = ("_id", "_pool", "device", "nbytes", "ptr")

    def __init__(self, pool: Pool, ident: int, nbytes: int, device: int) -> None:
        self._pool = pool  # whose segments are its memory
        self._id = ident
        self.ptr: int = _block_address(ident)
        self.nbytes: int = nbytes
        self.device: int = device

    def free(self) -> None:
        """Give it back to the pool, where it is free at once; again does nothing."""
        if self.ptr:
            self.ptr = 0
            _native.reap(self._id)

    def __del__(self) -> None:
        if getattr(self, "ptr", 0) and reap is not None:
            reap.append(self._id)


class Pool:
    """A pool with a part for each device and key: what is given back is free there only.

    Parameters
    ----------
    allocate : callable
        From a size in bytes to an object with `ptr`; the memory is given back
        when nothing refers to the object any more.
    exact : bool
        Blocks are not divided: each is given out for its own size.
    """

    def __init__(self, allocate: Callable[[int], Any], exact: bool = False) -> None:
        self._allocate = allocate
        self._exact = exact
        self._id = 0  # made at the first use: a process that only imports a dialect may fork
        self._devices: set[int] = set()
        self._numbers = itertools.count(1)
        # Segments by number. The pool owns them, so that a cycle of the program that
        # reaches a block never reaches the only reference to its memory: one pass of
        # the garbage collector would run the finalizers of both.
        self._segments: dict[int, Any] = {}
        _pools.add(self)

    def take(self, device: int, key: int, nbytes: int) -> Block:
        """Return a block of `nbytes`; raises what `take_id` does."""
        return Block(self, self.take_id(device, key, nbytes), nbytes, device)

    def take_id(self, device: int, key: int, nbytes: int) -> int:
        """Return the id of a block of `nbytes`, which its owner gives to `reap`.

        Raises
        ------
        Exhausted
            If the device or the limit has no room, also after everything that
            is free was given back to the device.
        """
        if reap:
            drain()
        if device not in self._devices:
            self._use(device)
        for attempt in range(3):
            ident: int = _cache_take(self._id, device, key, nbytes)
            if ident:
                return ident
            with contextlib.suppress(OutOfMemoryError):
                return self._grow(device, key, nbytes)
            if attempt == 1:
                gc.collect()
            self.free_all(device)
        raise Exhausted(nbytes, self.total(device), self.limit(device))

    def _use(self, device: int) -> None:
        self._id = self._id or int(_native.cache_new(self._exact))
        self._devices.add(device)

    def _grow(self, device: int, key: int, nbytes: int) -> int:
        _native.cache_reserve(self._id, device, nbytes)
        try:
            segment = self._allocate(nbytes)
        except BaseException:
            _native.cache_unreserve(self._id, device, nbytes)
            raise
        number = next(self._numbers)
        self._segments[number] = segment
        return int(_native.cache_add(self._id, device, key, int(segment.ptr), nbytes, number))

    def free_all(self, device: int, key: int | None = None) -> None:
        """Give segments that are wholly free back to the device; None means of every key."""
        if device not in self._devices:
            return
        drain()
        numbers: list[int] = decode(_native.cache_free_all(self._id, device, key or 0, key is None))
        # Dropped one by one: what a segment's owner does then may call the pool.
        for number in numbers:
            del self._segments[number]

    def free_blocks(self, device: int) -> int:
        """Return how many parts are free."""
        return self._figure(device, 3)

    def free(self, device: int) -> int:
        """Return how many bytes are free."""
        return self._figure(device, 1)

    def total(self, device: int) -> int:
        """Return how many bytes the pool holds, free and in use."""
        return self._figure(device, 0)

    def limit(self, device: int) -> int:
        """Return how many bytes it may hold, 0 for no limit."""
        return self._figure(device, 2)

    def _figure(self, device: int, number: int) -> int:
        if device not in self._devices:
            return 0
        drain()
        return int(_native.cache_stat(self._id, device, number))

    def set_limit(self, device: int, nbytes: int) -> None:
        """Choose how many bytes it may hold from now on, 0 for no limit."""
        self._use(device)
        _native.cache_set_limit(self._id, device, nbytes)

    def forget(self) -> None:
        """Drop everything that is free, of every device (change of backend)."""
        for device in sorted(self._devices):
            self.free_all(device)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle or copy a pool: it owns live memory")

    def __del__(self) -> None:
        if getattr(self, "_id", 0) and reap is not None:
            reap.append(self._id)


class _Thread(threading.local):
    """A thread's settings for memory."""

    def __init__(self) -> None:
        self.hooks: dict[str, Any] = {}  # called for every allocation and free
        self.may_wait = True  # False: waits of the host that copies imply are refused
        self.chosen: dict[Choice[Any], Any] = {}


class Choice(Generic[T]):
    """A setting of the process that a thread may override within a context."""

    def __init__(self, value: T) -> None:
        self._value = value

    def get(self) -> T:
        """Return the thread's value, or the process's."""
        chosen: T = thread.chosen.get(self, self._value)
        return chosen

    def set(self, value: T) -> None:
        """Choose for the process; `overridden` must be False."""
        self._value = value

    @property
    def overridden(self) -> bool:
        """True inside `during` on this thread."""
        return self in thread.chosen

    @contextlib.contextmanager
    def during(self, value: T) -> Iterator[None]:
        """Override on this thread until the context ends."""
        chosen = thread.chosen
        before = dict(chosen)
        chosen[self] = value
        try:
            yield
        finally:
            if self in before:
                chosen[self] = before[self]
            else:
                del chosen[self]


thread = _Thread()


#: The pools that are alive.
_pools: WeakSet[Pool] = runtime.keep("memory pools", WeakSet())


def reset() -> None:
    """Empty every pool: before a change of backend, and between the runs of a program."""
    for pool in list(_pools):
        with contextlib.suppress(HalError):
            pool.forget()
