"""Pools that keep freed memory for later, and what a memory layer remembers per thread.

A pool of a device has an arena for each stream: what was taken for a stream and
given back is handed out again for that stream only, at once and without an
event, since all its users are in that stream's order. Finalizers may run
anywhere, so they only append to a list; the next ordinary call of the pool puts
what is in it back.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from .._errors import OutOfMemoryError
from .._runtime import runtime

__all__ = ["UNIT", "Arenas", "Choice", "Chunk", "Exhausted", "Sizes", "reset", "thread"]

T = TypeVar("T")

#: Pools give out multiples of so many bytes.
UNIT = 512


def rounded(nbytes: int) -> int:
    """Return the next multiple of `UNIT`."""
    return (nbytes + UNIT - 1) // UNIT * UNIT


class Exhausted(OutOfMemoryError):
    """A pool has no room: `size` bytes were asked for, it holds `total`, `limit` 0 is none."""

    def __init__(self, size: int, total: int, limit: int) -> None:
        super().__init__(f"no room for {size} bytes: the pool holds {total}, its limit is {limit}")
        self.size = size
        self.total = total
        self.limit = limit

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.size, self.total, self.limit), self.__dict__


class Chunk:
    """A part of a block of memory.

    Attributes
    ----------
    ptr : int
        Address of its first byte.
    nbytes : int
        Size in bytes, a multiple of `UNIT`.
    """

    __slots__ = ("after", "before", "block", "free", "key", "nbytes", "ptr")

    def __init__(self, block: Any, ptr: int, nbytes: int, key: tuple[int, int]) -> None:
        self.block = block
        self.ptr = ptr
        self.nbytes = nbytes
        self.key = key  # device and stream
        self.free = False
        self.before: Chunk | None = None  # neighbours in the block
        self.after: Chunk | None = None

    def split(self, nbytes: int) -> Chunk | None:
        """Keep the first bytes; return the rest, None if there is none."""
        if self.nbytes == nbytes:
            return None
        rest = Chunk(self.block, self.ptr + nbytes, self.nbytes - nbytes, self.key)
        rest.before, rest.after = self, self.after
        if self.after is not None:
            self.after.before = rest
        self.after, self.nbytes = rest, nbytes
        return rest

    def absorb(self) -> None:
        """Take in the neighbour that comes after."""
        other = self.after
        assert other is not None
        self.nbytes += other.nbytes
        self.after = other.after
        if other.after is not None:
            other.after.before = self


class _Owned:
    """The blocks of a pool, free and in use.

    The pool refers to every block, so that none is part of a reference cycle of
    the program. Otherwise one pass of the garbage collector would run the
    finalizer that returns a part of the block to the pool and the one that gives
    the block back to the device.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, Any] = {}

    def add(self, block: Any) -> Any:
        self._blocks[id(block)] = block
        return block

    def pop(self, block: Any) -> Any:
        return self._blocks.pop(id(block))


class _Arena:
    """Free chunks of a stream by size, the one freed last first."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.bins: dict[int, dict[Chunk, None]] = {}

    def add(self, chunk: Chunk) -> None:
        chunk.free = True
        found = self.bins.get(chunk.nbytes)
        if found is None:
            found = self.bins[chunk.nbytes] = {}
            insort(self.sizes, chunk.nbytes)
        found[chunk] = None

    def remove(self, chunk: Chunk) -> None:
        chunk.free = False
        found = self.bins[chunk.nbytes]
        del found[chunk]
        if not found:
            del self.bins[chunk.nbytes]
            del self.sizes[bisect_left(self.sizes, chunk.nbytes)]

    def best(self, nbytes: int) -> Chunk | None:
        place = bisect_left(self.sizes, nbytes)
        if place == len(self.sizes):
            return None
        chunk = next(reversed(self.bins[self.sizes[place]]))
        self.remove(chunk)
        return chunk

    def chunks(self) -> list[Chunk]:
        return [chunk for found in self.bins.values() for chunk in found]


class Arenas:
    """A caching pool over all devices, with an arena for each device and stream.

    Parameters
    ----------
    allocate : callable
        From a size in bytes to an object with `ptr`; the memory is given back
        when nothing refers to the object any more.
    """

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self._allocate = allocate
        self._lock = threading.Lock()
        self._arenas: dict[tuple[int, int], _Arena] = {}
        self._total: dict[int, int] = {}
        self._limits: dict[int, int] = {}
        self._owned = _Owned()
        self._returned: deque[Chunk] = deque()
        _all.add(self)

    def take(self, device: int, stream: int, nbytes: int) -> Chunk:
        """Return a chunk of `nbytes`, a multiple of `UNIT`, for a stream's work.

        Raises
        ------
        Exhausted
            If the device or the limit has no room, also after everything that
            is free was given back to the device.
        """
        key = device, stream
        for attempt in range(3):
            chunk = self._reuse(key, nbytes)
            if chunk is not None:
                return chunk
            with contextlib.suppress(OutOfMemoryError):
                return self._grow(key, nbytes)
            if attempt == 1:
                gc.collect()
            self.free_all(device)
        raise Exhausted(nbytes, self.total(device), self.limit(device))

    def give(self, chunk: Chunk) -> None:
        """Give a chunk back; callable from a finalizer."""
        self._returned.append(chunk)

    def free_all(self, device: int, stream: int | None = None) -> None:
        """Give blocks that are wholly free back to the device; None means of every stream."""
        dead = []
        with self._lock:
            self._collect()
            for key, arena in self._of(device):
                if stream is not None and key[1] != stream:
                    continue
                for chunk in arena.chunks():
                    if chunk.before is None and chunk.after is None:
                        arena.remove(chunk)
                        self._total[device] -= chunk.nbytes
                        dead.append(self._owned.pop(chunk.block))
                if not arena.sizes:
                    del self._arenas[key]
        dead.clear()  # gives the memory back, without the lock

    def free_chunks(self, device: int) -> list[Chunk]:
        """Return the free chunks of a device."""
        with self._lock:
            self._collect()
            return [chunk for _, arena in self._of(device) for chunk in arena.chunks()]

    def free(self, device: int) -> int:
        """Return how many bytes are free."""
        return sum(chunk.nbytes for chunk in self.free_chunks(device))

    def total(self, device: int) -> int:
        """Return how many bytes the pool holds, free and in use."""
        with self._lock:
            self._collect()
            return self._total.get(device, 0)

    def limit(self, device: int) -> int:
        """Return how many bytes it may hold, 0 for no limit."""
        return self._limits.get(device, 0)

    def set_limit(self, device: int, nbytes: int) -> None:
        """Choose how many bytes it may hold from now on, 0 for no limit."""
        self._limits[device] = nbytes

    def forget(self) -> None:
        """Drop everything that is free (change of backend)."""
        for device in list(self._total):
            self.free_all(device)

    def _of(self, device: int) -> list[tuple[tuple[int, int], _Arena]]:
        return [item for item in self._arenas.items() if item[0][0] == device]

    def _reuse(self, key: tuple[int, int], nbytes: int) -> Chunk | None:
        with self._lock:
            if self._returned:
                self._collect()
            arena = self._arenas.get(key)
            chunk = arena.best(nbytes) if arena is not None else None
            if chunk is not None and arena is not None:
                rest = chunk.split(nbytes)
                if rest is not None:
                    arena.add(rest)
            return chunk

    def _grow(self, key: tuple[int, int], nbytes: int) -> Chunk:
        device = key[0]
        with self._lock:
            total, limit = self._total.get(device, 0), self._limits.get(device, 0)
            if limit and total + nbytes > limit:
                raise Exhausted(nbytes, total, limit)
            self._total[device] = total + nbytes
        try:
            block = self._allocate(nbytes)
        except BaseException:
            with self._lock:
                self._total[device] -= nbytes
            raise
        return Chunk(self._owned.add(block), int(block.ptr), nbytes, key)

    def _collect(self) -> None:
        """Put back what was given; under the lock."""
        while self._returned:
            chunk = self._returned.popleft()
            arena = self._arenas.setdefault(chunk.key, _Arena())
            if chunk.after is not None and chunk.after.free:
                arena.remove(chunk.after)
                chunk.absorb()
            before = chunk.before
            if before is not None and before.free:
                arena.remove(before)
                before.absorb()
                chunk = before
            arena.add(chunk)


class Sizes:
    """A pool of blocks by size, for host memory: what is given back is reusable at once."""

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self._allocate = allocate
        self._lock = threading.Lock()
        self._owned = _Owned()
        self._kept: dict[int, list[Any]] = {}
        self._returned: deque[tuple[int, Any]] = deque()
        _all.add(self)

    def take(self, nbytes: int) -> tuple[int, Any]:
        """Return a block and its size: a multiple of `UNIT` that is a power of two."""
        size = 1 << (rounded(nbytes) - 1).bit_length()
        with self._lock:
            self._collect()
            kept = self._kept.get(size)
            if kept:
                return size, kept.pop()
        try:
            block = self._allocate(size)
        except OutOfMemoryError:
            self.forget()
            block = self._allocate(size)
        return size, self._owned.add(block)

    def give(self, size: int, block: Any) -> None:
        """Give a block back; callable from a finalizer."""
        self._returned.append((size, block))

    def count(self) -> int:
        """Return how many blocks are free."""
        with self._lock:
            self._collect()
            return sum(map(len, self._kept.values()))

    def forget(self) -> None:
        """Drop the free blocks."""
        with self._lock:
            self._collect()
            dead = [self._owned.pop(block) for kept in self._kept.values() for block in kept]
            self._kept.clear()
        dead.clear()  # gives the memory back, without the lock

    def _collect(self) -> None:
        while self._returned:
            size, block = self._returned.popleft()
            self._kept.setdefault(size, []).append(block)


class _Thread(threading.local):
    """What a thread chose for its memory."""

    def __init__(self) -> None:
        self.hooks: dict[str, Any] = {}  # told of every allocation and free
        self.may_wait = True  # False: waits of the host that copies imply are refused
        self.chosen: dict[Choice[Any], Any] = {}


class Choice(Generic[T]):
    """A setting of the process that a thread may override for a while."""

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
_all: WeakSet[Arenas | Sizes] = runtime.keep("memory pools", WeakSet())


def reset() -> None:
    """Empty every pool (change of backend)."""
    from . import _rawmem

    _rawmem.give_back()
    for pool in list(_all):
        pool.forget()
