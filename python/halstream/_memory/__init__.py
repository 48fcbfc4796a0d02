"""Memory of devices and of the host: blocks, copies, figures, exchange."""

from __future__ import annotations

from .._core._lookup import DEVICE, PAGEABLE, PINNED, address_of, kind_of, lookup, register, unregister
from ._blocks import DeviceMemory, Memory, PinnedMemory, PooledMemory
from ._copies import (
    ASYNC,
    BLOCKING,
    STAGED,
    copy,
    copy_as,
    copy_blocking,
    copy_rows,
    copy_rows_as,
    copy_rows_blocking,
    current,
    fill,
    fill_blocking,
)
from ._figures import (
    count_out_of_memory,
    empty_cache,
    memory_info,
    memory_stats,
    pool_stats,
    reset_memory_peaks,
    reset_pool_peaks,
    set_pool_threshold,
    trim_pool,
)

__all__ = [
    "ASYNC",
    "BLOCKING",
    "DEVICE",
    "PAGEABLE",
    "PINNED",
    "STAGED",
    "DeviceMemory",
    "Memory",
    "PinnedMemory",
    "PooledMemory",
    "address_of",
    "copy",
    "copy_as",
    "copy_blocking",
    "copy_rows",
    "copy_rows_as",
    "copy_rows_blocking",
    "count_out_of_memory",
    "current",
    "empty_cache",
    "fill",
    "fill_blocking",
    "kind_of",
    "lookup",
    "memory_info",
    "memory_stats",
    "pool_stats",
    "register",
    "reset_memory_peaks",
    "reset_pool_peaks",
    "set_pool_threshold",
    "trim_pool",
    "unregister",
]
