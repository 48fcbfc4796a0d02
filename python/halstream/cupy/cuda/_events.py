"""cupy.cuda.runtime: events by their raw handles."""

from __future__ import annotations

from ..._core import _current
from ._errors import ERRORS, CUDARuntimeError, c_uint, intptr
from ._event import Event, core_flags
from ._handles import Handle

__all__ = [
    "eventCreate",
    "eventCreateWithFlags",
    "eventDestroy",
    "eventElapsedTime",
    "eventQuery",
    "eventRecord",
    "eventSynchronize",
    "ipcGetEventHandle",
    "ipcOpenEventHandle",
]


def eventCreate() -> int:
    """cupy.cuda.runtime.eventCreate (14.2.0): the event lives until `eventDestroy`."""
    return Event().release()


def eventCreateWithFlags(flags: int) -> int:
    """cupy.cuda.runtime.eventCreateWithFlags (14.2.0)."""
    bits = c_uint(flags)
    if bits > 7 or (bits & 4 and not bits & 2):
        raise ERRORS["invalid_value"](f"{flags} are no flags of an event")
    event = Event.__new__(Event)
    event._create(_current.current_device(), core_flags(bits))
    return event.release()


def eventDestroy(event: int) -> None:
    """cupy.cuda.runtime.eventDestroy (14.2.0): waits already enqueued keep their point."""
    Event.find(event).close()


def eventElapsedTime(start: int, end: int) -> float:
    """cupy.cuda.runtime.eventElapsedTime (14.2.0): milliseconds."""
    first, second = intptr(start), intptr(end)
    return Event.find(first).elapsed(Event.find(second))


def eventQuery(event: int) -> int:
    """cupy.cuda.runtime.eventQuery (14.2.0): a status, 0 done and 600 busy; never raises it."""
    try:
        return 0 if Event.find(event).query() else 600
    except CUDARuntimeError as exc:
        return exc.status


def eventRecord(event: int, stream: int) -> None:
    """cupy.cuda.runtime.eventRecord (14.2.0)."""
    what, where = intptr(event), intptr(stream)
    Event.find(what).record(Handle.find(where))


def eventSynchronize(event: int) -> None:
    """cupy.cuda.runtime.eventSynchronize (14.2.0)."""
    Event.find(event).synchronize()


def ipcGetEventHandle(event: int) -> bytes:
    """cupy.cuda.runtime.ipcGetEventHandle (14.2.0): for an event that was made with the flag 4."""
    return Event.find(event).to_ipc(_current.current_device())


def ipcOpenEventHandle(handle: bytes) -> int:
    """cupy.cuda.runtime.ipcOpenEventHandle (14.2.0): an event that `eventDestroy` ends."""
    return Event.from_ipc(handle).release()
