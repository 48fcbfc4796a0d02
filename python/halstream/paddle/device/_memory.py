"""Memory of devices: the figures of the runtime, with sizes rounded up to 512 bytes."""

from __future__ import annotations

from typing import Any

from ... import _core as core
from ... import _memory
from ..._dialects._adapt import raising
from .._errors import ERRORS
from .._names import expected_place, extract_device_id

__all__ = [
    "empty_cache",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
]


@raising(ERRORS)
def figure(ordinal: int, name: str) -> int:
    """Return a figure of a device: allocated or reserved, or the peak of one."""
    return _memory.memory_stats(ordinal)[name]


@raising(ERRORS)
def reset(ordinal: int, *, used: bool = True, reserved: bool = True) -> None:
    """Reset peaks of a device to what is held now."""
    _memory.reset_memory_peaks(ordinal, allocated=used, reserved=reserved)


@raising(ERRORS)
def empty_cache() -> None:
    """`paddle.device.empty_cache` of 3.3, for all devices."""
    for ordinal in range(core.device_count()):
        _memory.empty_cache(ordinal)


def memory_allocated(device: Any = None) -> int:
    """`paddle.device.memory_allocated` of 3.3."""
    return figure(extract_device_id(device, "paddle.device.cuda.memory_allocated"), "allocated")


def memory_reserved(device: Any = None) -> int:
    """`paddle.device.memory_reserved` of 3.3."""
    return figure(extract_device_id(device, "paddle.device.cuda.memory_reserved"), "reserved")


def max_memory_allocated(device: Any = None) -> int:
    """`paddle.device.max_memory_allocated` of 3.3."""
    ordinal = extract_device_id(device, "paddle.device.cuda.max_memory_allocated")
    return figure(ordinal, "allocated_peak")


def max_memory_reserved(device: Any = None) -> int:
    """`paddle.device.max_memory_reserved` of 3.3."""
    ordinal = extract_device_id(device, "paddle.device.cuda.max_memory_reserved")
    return figure(ordinal, "reserved_peak")


def reset_max_memory_allocated(device: Any = None) -> None:
    """`paddle.device.reset_max_memory_allocated` of 3.3."""
    ordinal = extract_device_id(device, "paddle.device.cuda.reset_max_memory_allocated")
    reset(ordinal, reserved=False)


def reset_max_memory_reserved(device: Any = None) -> None:
    """`paddle.device.reset_max_memory_reserved` of 3.3."""
    ordinal = extract_device_id(device, "paddle.device.cuda.reset_max_memory_reserved")
    reset(ordinal, used=False)


def reset_peak_memory_stats(device: Any = None) -> None:
    """`paddle.device.reset_peak_memory_stats` of 3.3: the current device's; ignores `device`."""
    reset(expected_place()._index)


def memory_summary(device: Any = None) -> str:
    """`paddle.device.cuda.memory_summary` of 3.3: one line for each figure, in another layout."""
    ordinal = extract_device_id(device, "paddle.device.cuda.memory_summary")
    lines = [f"Memory of device {ordinal}"]
    for name, call in (
        ("memory_allocated", "allocated"),
        ("max_memory_allocated", "allocated_peak"),
        ("memory_reserved", "reserved"),
        ("max_memory_reserved", "reserved_peak"),
    ):
        lines.append(f"  {name:<22}{figure(ordinal, call):>18,} bytes")
    return "\n".join(lines)
