"""The device choice of paddle.device: set_device, get_device, device_guard, device."""

from __future__ import annotations

from typing import Any

from ..._core import _current
from ..._dialects._adapt import raising
from .._errors import ERRORS
from .._names import choose, convert_to_place, device_to_place, enter, expected_place, name_of
from .._place import Place
from ._device import Device


@raising(ERRORS)
def set_device(device: Any) -> Any:
    """`paddle.set_device` of 3.3, for the process; other dialects see the device at once.

    Inside a `device_guard` or a `device` it is undone when that ends.
    """
    place = device_to_place(device)
    choose(place)
    return place


def get_device(input: Any = None) -> str | int:
    """`paddle.get_device` of 3.3; of a tensor its device's number, -1 for the host's memory."""
    if input is not None:
        of: Place = input.place
        return of._index if of._kind in ("gpu", "custom") else -1
    place = expected_place()
    if place.is_cuda_pinned_place():
        raise ValueError(f"The device specification {place} is invalid")
    return name_of(place)


def get_default_device() -> Device:
    """`paddle.get_default_device` of 3.3; custom types have a `Device`, too."""
    return Device(str(get_device()).replace("gpu", "cuda"))


def set_default_device(device: Any) -> None:
    """`paddle.set_default_device` of 3.3."""
    set_device(device)


class device_guard:
    """`paddle.device.device_guard` of 3.3; it holds for its thread and asyncio task only."""

    def __init__(self, device: Any) -> None:
        if not isinstance(device, (str, Place)):
            raise ValueError(
                "'device' must be a string or an instance of a subclass of "
                f"paddle.base.libpaddle.Place, but got {type(device)}"
            )
        self._target_place = convert_to_place(device)

    def __enter__(self) -> None:
        enter(self._target_place)

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        _current.leave()


class device:
    """`paddle.device.device` of 3.3; it holds for its thread and asyncio task only."""

    def __init__(self, device: Any = None) -> None:
        self.place: Any = device_to_place(device)

    def __enter__(self) -> None:
        enter(self.place)

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        _current.leave()
