"""torch.cuda.memory (2.15): the allocator and its figures.

The allocator is the runtime's stream-ordered pool. In it are what
`caching_allocator_alloc` gives, and arrays that are made on a stream
(``halstream.empty(..., stream=...)``); memory without a stream is not.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

from ... import _core as core
from ... import _memory
from ..._core import _interop
from ..._memory import _addresses, _held
from .. import _observe
from .._device import count, device_index, existing
from .._errors import dialect_errors
from .._missing import names as _names
from ._guards import current_stream
from .streams import Stream

__all__ = [
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "empty_cache",
    "get_allocator_backend",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
]


def _ordinal(device: Any) -> int:
    return existing(device_index(device, optional=True))


@dialect_errors
def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """torch.cuda.caching_allocator_alloc (2.15): an address; without `stream` the current one's."""
    if stream is None:
        stream = current_stream(device)
    elif isinstance(stream, int):
        stream = Stream.from_handle(stream, _ordinal(device))
    elif not isinstance(stream, core.Stream):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` "
            "representing a pointer to a existing stream"
        )
    if size == 0:
        return 0
    address = _addresses.take(size, stream)
    _observe.tell("memory_allocation", address)
    return address


@dialect_errors
def caching_allocator_delete(mem_ptr: int) -> None:
    """torch.cuda.caching_allocator_delete (2.15): in the order of the memory's stream."""
    if mem_ptr:
        _addresses.give_back(mem_ptr)
        _observe.tell("memory_deallocation", mem_ptr)


@dialect_errors
def empty_cache() -> None:
    """torch.cuda.empty_cache (2.15): what streams are not past yet stays, but for `record_stream`."""
    if _interop.initialized():
        core.drain()
        _held.recover()
        for ordinal in range(count()):
            _memory.trim_pool(ordinal)


@dialect_errors
def mem_get_info(device: Any = None) -> tuple[int, int]:
    """torch.cuda.mem_get_info (2.15): free and total bytes."""
    return _memory.memory_info(_ordinal(device))


@dialect_errors
def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """torch.cuda.memory_stats_as_nested_dict (2.15): bytes, and how often memory ran out.

    Active are also bytes that wait for other streams. Blocks are not counted.
    """
    if not _interop.initialized():
        return {}
    where = _ordinal(device)
    pool, counts = _memory.pool_stats(where), _held.counts[where]
    allocated, most = pool["used"] - _held.held_bytes(where), pool["used_high"]
    return {
        "active_bytes": {"all": {"current": pool["used"], "peak": most}},
        "allocated_bytes": {"all": {"current": allocated, "peak": most}},
        "num_alloc_retries": counts.retries,
        "num_ooms": counts.out_of_memory,
        "num_sync_all_streams": counts.retries,
        "reserved_bytes": {"all": {"current": pool["reserved"], "peak": pool["reserved_high"]}},
    }


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """torch.cuda.memory_stats (2.15): the nested figures under dotted names."""
    flat: OrderedDict[str, Any] = OrderedDict()
    for name, value in sorted(memory_stats_as_nested_dict(device).items()):
        if isinstance(value, dict):
            flat.update((f"{name}.all.{key}", part) for key, part in value["all"].items())
        else:
            flat[name] = value
    return flat


def _figure(device: Any, name: str) -> int:
    return int(memory_stats(device).get(name, 0))


def memory_allocated(device: Any = None) -> int:
    """torch.cuda.memory_allocated (2.15): sizes are rounded up to 512 bytes and more."""
    return _figure(device, "allocated_bytes.all.current")


def max_memory_allocated(device: Any = None) -> int:
    """torch.cuda.max_memory_allocated (2.15): with what waited for other streams."""
    return _figure(device, "allocated_bytes.all.peak")


def memory_reserved(device: Any = None) -> int:
    """torch.cuda.memory_reserved (2.15)."""
    return _figure(device, "reserved_bytes.all.current")


def max_memory_reserved(device: Any = None) -> int:
    """torch.cuda.max_memory_reserved (2.15)."""
    return _figure(device, "reserved_bytes.all.peak")


@dialect_errors
def reset_peak_memory_stats(device: Any = None) -> None:
    """torch.cuda.reset_peak_memory_stats (2.15)."""
    _memory.reset_pool_peaks(_ordinal(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """torch.cuda.reset_accumulated_memory_stats (2.15)."""
    _held.counts.pop(_ordinal(device), None)


def memory_cached(device: Any = None) -> int:
    """torch.cuda.memory_cached (2.15): deprecated name of `memory_reserved`."""
    _deprecated("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """torch.cuda.max_memory_cached (2.15): deprecated name of `max_memory_reserved`."""
    _deprecated("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_max_memory_allocated(device: Any = None) -> None:
    """torch.cuda.reset_max_memory_allocated (2.15): deprecated, resets every peak."""
    _deprecated("reset_max_memory_allocated", "reset_peak_memory_stats")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """torch.cuda.reset_max_memory_cached (2.15): deprecated, resets every peak."""
    _deprecated("reset_max_memory_cached", "reset_peak_memory_stats")
    reset_peak_memory_stats(device)


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"torch.cuda.{name} is deprecated; use torch.cuda.{instead}", FutureWarning, stacklevel=3
    )


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """torch.cuda.memory_summary (2.15): one line for each figure, in another layout."""
    where = _ordinal(device)
    lines = [f"Memory of device {where}"]
    for name, value in memory_stats(where).items():
        unit = " bytes" if "bytes" in name else ""
        if not abbreviated or unit:
            lines.append(f"  {name:<30}{value:>18,}{unit}")
    return "\n".join(lines)


def get_allocator_backend() -> str:
    """torch.cuda.get_allocator_backend (2.15): the pool is ordered by streams."""
    return "cudaMallocAsync"


__getattr__ = _names.getter(__name__)
