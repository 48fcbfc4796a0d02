"""torch.cuda (2.15): streams, events, devices and memory. Tensors, kernels, graphs and pools are the real torch's.

Here `is_available` is True on every machine, for the host backend needs no
device; `halstream.backend` returns the backend of the streams.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._errors import AcceleratorError, OutOfMemoryError
from .._errors import not_built as _not_built
from . import memory, nvtx, random, streams
from ._devices import (
    _CudaDeviceProperties as _CudaDeviceProperties,
)
from ._devices import (
    _is_in_bad_fork as _is_in_bad_fork,
)
from ._devices import (
    _lazy_init as _lazy_init,
)
from ._devices import (
    _sleep as _sleep,
)
from ._devices import (
    can_device_access_peer,
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_current_stream_capturing,
    is_initialized,
    is_tf32_supported,
    synchronize,
)
from ._guards import (
    StreamContext,
    current_device,
    current_stream,
    default_stream,
    device,
    device_of,
    get_stream_from_external,
    set_device,
    set_stream,
    stream,
)
from ._guards import (
    _DeviceGuard as _DeviceGuard,
)
from ._guards import (
    _set_stream_by_id as _set_stream_by_id,
)
from ._runtime import (
    CudaError,
    DeferredCudaCallError,
    check_error,
    cudart,
    cudaStatus,
)
from .memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .random import initial_seed, manual_seed, manual_seed_all, seed, seed_all
from .streams import Event, ExternalStream, Stream

__all__ = [
    "AcceleratorError",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "check_error",
    "cudaStatus",
    "cudart",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_stream_from_external",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "nvtx",
    "random",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]

has_half = True
#: MAGMA, a library of linear algebra, is not used here.
has_magma = False

__getattr__: Callable[[str], Any] = _not_built(__name__)
