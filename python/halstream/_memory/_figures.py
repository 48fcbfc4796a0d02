"""Statistics of a device's memory and of its stream-ordered pool."""

from __future__ import annotations

import operator
from typing import Any

from .. import _native
from .._core._device import ordinal
from .._core._reap import drain

__all__ = [
    "count_out_of_memory",
    "empty_cache",
    "memory_info",
    "memory_stats",
    "pool_stats",
    "reset_memory_peaks",
    "reset_pool_peaks",
    "set_pool_threshold",
    "trim_pool",
]

# In the order of the extension's numbers.
_POOL = ("used", "reserved", "used_high", "reserved_high", "threshold")
_ALL = (
    "allocated",
    "allocated_peak",
    "active",
    "active_peak",
    "reserved",
    "reserved_peak",
    "out_of_memory",
    "retries",
)


def memory_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of a device's memory."""
    where = ordinal(device)
    drain()
    return int(_native.mem_free_bytes(where)), int(_native.mem_total_bytes(where))


def memory_stats(device: Any = None) -> dict[str, int]:
    """Return the figures of all memory of a device.

    Returns
    -------
    dict of str to int
        ``allocated``, ``active`` and ``reserved`` in bytes, with their peaks; how often
        memory ran out (``out_of_memory``), and how often an allocation waited for memory
        that was freed and still in use (``retries``). Blocks are rounded up to 512 bytes.

    Notes
    -----
    Contract M15.
    """
    where = ordinal(device)
    _settle(where)
    return {name: int(_native.mem_stat(where, i)) for i, name in enumerate(_ALL)}


def pool_stats(device: Any = None) -> dict[str, int]:
    """Return what the stream-ordered pool of a device holds, in bytes.

    Notes
    -----
    Contract M7, M15.
    """
    where = ordinal(device)
    _settle(where)
    return {name: int(_native.pool_stat(where, i)) for i, name in enumerate(_POOL)}


def _settle(where: int) -> None:
    """Free memory that is unreferenced and that no pending work needs."""
    drain()
    _native.mem_settle(where, 0)


def reset_pool_peaks(device: Any = None, *, used: bool = True, reserved: bool = True) -> None:
    """Make the highest figures of a device's pool, or one of them, start from what is held now."""
    where = ordinal(device)
    _settle(where)
    _native.pool_reset_peaks(where, used, reserved)


def reset_memory_peaks(device: Any = None, *, allocated: bool = True, reserved: bool = True) -> None:
    """Make peaks of a device's memory, or one of them, start from what is held now."""
    where = ordinal(device)
    _settle(where)
    _native.mem_reset_peaks(where, allocated, reserved)


def count_out_of_memory(device: Any = None) -> None:
    """Count an allocation that a dialect refused by a limit of its own."""
    _native.mem_count_failure(ordinal(device))


def trim_pool(device: Any = None, least: int = 0) -> None:
    """Give memory that the pool keeps back to the device, down to `least` bytes."""
    where = ordinal(device)
    _settle(where)
    _native.pool_trim(where, operator.index(least))


def empty_cache(device: Any = None) -> None:
    """Wait for memory that was freed and is still in use, and give all that is free back.

    Notes
    -----
    Contract M16. While a gate is closed the wait has a limit of 2 s.
    """
    where = ordinal(device)
    drain()
    _native.mem_empty(where)


def set_pool_threshold(nbytes: int, device: Any = None) -> None:
    """Choose how many bytes the pool keeps when they are free; without, it keeps all."""
    _native.pool_threshold(ordinal(device), operator.index(nbytes))
