"""cupy.cuda.pinned_memory (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _memory
from ..._dialects._adapt import raising
from ..._memory import _pools
from . import _memory_functions as runtime
from ._byte_buffer import ByteBuffer
from ._errors import ERRORS, c_uint, intptr, size_t
from ._errors import not_built as _not_built

__all__ = [
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "PooledPinnedMemory",
    "alloc_pinned_memory",
    "is_memory_pinned",
    "set_pinned_memory_allocator",
]

_pinned = raising(ERRORS)(_memory.PinnedMemory)


class PinnedMemory:
    """cupy.cuda.PinnedMemory (14.2.0): given back when collected, after the work pending on it.

    Difference: the flags are checked and mean nothing here.
    """

    def __init__(self, size: int, flags: int = 0) -> None:
        self.size: int = size_t(size)
        if c_uint(flags) > 7:
            raise ERRORS["invalid_value"](f"flags of pinned memory are 0 to 7, not {flags}")
        self._block: Any = _pinned(self.size) if self.size else None
        self.ptr: int = self._block.ptr if self._block is not None else 0

    def __int__(self) -> int:
        return self.ptr

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle or copy a {type(self).__name__}: it owns live memory")


class PinnedMemoryPointer(ByteBuffer):
    """cupy.cuda.PinnedMemoryPointer (14.2.0): a place in pinned memory, a writable buffer."""

    def __init__(self, mem: Any, offset: int) -> None:
        self._mem = mem
        self._ptr: int = mem.ptr + intptr(offset)

    def _bytes(self) -> tuple[int, int]:
        return self._ptr, max(0, self.size())

    @property
    def ptr(self) -> int:
        """Address."""
        return self._ptr

    @property
    def mem(self) -> Any:
        """The memory it points into; kept alive."""
        return self._mem

    def size(self) -> int:
        """Return how many bytes lie from here to the end of the memory."""
        return int(self._mem.size - (self._ptr - self._mem.ptr))

    def __add__(self, y: int) -> Any:
        return PinnedMemoryPointer(self._mem, self._ptr - self._mem.ptr + intptr(y))

    __radd__ = __add__

    def __iadd__(self, offset: int) -> Any:
        self._ptr += intptr(offset)
        return self

    def __sub__(self, offset: int) -> Any:
        return self + -intptr(offset)

    def __isub__(self, offset: int) -> Any:
        self._ptr -= intptr(offset)
        return self

    def __rsub__(self, value: Any, /) -> Any:
        raise TypeError("bad operand type for unary -: 'cupy.cuda.pinned_memory.PinnedMemoryPointer'")

    def __int__(self) -> int:
        return self._ptr

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle or copy a PinnedMemoryPointer: it refers to live memory")


class PooledPinnedMemory(PinnedMemory):
    """cupy.cuda.pinned_memory.PooledPinnedMemory (14.2.0): goes back to its pool when collected."""

    def __init__(self, block: _pools.Block) -> None:
        self.size: int = block.nbytes
        self.ptr: int = block.ptr
        self._block = block

    def free(self) -> None:
        """Give it back; it is reusable at once, and again does nothing."""
        self.ptr = 0
        self._block.free()


def _malloc(size: int) -> PinnedMemoryPointer:
    made: PinnedMemoryPointer = PinnedMemoryPointer(PinnedMemory(size), 0)
    return made


#: What stands for the host where a pool asks for a device.
_HOST = -1


class PinnedMemoryPool:
    """cupy.cuda.PinnedMemoryPool (14.2.0): freed memory is reusable at once, in no stream's order.

    Sizes are powers of two, 512 at least.
    """

    def __init__(self, allocator: Callable[[int], PinnedMemoryPointer] = _malloc) -> None:
        self._kept = _pools.Pool(allocator, exact=True)
        self._allocator = allocator

    def malloc(self, size: int) -> PinnedMemoryPointer:
        """Take memory."""
        nbytes = size_t(size)
        if not nbytes:
            return self._allocator(0)
        found: PinnedMemoryPointer = PinnedMemoryPointer(PooledPinnedMemory(self._take(nbytes)), 0)
        return found

    def _take(self, nbytes: int) -> _pools.Block:
        size = 1 << (_pools.rounded(nbytes) - 1).bit_length()
        try:
            return self._kept.take(_HOST, 0, size)
        except _pools.Exhausted as exc:
            raise ERRORS["out_of_memory"](str(exc)) from None

    def free_all_blocks(self) -> None:
        """Give the free blocks back to the host."""
        self._kept.free_all(_HOST)

    def n_free_blocks(self) -> int:
        """Return how many blocks are free."""
        return self._kept.free_blocks(_HOST)


default_pool: PinnedMemoryPool = PinnedMemoryPool()
_allocator: _pools.Choice[Any] = _pools.Choice(default_pool.malloc)


def set_pinned_memory_allocator(allocator: Any = None) -> None:
    """cupy.cuda.set_pinned_memory_allocator (14.2.0): None takes memory of the host itself."""
    _allocator.set(_malloc if allocator is None else allocator)


def alloc_pinned_memory(size: int) -> PinnedMemoryPointer:
    """cupy.cuda.alloc_pinned_memory (14.2.0)."""
    found = _allocator.get()(size_t(size))
    if not isinstance(found, PinnedMemoryPointer):
        raise TypeError(f"Cannot convert {type(found).__name__} to cupy.cuda.pinned_memory.PinnedMemoryPointer")
    return found


def is_memory_pinned(ptr: int) -> bool:
    """cupy.cuda.pinned_memory.is_memory_pinned (14.2.0)."""
    return runtime.pointerGetAttributes(ptr).type == 1


__getattr__: Callable[[str], Any] = _not_built(__name__)
