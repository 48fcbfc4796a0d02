"""cupy.cuda.memory (cupy 14.2.0): blocks, pointers, allocators and pools."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..._memory import _pools
from ._async_pool import MemoryAsyncPool
from ._blocks import BaseMemory, ManagedMemory, Memory, MemoryAsync, UnownedMemory
from ._blocks import stream_of as _stream_of
from ._errors import not_built as _not_built
from ._errors import size_t as _size_t
from ._function_allocators import CFunctionAllocator, PythonFunctionAllocator
from ._limits import parse as _parse_limit_string  # noqa: F401
from ._memory_pool import MemoryPool, OutOfMemoryError, PooledMemory
from ._memory_pool import malloc as _malloc
from ._pointer import MemoryPointer

__all__ = [
    "BaseMemory",
    "CFunctionAllocator",
    "ManagedMemory",
    "Memory",
    "MemoryAsync",
    "MemoryAsyncPool",
    "MemoryPointer",
    "MemoryPool",
    "OutOfMemoryError",
    "PooledMemory",
    "PythonFunctionAllocator",
    "UnownedMemory",
    "alloc",
    "get_allocator",
    "malloc_async",
    "malloc_managed",
    "set_allocator",
]


def malloc_managed(size: int) -> MemoryPointer:
    """cupy.cuda.malloc_managed (14.2.0)."""
    return MemoryPointer(ManagedMemory(size), 0)


def malloc_async(size: int) -> MemoryPointer:
    """cupy.cuda.malloc_async (14.2.0): on the current stream."""
    return MemoryPointer(MemoryAsync(size, _stream_of(None)), 0)


default_pool: MemoryPool = MemoryPool()
_allocator: _pools.Choice[Any] = _pools.Choice(default_pool.malloc)


def alloc(size: int) -> MemoryPointer:
    """cupy.cuda.alloc (14.2.0): by the current allocator."""
    nbytes = _size_t(size)
    found = _allocator.get()(nbytes)
    if not isinstance(found, MemoryPointer):
        raise TypeError(f"Cannot convert {type(found).__name__} to cupy.cuda.memory.MemoryPointer")
    return found


def get_allocator() -> Any:
    """cupy.cuda.get_allocator (14.2.0)."""
    return _allocator.get()


def set_allocator(allocator: Any = None) -> None:
    """cupy.cuda.set_allocator (14.2.0): None takes memory of the device itself."""
    if _allocator.overridden:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    _allocator.set(_malloc if allocator is None else allocator)


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    """cupy.cuda.using_allocator (14.2.0): another allocator on this thread for a while."""
    with _allocator.during(_malloc if allocator is None else allocator):
        yield


__getattr__: Callable[[str], Any] = _not_built(__name__)
