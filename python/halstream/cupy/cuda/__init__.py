"""cupy.cuda (cupy 14.2.0): streams, events, devices, memory, functions of kernels."""

from __future__ import annotations

import contextlib
import importlib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..._errors import HalError
from . import (
    compiler,
    device,
    driver,
    graph,
    memory,
    memory_hook,
    memory_hooks,
    nvtx,
    pinned_memory,
    profiler,
    runtime,
    stream,
)
from ._errors import not_built as _not_built
from .device import Device, get_device_id
from .graph import Graph
from .memory import (
    BaseMemory,
    CFunctionAllocator,
    ManagedMemory,
    Memory,
    MemoryAsync,
    MemoryAsyncPool,
    MemoryPointer,
    MemoryPool,
    PythonFunctionAllocator,
    UnownedMemory,
    alloc,
    get_allocator,
    malloc_async,
    malloc_managed,
    set_allocator,
    using_allocator,
)
from .memory_hook import MemoryHook
from .pinned_memory import (
    PinnedMemory,
    PinnedMemoryPointer,
    PinnedMemoryPool,
    alloc_pinned_memory,
    set_pinned_memory_allocator,
)
from .stream import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time

if TYPE_CHECKING:
    from . import function
    from .function import Function, Module

__all__ = [
    "BaseMemory",
    "CFunctionAllocator",
    "Device",
    "Event",
    "ExternalStream",
    "Function",
    "Graph",
    "ManagedMemory",
    "Memory",
    "MemoryAsync",
    "MemoryAsyncPool",
    "MemoryHook",
    "MemoryPointer",
    "MemoryPool",
    "Module",
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "PythonFunctionAllocator",
    "Stream",
    "UnownedMemory",
    "alloc",
    "alloc_pinned_memory",
    "compiler",
    "device",
    "driver",
    "function",
    "get_allocator",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "get_local_runtime_version",
    "graph",
    "is_available",
    "malloc_async",
    "malloc_managed",
    "memory",
    "memory_hook",
    "memory_hooks",
    "nvtx",
    "pinned_memory",
    "profile",
    "profiler",
    "runtime",
    "set_allocator",
    "set_pinned_memory_allocator",
    "stream",
    "using_allocator",
]


def is_available() -> bool:
    """cupy.cuda.is_available (14.2.0): True with host devices, too."""
    try:
        return runtime.getDeviceCount() > 0
    except HalError:
        return False


def get_local_runtime_version() -> int:
    """cupy.cuda.get_local_runtime_version (14.2.0): as ``runtime.runtimeGetVersion()``."""
    return runtime.runtimeGetVersion()


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """cupy.cuda.profile (14.2.0); deprecated there in favour of ``cupyx.profiler.profile``."""
    warnings.warn("cupy.cuda.profile is deprecated. Use cupyx.profiler.profile instead.", stacklevel=3)
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()


_getattr: Callable[[str], Any] = _not_built(__name__)


def __getattr__(name: str) -> Any:
    if name not in ("Function", "Module", "function"):
        return _getattr(name)
    # Kernels load NumPy, which programs of streams and memory alone need not.
    module = importlib.import_module(".function", __name__)
    found = globals()[name] = module if name == "function" else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
