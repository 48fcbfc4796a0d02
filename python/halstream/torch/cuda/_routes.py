"""Memory that belongs to a pool of the program's: which allocations it gets, and who still uses it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from ... import _native
from ..._core._stream import Stream as CoreStream
from ..._memory._blocks import DeviceMemory, checked_size
from ..._memory._pools import Block, Pool, rounded
from ..._runtime import runtime

__all__ = [
    "PoolMemory",
    "allocated",
    "capture_began",
    "capture_ended",
    "freed",
    "given_again",
    "lent_on_oom",
    "pool_with_id",
    "routed",
    "routed_of",
]

_RELAXED = 2


class PoolMemory:
    """What a pool of the program's holds: blocks that only work of their own stream gets again.

    Attributes
    ----------
    users : int
        Those that keep it: the program's object, contexts, and graphs that were captured into it.
    """

    def __init__(self, ident: tuple[int, int], use_on_oom: bool, no_split: bool) -> None:
        self.ident = ident
        self.use_on_oom = use_on_oom
        self.users = 0
        self._lock = threading.Lock()
        self._devices: dict[int, Pool] = {}
        self._exact = no_split
        _all[ident] = self

    def use(self) -> None:
        """Count one more user."""
        with self._lock:
            self.users += 1

    def leave(self) -> None:
        """Count one user less; after the last one what is free goes back to the device."""
        with self._lock:
            self.users -= 1
            last = self.users == 0
        if last:
            for device in list(self._devices):
                self.trim(device)

    def trim(self, device: int) -> None:
        """Give what is free back to the device if nobody uses the pool any more."""
        if self.users == 0 and device in self._devices:
            self._devices[device].free_all(device)

    def take(self, stream: CoreStream, nbytes: int) -> Block:
        """Return a block for work of a stream, also while that captures."""
        device = stream._ordinal
        with self._lock:
            pool = self._devices.get(device)
            if pool is None:
                pool = self._devices[device] = Pool(_Supply(device), self._exact)
        # The memory outlives the capture, so that it is nothing that a capture would have to refuse.
        before = _native.capture_mode_exchange(_RELAXED)
        try:
            return pool.take(device, stream._id, rounded(checked_size(nbytes)))
        finally:
            _native.capture_mode_exchange(before)

    def take_free(self, stream: CoreStream, nbytes: int) -> Block | None:
        """Return a block of what is free for a stream, None if there is none."""
        pool = self._devices.get(stream._ordinal)
        ident = pool.take_free_id(stream._ordinal, stream._id, rounded(nbytes)) if pool is not None else 0
        return Block(pool, ident, rounded(nbytes), stream._ordinal) if pool is not None and ident else None


class _Supply:
    """Makes the memory of a pool on one device; it does not know the pool."""

    def __init__(self, device: int) -> None:
        self._device = device

    def __call__(self, nbytes: int) -> DeviceMemory:
        return DeviceMemory(nbytes, self._device)


class _Routes(threading.local):
    """The pools that allocations of a thread come from, with their devices, the latest one last."""

    def __init__(self) -> None:
        self.stack: list[tuple[int, PoolMemory]] = []


_routes = _Routes()
#: Pools by their numbers, for as long as somebody keeps them.
_all: weakref.WeakValueDictionary[tuple[int, int], PoolMemory] = runtime.keep(
    "torch's pools of memory", weakref.WeakValueDictionary(), clear=True
)
#: The pools of captures, by the numbers of the captures.
_captures: dict[int, PoolMemory] = runtime.keep("the pools that torch's captures allocate from", {}, clear=True)
#: What pools have given out, by its address.
_blocks: dict[int, tuple[PoolMemory, Block]] = runtime.keep("what torch's pools have given out", {}, clear=True)


def pool_with_id(ident: tuple[int, int]) -> PoolMemory | None:
    """Return the pool with a number, None for a number that only names a pool."""
    return _all.get(ident)


@contextmanager
def routed(pool: PoolMemory, device: int) -> Iterator[None]:
    """Have what this thread allocates on a device come from a pool."""
    stack, entry = _routes.stack, (device, pool)
    pool.use()
    stack.append(entry)
    try:
        yield
    finally:
        for i in reversed(range(len(stack))):
            if stack[i] is entry:
                del stack[i]
                break
        pool.leave()


def capture_began(number: int, pool: PoolMemory) -> None:
    """Have what is allocated for the streams of a capture come from a pool."""
    _captures[number] = pool


def capture_ended(number: int) -> None:
    """End what `capture_began` has begun."""
    _captures.pop(number, None)


def routed_of(stream: CoreStream) -> PoolMemory | None:
    """Return the pool that an allocation for a stream comes from: the context's, else the capture's."""
    for device, pool in reversed(_routes.stack):
        if device == stream._ordinal:
            return pool
    return _captures.get(_native.stream_capture_id(stream._id)) if _captures else None


def allocated(pool: PoolMemory, stream: CoreStream, nbytes: int) -> int:
    """Return the address of memory of a pool, to be given to `freed`.

    Raises
    ------
    OutOfMemoryError
        If the device has no room.
    """
    return _given(pool, pool.take(stream, nbytes))


def given_again(pool: PoolMemory, stream: CoreStream, nbytes: int) -> int:
    """Return the address of what is free in a pool for a stream, to be given to `freed`; 0 if there is none."""
    block = pool.take_free(stream, nbytes)
    return _given(pool, block) if block is not None else 0


def lent_on_oom(stream: CoreStream, nbytes: int) -> int:
    """Return memory that is free in a pool which may be used where the device has no room, 0 for none."""
    for pool in list(_all.values()):
        address = given_again(pool, stream, nbytes) if pool.use_on_oom else 0
        if address:
            return address
    return 0


def _given(pool: PoolMemory, block: Block) -> int:
    _blocks[block.ptr] = (pool, block)
    return block.ptr


def freed(address: int) -> bool:
    """Give memory of a pool back to it, and return whether the address is that of such memory."""
    pool, block = _blocks.pop(address, (None, None))
    if pool is None or block is None:
        return False
    block.free()
    pool.trim(block.device)
    return True
