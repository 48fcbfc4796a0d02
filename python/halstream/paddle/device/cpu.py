"""paddle.device.cpu of 3.3: a CPU has no devices and no streams."""

from __future__ import annotations

from ..base._events import CustomDeviceEvent as Event
from ..base._streams import CustomDeviceStream as Stream

__all__ = ["Event", "Stream", "device_count"]


def device_count() -> int:
    """`paddle.device.cpu.device_count` of 3.3: always 0."""
    return 0
