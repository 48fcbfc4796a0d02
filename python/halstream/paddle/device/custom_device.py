"""paddle.device.custom_device of 3.3: the base layer of custom devices.

The type part of a device name is ignored; the first registered type is meant,
or npu where none is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _core as core
from ..._dialects._adapt import raising
from ..._dialects._not_built import not_built
from .._errors import ERRORS
from .._names import expected_place
from .._places import CustomPlace, custom_types
from ..base._events import CustomDeviceEvent as Event
from ..base._events import custom_ordinal
from ..base._streams import CustomDeviceStream as Stream
from ._memory import empty_cache, figure, reset
from ._queries import DeviceProperties
from ._queries import get_device_properties as _properties

__all__ = [
    "Event",
    "Stream",
    "create_event",
    "create_stream",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_properties",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "synchronize",
]


def _type() -> str:
    return next(iter(custom_types()), "npu")


def _ordinal(device: Any) -> int:
    """Return the ordinal of None, an int, a name or a place."""
    if device is None:
        place = expected_place()
        return place._index if place.is_custom_place() else 0
    if isinstance(device, CustomPlace):
        return device._index
    if isinstance(device, str):
        number = device.partition(":")[2]
        if ":" in device and not number.isdecimal():
            raise ValueError(f"no custom device is called {device!r}; say for example 'npu:0'")
        device = int(number or 0)
    if not isinstance(device, int):
        raise ValueError(f"a custom device is an int, a str or a CustomPlace, not {device!r}")
    return custom_ordinal(_type(), device)


def device_count(device_type: str | None = None) -> int:
    """`paddle.device.custom_device.device_count` of 3.3; 0 for a type that is not registered."""
    known = custom_types() if device_type is None else [device_type]
    return core.device_count() if set(known) & set(custom_types()) else 0


@raising(ERRORS)
def current_stream(device: Any = None) -> Stream:
    """`paddle.device.custom_device.current_stream` of 3.3: the base object."""
    return Stream._current(_ordinal(device))


@raising(ERRORS)
def synchronize(device: Any = None) -> None:
    """`paddle.device.custom_device.synchronize` of 3.3."""
    core.synchronize(_ordinal(device))


def get_device_properties(device: Any = None) -> DeviceProperties:
    """`paddle.device.custom_device.get_device_properties` of 3.3; for every custom type."""
    return _properties(_ordinal(device))


def create_stream(
    device_id: Any = None,
    priority: int = 2,
    device_type: str | None = None,
    blocking: bool = False,
) -> Stream:
    """`paddle.device.custom_device.create_stream` of 3.3."""
    if isinstance(device_id, CustomPlace):
        return Stream(device_id, priority, blocking)
    kind = device_type or _type()
    return Stream(kind, -1 if device_id is None else device_id, priority, blocking)


def create_event(
    enable_timing: bool = False,
    blocking: bool = False,
    interprocess: bool = False,
    device_type: str | None = None,
    device_id: int = 0,
) -> Event:
    """`paddle.device.custom_device.create_event` of 3.3."""
    return Event(device_type or _type(), device_id, enable_timing, blocking, interprocess)


def memory_allocated(device: Any = None) -> int:
    """`paddle.device.custom_device.memory_allocated` of 3.3."""
    return figure(_ordinal(device), "allocated")


def memory_reserved(device: Any = None) -> int:
    """`paddle.device.custom_device.memory_reserved` of 3.3."""
    return figure(_ordinal(device), "reserved")


def max_memory_allocated(device: Any = None) -> int:
    """`paddle.device.custom_device.max_memory_allocated` of 3.3."""
    return figure(_ordinal(device), "allocated_peak")


def max_memory_reserved(device: Any = None) -> int:
    """`paddle.device.custom_device.max_memory_reserved` of 3.3."""
    return figure(_ordinal(device), "reserved_peak")


def reset_max_memory_allocated(device: Any = None) -> None:
    """`paddle.device.custom_device.reset_max_memory_allocated` of 3.3."""
    reset(_ordinal(device), reserved=False)


def reset_max_memory_reserved(device: Any = None) -> None:
    """`paddle.device.custom_device.reset_max_memory_reserved` of 3.3."""
    reset(_ordinal(device), used=False)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
