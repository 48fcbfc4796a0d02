"""Event, and the time between two events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _core as core
from ..._core import _current
from ..._errors import HalError
from ._errors import ERRORS, intptr
from ._handles import Handle


class _Handle:
    """`ptr`: requested from the core at the first use, an ordinary attribute from then on."""

    def __get__(self, event: Any, owner: type) -> Any:
        if event is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute 'ptr'")
        handle = vars(event)["ptr"] = event.handle
        return handle


class Event(core.Event):
    """cupy.cuda.Event (14.2.0).

    Differences: setting `ptr` changes only the number shown; `synchronize`
    takes a time-out; `query` is `done` that raises; copies and pickles are
    refused.
    """

    _errors = ERRORS
    _record_here = True
    ptr: int
    if not TYPE_CHECKING:
        ptr = _Handle()

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        # Not bool(): a None among them is a TypeError there, too.
        bits = (block and 1) | (disable_timing and 2) | (interprocess and 4)
        self._create(_current.current_device(), core_flags(bits))

    def __repr__(self) -> str:
        return object.__repr__(self)

    @property
    def done(self) -> bool:
        """True if the last record is done; False while it is not, and on any error."""
        try:
            return self.query()
        except HalError:
            return False

    def _adopt(self, operand: Any, expected: type) -> Any:
        return None if isinstance(operand, expected) else Handle.find(operand.ptr)

    @classmethod
    def find(cls, handle: Any) -> Event:
        """Return the event of a raw handle, without ownership of it."""
        return cls.from_handle(intptr(handle))


Event.__module__ = "halstream.cupy.cuda.stream"


def core_flags(bits: int) -> int:
    """Return the core's flags for CUDA's."""
    return (
        (0 if bits & 2 else core.TIMING)
        | (core.BLOCKING_SYNC if bits & 1 else 0)
        | (core.INTERPROCESS if bits & 4 else 0)
    )


def get_elapsed_time(start_event: Any, end_event: Any) -> float:
    """cupy.cuda.get_elapsed_time (14.2.0): milliseconds between two completed events."""
    start, end = (
        event if isinstance(event, core.Event) else Event.find(event.ptr) for event in (start_event, end_event)
    )
    return start.elapsed(end)


get_elapsed_time.__module__ = "halstream.cupy.cuda.stream"
