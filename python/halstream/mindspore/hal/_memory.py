"""The memory functions of mindspore.hal 2.10: runtime's, with a target that is only checked."""

from __future__ import annotations

import logging
from typing import Any

from ..._core._device import in_use
from .. import _memory, _queries
from .._memory import empty_cache

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
]

_log = logging.getLogger("halstream.mindspore")


def memory_stats(device_target: str | None = None) -> dict[str, Any]:
    """`mindspore.hal.memory_stats` of 2.10; empty before the device is used."""
    _queries.usable("memory_stats", device_target)
    if not in_use:
        _log.warning("The device is not initialized, and memory_stats() has nothing to show.")
        return {}
    return _memory.memory_stats()


def memory_reserved(device_target: str | None = None) -> int:
    """`mindspore.hal.memory_reserved` of 2.10."""
    _queries.usable("memory_reserved", device_target)
    return _memory.memory_reserved()


def max_memory_reserved(device_target: str | None = None) -> int:
    """`mindspore.hal.max_memory_reserved` of 2.10."""
    _queries.usable("max_memory_reserved", device_target)
    return _memory.max_memory_reserved()


def memory_allocated(device_target: str | None = None) -> int:
    """`mindspore.hal.memory_allocated` of 2.10."""
    _queries.usable("memory_allocated", device_target)
    return _memory.memory_allocated()


def max_memory_allocated(device_target: str | None = None) -> int:
    """`mindspore.hal.max_memory_allocated` of 2.10."""
    _queries.usable("max_memory_allocated", device_target)
    return _memory.max_memory_allocated()


def reset_peak_memory_stats(device_target: str | None = None) -> None:
    """`mindspore.hal.reset_peak_memory_stats` of 2.10."""
    _queries.usable("reset_peak_memory_stats", device_target)
    _memory.reset_peak_memory_stats()


def reset_max_memory_reserved(device_target: str | None = None) -> None:
    """`mindspore.hal.reset_max_memory_reserved` of 2.10."""
    _queries.usable("reset_max_memory_reserved", device_target)
    _memory.reset_max_memory_reserved()


def reset_max_memory_allocated(device_target: str | None = None) -> None:
    """`mindspore.hal.reset_max_memory_allocated` of 2.10."""
    _queries.usable("reset_max_memory_allocated", device_target)
    _memory.reset_max_memory_allocated()


def memory_summary(device_target: str | None = None) -> str:
    """`mindspore.hal.memory_summary` of 2.10."""
    _queries.usable("memory_summary", device_target)
    return _memory.memory_summary()
