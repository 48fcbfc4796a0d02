"""paddle.device.Event."""

from __future__ import annotations

import functools
from functools import cached_property
from typing import Any

from ... import _core as core
from .._errors import ERRORS, WrongOperand
from .._names import device_to_place, label_of, place_of, with_streams
from .._place import Place
from ..base._events import CUDAEvent, CustomDeviceEvent, event_flags


def _start(
    self: Event,
    enable_timing: bool = False,
    blocking: bool = False,
    interprocess: bool = False,
    *,
    device: Any = None,
) -> None:
    place = with_streams(device_to_place(device))
    self._open(place, event_flags(enable_timing, blocking, interprocess))


# The error text of a wrong call names this function.
_start.__qualname__ = "Event.__init__"


class Event(core.Event):
    """paddle.device.Event of 3.3, with the `device` that 2.5 to 3.2 take first.

    A first positional argument that is None, a str or a Place is the device,
    any other is `enable_timing`. On a custom device every event keeps time:
    the plug-in interface has no event flags, and programs measure without
    asking for it.
    """

    _errors = ERRORS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and (args[0] is None or isinstance(args[0], (str, Place))):
            kwargs["device"], args = args[0], args[1:]
        _start(self, *args, **kwargs)

    @classmethod
    def _on(cls, place: Any) -> Event:
        """Return a new event without flags on a place that was checked before."""
        event: Event = object.__new__(cls)
        event._open(place, 0)
        return event

    def _open(self, place: Any, flags: int) -> None:
        if place._custom and not flags & core.INTERPROCESS:
            flags |= core.TIMING
        self._create(place._index, flags)
        self.device = place

    @cached_property
    def device(self) -> Any:
        """The event's place."""
        return place_of(self._ordinal)

    @cached_property
    def event_base(self) -> Any:
        """The base object."""
        label = label_of(self.device)
        if label == "gpu":
            return self._transfer_to(CUDAEvent)
        base = self._transfer_to(CustomDeviceEvent)
        base._custom = label
        return base

    def elapsed_time(self, end_event: Any) -> float:
        """Return device milliseconds up to `end_event`, for which the host waits first."""
        if isinstance(end_event, core.Event):
            end_event.synchronize()
        return self.elapsed(end_event)

    def __repr__(self) -> str:
        return f"Event(device={self.device}, event_base={self.event_base})"

    def _wrong_type(self, operation: str, operand: object, expected: type) -> TypeError:
        missing = "event_base" if expected is core.Event else "stream_base"
        return WrongOperand(f"'{type(operand).__name__}' object has no attribute '{missing}'")


# What `inspect.signature` shows is the form of 3.3.
functools.update_wrapper(Event.__init__, _start)
