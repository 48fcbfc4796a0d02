"""paddle.device.cpu of 3.3: a CPU has no devices and no streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..._dialects._not_built import not_built
from ..base._events import CustomDeviceEvent as Event
from ..base._streams import CustomDeviceStream as Stream

__all__ = ["Event", "Stream", "device_count", "max_memory_allocated", "max_memory_reserved"]


def device_count() -> int:
    """`paddle.device.cpu.device_count` of 3.3: always 0."""
    return 0


def _no_figures(name: str) -> NoReturn:
    raise ValueError(f"The API paddle.device.{name} is not supported for the CPU; choose a GPU or a custom device")


def max_memory_allocated(device: Any = None) -> int:
    """`paddle.device.cpu.max_memory_allocated` of 3.3: raises, as there."""
    _no_figures("max_memory_allocated")


def max_memory_reserved(device: Any = None) -> int:
    """`paddle.device.cpu.max_memory_reserved` of 3.3: raises, as there."""
    _no_figures("max_memory_reserved")


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
