"""The base events of paddle 3.3: what its wrappers keep in ``event_base``."""

from __future__ import annotations

import functools
from typing import Any

from ... import _core as core
from ..._core import _current
from .._errors import ERRORS, incompatible
from .._places import CUDAPlace, CustomPlace, is_custom

LIBRARY = "paddle.base.libpaddle."


def event_flags(enable_timing: object, blocking: object, interprocess: object) -> int:
    """Return the core's flags; like pybind, take whatever has a truth value of its own."""
    flags = 0
    for given, flag in (
        (enable_timing, core.TIMING),
        (blocking, core.BLOCKING_SYNC),
        (interprocess, core.INTERPROCESS),
    ):
        if given is not None and not hasattr(type(given), "__bool__"):
            form = (
                f"{LIBRARY}CUDAEvent(enable_timing: bool = False, blocking: bool = False, interprocess: bool = False)"
            )
            raise incompatible("__init__", form, given)
        if given:
            flags |= flag
    return flags


def wrong_operand(self: object, operation: str, operand: object, expected: type[Any]) -> TypeError:
    mine = type(self).__name__
    other = mine.removesuffix("Stream").removesuffix("Event") + expected.__name__
    form = f"(self: {LIBRARY}{mine}, arg0: {LIBRARY}{other}) -> None"
    return incompatible(operation, form, self, operand)


def custom_ordinal(device_type: str, device_id: int) -> int:
    """Return the checked ordinal of a custom device; -1 is the current one."""
    if not is_custom(device_type):
        raise RuntimeError(f"(NotFound) {device_type} interface not found.")
    if device_id < 0:
        return _current.current_device()
    if device_id >= core.device_count():
        raise IndexError(f"(OutOfRange) {device_type} has no device {device_id}")
    return device_id


def take_device(
    cls: type, device: object, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, int, tuple[Any, ...]]:
    """Take the device out of the arguments of the two forms: a place, or a type and an id."""
    if isinstance(device, CustomPlace):
        return device._custom, device._index, args
    if isinstance(device, str):
        if args:
            number, args = args[0], args[1:]
        else:
            number = kwargs.pop("device_id", -1)
        return device, custom_ordinal(device, number), args
    form = f"{LIBRARY}{cls.__name__}"
    raise incompatible(
        "__init__",
        f"{form}(device: phi::CustomPlace, ...); {form}(device: str, device_id: int = -1, ...)",
        device,
    )


class BaseEvent(core.Event):
    """What the base events share; not a name of paddle."""

    _errors = ERRORS

    def elapsed_time(self, end_event: Any) -> float:
        """Return device milliseconds up to `end_event`, for which the host waits first."""
        if not isinstance(end_event, core.Event):
            raise self._wrong_type("elapsed_time", end_event, core.Event)
        end_event.synchronize()
        return self.elapsed(end_event)

    @property
    def place(self) -> Any:
        """Where the event may be recorded."""
        raise NotImplementedError

    def _wrong_type(self, operation: str, operand: object, expected: type) -> TypeError:
        return wrong_operand(self, operation, operand, expected)


class CUDAEvent(BaseEvent):
    """paddle.base.core.CUDAEvent of 3.3; it belongs to the device current at its creation."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._create(_current.current_device(), event_flags(enable_timing, blocking, interprocess))

    @property
    def place(self) -> Any:
        return CUDAPlace._of(self._ordinal)


class CustomDeviceEvent(BaseEvent):
    """paddle.base.core.CustomDeviceEvent of 3.3, with `elapsed_time`; always keeps time."""

    _custom = "custom_cpu"

    def __init__(self, device: Any, *args: Any, **kwargs: Any) -> None:
        self._custom, ordinal, args = take_device(type(self), device, args, kwargs)
        self._start(ordinal, *args, **kwargs)

    def _start(
        self,
        device: int,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        # The plug-in interface has no event flags, and programs rely on the time all the same.
        self._create(device, event_flags(not interprocess, blocking, interprocess))

    @property
    def place(self) -> Any:
        return CustomPlace._named(self._custom, self._ordinal)

    @property
    def raw_event(self) -> int:
        """The raw handle."""
        return self.handle


# What `inspect.signature` shows is the first of the two forms.
functools.update_wrapper(CustomDeviceEvent.__init__, CustomDeviceEvent._start)


class XPUEvent:
    """paddle.base.core.XPUEvent of 3.3: not compiled with XPU, so it raises RuntimeError."""

    def __init__(self) -> None:
        raise RuntimeError("(Unavailable) Class XPUEvent can only be initialized on XPU.")
