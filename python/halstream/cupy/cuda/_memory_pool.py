"""MemoryPool and its exceptions."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ... import _native
from ..._core import _current, _hostfunc
from ..._core._reap import reap
from ..._errors import OutOfMemoryError as _CoreOutOfMemory
from ..._memory import _pools
from ._blocks import BaseMemory, Memory, concrete, stream_of
from ._captured import captures
from ._errors import size_t
from ._limits import limit, parse
from ._pointer import MemoryPointer, here
from .memory_hook import call_hooks

Allocator = Callable[[int], MemoryPointer]
_block_address = _native.raw("block_address")
_strict_reuse = _native.raw("mem_strict_reuse")


class OutOfMemoryError(MemoryError):
    """cupy.cuda.memory.OutOfMemoryError (14.2.0); what pools raise is the core's class, too."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        self._size, self._total, self._limit = size, total, limit
        set_to = f", limit set to: {limit:,} bytes" if limit else ""
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes{set_to}).")

    def __reduce__(self) -> Any:
        return type(self), (self._size, self._total, self._limit)


class Exhausted(OutOfMemoryError, _CoreOutOfMemory):
    """What a pool without room raises."""

    code, operation = 0, "allocate"

    def __reduce__(self) -> Any:
        # By a function: the name of this class is that of the public one.
        return _exhausted, (self._size, self._total, self._limit)


def _exhausted(size: int, total: int, limit: int) -> Exhausted:
    """Make the error again from its pickle."""
    return Exhausted(size, total, limit)


Exhausted.__name__ = Exhausted.__qualname__ = "OutOfMemoryError"


def malloc(size: int) -> MemoryPointer:
    """Take memory of the device itself."""
    return MemoryPointer(Memory(size), 0)


class PooledMemory(BaseMemory):
    """cupy.cuda.memory.PooledMemory (14.2.0): goes back to its pool when collected."""

    __slots__ = ("_ident", "_key")

    _block: Any
    _ident: int
    _key: int
    ptr: int
    size: int
    device_id: int

    def __init__(self, chunk: Any, pool: Any) -> None:
        """Raise: only a pool has memory to give."""
        raise TypeError("a PooledMemory is made by a MemoryPool; call its malloc(size)")

    @classmethod
    def _taken(cls, pool: MemoryPool, ident: int, size: int, device_id: int, key: int) -> PooledMemory:
        """Return what a pool has taken for a stream, by the ids of the block and the stream."""
        self = object.__new__(cls)
        # All attributes of the base class: its own constructor costs as much as these.
        self._block = pool  # whose segments are the memory
        self._ident = ident
        self._key = key  # the stream it was taken for
        self.ptr = _block_address(ident)
        self.size = size
        self.device_id = device_id
        return self

    def free(self) -> None:
        """Give it back to the arena it was taken from; again does nothing."""
        pool, self._block = self._block, None
        if pool is not None:
            with self._hooked_free():
                _native.reap(self._ident)

    def _waits_for(self, stream: Any) -> bool:
        # What is given back is used again in the order of its stream only, and a segment
        # of the runtime's own memory is kept for the work that is pending on it.
        pool = self._block
        if pool is None or not pool._owned:
            return False
        # A graph works on it in every launch, so that its functions are what keeps it.
        if captures(stream):
            return False
        # Where the program is checked, functions on other streams keep no memory, as kernels of cupy do not.
        return bool(self._key == stream._id) or bool(_strict_reuse())

    def __del__(self) -> None:
        if getattr(self, "_block", None) is None or reap is None:
            return
        if not _pools.thread.hooks:
            reap.append(self._ident)
            return
        self._block = None
        with self._hooked_free():
            reap.append(self._ident)

    @contextlib.contextmanager
    def _hooked_free(self) -> Iterator[None]:
        given = {"device_id": self.device_id, "mem_size": self.size, "mem_ptr": self.ptr}
        self.ptr = 0
        call_hooks("free_preprocess", **given, pmem_id=id(self))
        yield
        call_hooks("free_postprocess", **given, pmem_id=id(self))


class MemoryPool:
    """cupy.cuda.MemoryPool (14.2.0): freed memory is kept for the stream it was taken for."""

    def __init__(self, allocator: Allocator | None = None) -> None:
        self._allocator = malloc if allocator is None else allocator
        self._owned = allocator is None  # the memory is the runtime's own, which waits for pending work
        self._arenas = _pools.Pool(self._alloc)
        # Devices whose limit is set; the others still have that of the environment.
        self._limited: set[int] = set()

    def _alloc(self, size: int) -> MemoryPointer:
        details = {"device_id": _current.current_device(), "mem_size": size}
        call_hooks("alloc_preprocess", **details)
        ptr = 0
        try:
            block = self._allocator(size)
            ptr = block.ptr
        finally:
            call_hooks("alloc_postprocess", **details, mem_ptr=ptr)
        return block

    def _take(self, device: int, stream: int, nbytes: int) -> PooledMemory:
        if device not in self._limited:
            self._limit_from_environment(device)
        try:
            memory = PooledMemory._taken(self, self._arenas.take_id(device, stream, nbytes), nbytes, device, stream)
        except _pools.Exhausted as exc:
            raise Exhausted(exc.size, exc.total, exc.limit) from None
        if _hostfunc.keep is not None:  # a sanitizer is on
            _native.cache_reuse(stream, memory.ptr, nbytes)
        return memory

    def malloc(self, size: int) -> MemoryPointer:
        """Take memory for work on the current stream."""
        wanted = size_t(size)
        if not wanted:
            return malloc(0)
        device, stream = here()
        nbytes = _pools.rounded(wanted)
        if not _pools.thread.hooks:
            return MemoryPointer(self._take(device, stream, nbytes), 0)
        details = {"device_id": device, "size": wanted, "mem_size": nbytes}
        call_hooks("malloc_preprocess", **details)
        ptr = ident = 0
        try:
            memory = self._take(device, stream, nbytes)
            ptr, ident = memory.ptr, id(memory)
        finally:
            call_hooks("malloc_postprocess", **details, mem_ptr=ptr, pmem_id=ident)
        return MemoryPointer(memory, 0)

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give free blocks back to the current device; None means those of every stream."""
        ident = None if stream is None else concrete(stream_of(stream))._id
        self._arenas.free_all(_current.current_device(), ident)

    def free_all_free(self) -> None:
        """As `free_all_blocks`; deprecated there."""
        from warnings import warn

        warn(
            "free_all_free is deprecated. Use free_all_blocks instead.",
            DeprecationWarning,
            stacklevel=2,
        )
        self.free_all_blocks()

    def n_free_blocks(self) -> int:
        """Return how many free blocks the current device has."""
        return self._arenas.free_blocks(_current.current_device())

    def used_bytes(self) -> int:
        """Return how many bytes of the current device are in use."""
        return self.total_bytes() - self.free_bytes()

    def free_bytes(self) -> int:
        """Return how many bytes of the current device are free."""
        return self._arenas.free(_current.current_device())

    def total_bytes(self) -> int:
        """Return how many bytes of the current device the pool holds."""
        return self._arenas.total(_current.current_device())

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Limit the bytes held of the current device; 0 or nothing means no limit."""
        device = _current.current_device()
        self._arenas.set_limit(device, limit(size, fraction))
        self._limited.add(device)

    def get_limit(self) -> int:
        """Return the limit, 0 for none; at first that of CUPY_GPU_MEMORY_LIMIT."""
        device = _current.current_device()
        if device not in self._limited:
            self._limit_from_environment(device)
        return self._arenas.limit(device)

    def _limit_from_environment(self, device: int) -> None:
        self._arenas.set_limit(device, limit(**parse()))
        self._limited.add(device)


for _name in ("Exhausted", "MemoryPool", "OutOfMemoryError", "PooledMemory"):
    globals()[_name].__module__ = "halstream.cupy.cuda.memory"
