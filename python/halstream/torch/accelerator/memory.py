"""torch.accelerator.memory (2.15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._core import _current
from .._device import device, is_device
from .._errors import not_built as _not_built
from ..cuda import memory as figures
from ..cuda.memory import empty_cache as empty_cache

__all__ = [
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
]


def index_of(where: Any, optional: bool) -> int:
    """Return the number of a device; without one that of the current device, if `optional`."""
    if isinstance(where, int):
        return where
    if isinstance(where, str):
        where = device(where)
    if is_device(where):
        if where.type != "cuda":
            raise ValueError(f"{where.type} doesn't match the current accelerator cuda.")
        if where.index is not None:
            return int(where.index)
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{where}")
    return _current.current_device()


def empty_host_cache() -> None:
    """torch.accelerator.empty_host_cache (2.15): pinned memory is given back at once, none is kept."""


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """torch.accelerator.get_memory_info (2.15): free and total bytes."""
    return figures.mem_get_info(index_of(device_index, optional=True))


def memory_allocated(device_index: Any = None, /) -> int:
    """torch.accelerator.memory_allocated (2.15)."""
    return figures.memory_allocated(index_of(device_index, optional=True))


def max_memory_allocated(device_index: Any = None, /) -> int:
    """torch.accelerator.max_memory_allocated (2.15)."""
    return figures.max_memory_allocated(index_of(device_index, optional=True))


def memory_reserved(device_index: Any = None, /) -> int:
    """torch.accelerator.memory_reserved (2.15)."""
    return figures.memory_reserved(index_of(device_index, optional=True))


def max_memory_reserved(device_index: Any = None, /) -> int:
    """torch.accelerator.max_memory_reserved (2.15)."""
    return figures.max_memory_reserved(index_of(device_index, optional=True))


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """torch.accelerator.reset_peak_memory_stats (2.15)."""
    figures.reset_peak_memory_stats(index_of(device_index, optional=True))


__getattr__: Callable[[str], Any] = _not_built(__name__)
