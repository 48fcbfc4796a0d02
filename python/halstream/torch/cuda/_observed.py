"""Stream and event methods that notify observers; in place only while there are observers.

Otherwise the classes have the core's own methods, so that observation costs
nothing while it is off.
"""

from __future__ import annotations

from typing import Any

from ... import _core as core
from ..._core import _handles
from .. import _observe
from .._events import Event
from .._streams import Stream

_notify = _observe.notify


def _created(event: core.Event, before: int) -> None:
    if not before:
        _notify("event_creation", event.handle)


def record_event(self: Stream, event: Any = None) -> Any:
    """Stream.record_event, watched."""
    if event is None:
        event = self._new_event()
    before = event.handle if isinstance(event, core.Event) else 0
    core.Stream.record(self, event)
    _created(event, before)
    _notify("event_record", event.handle, self.handle)
    return event


def wait_event(self: Stream, event: Any) -> None:
    """Stream.wait_event, watched; a wait for an unrecorded event is none."""
    core.Stream.wait_event(self, event)
    if event.handle:
        _notify("event_wait", event.handle, self.handle)


def wait_stream(self: Stream, stream: Any) -> None:
    """Stream.wait_stream, watched: torch makes an event, records it and waits for it."""
    if not isinstance(stream, core.Stream):
        raise self._wrong_type("wait_stream", stream, core.Stream)
    event = self._new_event()
    record_event(stream, event)  # type: ignore[arg-type]
    wait_event(self, event)


def stream_synchronize(self: Stream, timeout: float | None = None) -> None:
    """Stream.synchronize, watched."""
    _observe.check_host_wait("called a synchronizing CUDA operation", RuntimeError)
    _notify("stream_synchronization", self.handle)
    core.Stream.synchronize(self, timeout)


def record(self: Event, stream: Any = None) -> None:
    """Event.record, watched."""
    if stream is None:
        stream = self._stream_class._current(core.ordinal(None))
    before = self.handle
    core.Event.record(self, stream)
    _created(self, before)
    _notify("event_record", self.handle, stream.handle)


def wait(self: Event, stream: Any = None) -> None:
    """Event.wait, watched; a wait for an unrecorded event is none."""
    if stream is None:
        stream = self._stream_class._current(core.ordinal(None))
    core.Event.wait(self, stream)
    if self.handle:
        _notify("event_wait", self.handle, stream.handle)


def event_synchronize(self: Event, timeout: float | None = None) -> None:
    """Event.synchronize, watched."""
    _notify("event_synchronization", self.handle)
    core.Event.synchronize(self, timeout)


def event_del(self: Event) -> None:
    """Destruction of an event, watched."""
    if hasattr(self, "_id") and self.handle:
        _notify("event_deletion", self.handle)


_WATCHED: dict[type, dict[str, Any]] = {
    Stream: {
        "record_event": record_event,
        "wait_event": wait_event,
        "wait_stream": wait_stream,
        "synchronize": stream_synchronize,
    },
    Event: {
        "record": record,
        "wait": wait,
        "synchronize": event_synchronize,
        "__del__": event_del,
    },
}
_PLAIN = {cls: {name: getattr(cls, name, None) for name in methods} for cls, methods in _WATCHED.items()}


def rebind() -> None:
    """Install the watched or the plain methods on the classes, as the switches demand."""
    for cls, methods in (_WATCHED if _observe.active() else _PLAIN).items():
        for name, method in methods.items():
            if method is not None:
                setattr(cls, name, method)
            elif name in vars(cls):
                delattr(cls, name)
        _inherit(cls)


def _inherit(cls: type) -> None:
    """Let the classes of this dialect that inherit from a class have its methods as they are now."""
    derived: type
    for derived in cls.__subclasses__():
        if derived.__module__.startswith("halstream."):
            _handles.own(derived)
            _inherit(derived)
