"""Event, and its options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ... import _core as core
from ..._errors import KINDS, NotReadyError, NotSupportedError, TimingDisabledError, UnrecordedError
from ._arguments import missing_method, missing_property, options_of
from ._context import Context
from ._errors import ERRORS, closed
from ._stream import Stream

if TYPE_CHECKING:
    from ._device import Device

__all__ = ["Event", "EventOptions"]

# Why there is no time between two events, by the kind of the core's error.
_NO_TIME = {
    "timing_disabled": "Both Events must be created with timing enabled in order to subtract them; use "
    "EventOptions(timing_enabled=True) when creating both events.",
    "unrecorded": "Both Events must be recorded before they can be subtracted; use Stream.record() to record both "
    "events to a stream.",
    "not_ready": "One or both events have not completed; use Event.sync(), Stream.sync(), or Device.sync() to wait for "
    "the events to complete before subtracting them.",
}


@dataclass
class EventOptions:
    """cuda.core.EventOptions (1.2.2)."""

    timing_enabled: bool | None = False
    blocking_sync: bool | None = False
    ipc_enabled: bool | None = False

    def __post_init__(self) -> None:
        for value in (self.timing_enabled, self.blocking_sync, self.ipc_enabled):
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"Expected bool, got {type(value).__name__}")


class Event(core.Event):
    """cuda.core.Event (1.2.2); made by `Stream.record` and `Device.create_event`.

    Differences: `handle` is an int; `sync` takes a time limit; events of other processes are not
    built. Copies and pickles are refused.
    """

    __module__ = "halstream.cuda.core"  # strict mode, which knows classes by it, sees them as they are made
    _errors = ERRORS
    _device_class: ClassVar[type[Device]]  # set by _device.py, which imports this file
    _given_up = False  # by `close`

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Event objects cannot be instantiated directly. Please use Stream APIs (record).")

    @classmethod
    def _bound(cls, ordinal: int, options: Any) -> Event:
        """Return a new event that a stream of a device is about to record."""
        chosen = options_of(EventOptions, options, "Event")
        if chosen.ipc_enabled:
            if chosen.timing_enabled:
                raise TypeError("IPC-enabled events cannot use timing.")
            raise NotSupportedError("events of other processes are not built yet", operation="create event")
        new = object.__new__(cls)
        flags = (core.TIMING if chosen.timing_enabled else 0) | (core.BLOCKING_SYNC if chosen.blocking_sync else 0)
        new._create(ordinal, flags)
        return new

    @classmethod
    def _free(cls, ordinal: int, options: Any) -> Event:
        """Return a new event that nothing has recorded."""
        chosen = options_of(EventOptions, options, "Event")
        if chosen.ipc_enabled:
            raise TypeError("IPC-enabled events must be bound; use Stream.record for creation.")
        return cls._bound(ordinal, chosen)

    def _open(self) -> None:
        """Raise an error if the event was closed."""
        if self._given_up:
            raise closed("Event")

    # -- what it is ---------------------------------------------------------

    @property
    def device(self) -> Device:
        """The device it is of."""
        self._open()
        return self._device_class(self._ordinal)

    @property
    def context(self) -> Context:
        """The context of its device."""
        self._open()
        return Context._of(self._ordinal)

    @property
    def handle(self) -> int:
        """The event's number; 0 of one that was closed."""
        return 0 if self._given_up else core.Event.handle.fget(self)  # type: ignore[attr-defined]

    @property
    def is_timing_enabled(self) -> bool:
        """True if it keeps times."""
        self._open()
        return bool(self._made_with & core.TIMING)

    @property
    def is_blocking_sync(self) -> bool:
        """True if a thread that waits for it sleeps."""
        self._open()
        return bool(self._made_with & core.BLOCKING_SYNC)

    @property
    def is_ipc_enabled(self) -> bool:
        """False: events of other processes are not built."""
        self._open()
        return False

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._given_up

    ipc_descriptor = missing_property("cuda.core.Event.ipc_descriptor")
    from_ipc_descriptor = missing_method("cuda.core.Event.from_ipc_descriptor")

    def __repr__(self) -> str:
        return f"<Event handle={self.handle:#x}>"

    # -- waiting --------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """True if the work before its latest record is done, or it was never recorded."""
        self._open()
        return self.query()

    def sync(self, timeout: float | None = None) -> None:
        """Wait for the work before its latest record; `timeout` in seconds is an addition."""
        self._open()
        self.synchronize(timeout)

    def __sub__(self, other: Any) -> float:
        if not isinstance(other, Event):
            raise TypeError(
                f"Argument 'other' has incorrect type (expected cuda.core._event.Event, got {type(other).__name__})"
            )
        self._open()
        other._open()
        try:
            return other.elapsed(self)
        except (TimingDisabledError, UnrecordedError, NotReadyError) as exc:
            raise KINDS[exc.kind](_NO_TIME[exc.kind], code=exc.code, operation=exc.operation) from exc

    def __isub__(self, other: object) -> Any:  # type: ignore[misc]
        return NotImplemented

    def __rsub__(self, other: object) -> Any:
        return NotImplemented

    def close(self) -> None:
        """Give the event up; waits that were enqueued keep their point."""
        if not self._given_up:
            super().close()
            self._given_up = True


EventOptions.__module__ = "halstream.cuda.core"
Stream._event_class = Event
Event._stream_class = Stream
