"""Allocators made of functions, of Python or of C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from sys import is_finalizing as _ending

from ..._core import _current
from ._blocks import BaseMemory
from ._errors import intptr, size_t
from ._pointer import MemoryPointer

Malloc = Callable[[int, int], "int | None"]
Free = Callable[[int, int], object]


class FunctionMemory(BaseMemory):
    """Memory that one function allocated, and another one frees when it is collected."""

    __slots__ = ("_owner",)

    def __init__(self, size: int, malloc: Malloc, free: Free, owner: object = None) -> None:
        super().__init__()
        self._block, self._owner = free, owner
        self.size, self.device_id = size, _current.current_device()
        self.ptr = intptr(malloc(size, self.device_id) or 0)

    def __del__(self) -> None:
        # At the end of the process its memory is freed anyway.
        if getattr(self, "ptr", 0) and not _ending():
            self._block(self.ptr, self.device_id)


class PythonFunctionAllocator:
    """cupy.cuda.PythonFunctionAllocator (14.2.0): memory that two functions allocate and free."""

    def __init__(self, malloc_func: Malloc, free_func: Free) -> None:
        self._malloc, self._free = malloc_func, free_func

    def malloc(self, size: int) -> MemoryPointer:
        """Call ``malloc_func(size, device)``; ``free_func(ptr, device)`` when collected."""
        return MemoryPointer(FunctionMemory(size_t(size), self._malloc, self._free), 0)


class CFunctionAllocator:
    """cupy.cuda.CFunctionAllocator (14.2.0): the same with C functions, given by address.

    They are ``void *malloc(void *param, size_t size, int device)`` and ``void
    free(void *param, void *ptr, int device)``; `owner` is kept alive.
    """

    def __init__(self, param: int, malloc_func: int, free_func: int, owner: object) -> None:
        first, give, take = intptr(param), intptr(malloc_func), intptr(free_func)
        void = ctypes.c_void_p
        malloc = ctypes.CFUNCTYPE(void, void, ctypes.c_size_t, ctypes.c_int)(give)
        free = ctypes.CFUNCTYPE(None, void, void, ctypes.c_int)(take)
        self._malloc: Malloc = lambda size, device: malloc(first, size, device)
        self._free: Free = lambda ptr, device: free(first, ptr, device)
        self._owner = owner

    def malloc(self, size: int) -> MemoryPointer:
        """Call the one function now, the other one when the memory is collected."""
        memory = FunctionMemory(size_t(size), self._malloc, self._free, self._owner)
        return MemoryPointer(memory, 0)


PythonFunctionAllocator.__module__ = CFunctionAllocator.__module__ = "halstream.cupy.cuda.memory"
