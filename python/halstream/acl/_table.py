"""Handles: ACL's objects are plain numbers, and this table finds what they name."""

from __future__ import annotations

import functools

from .. import _core
from .._core import _interop
from .._core._context import Context, ReportQueue
from .._errors import HalError
from .._runtime import runtime
from . import _codes as codes
from ._ascendcl import EVENT_WAITABLE, EVENTS, LEAST_PRIORITY
from ._session import JoinableThread

MASK = 2**64 - 1
#: What the dialect's handles name; a destroyed one is not in it.
objects: dict[int, Stream | Event | Notify] = runtime.keep("acl streams and events", {})
#: The queue of each thread that is subscribed to a stream, by the thread's number.
queues: dict[int, ReportQueue] = runtime.keep("acl report queues", {})
#: Threads made by `util.start_thread` and not joined yet, by number.
threads: dict[int, JoinableThread] = runtime.keep("acl report threads", {})


class Stream(_core.Stream):
    """A stream by handle, with what its creator said and the attributes set on it."""

    flags: int = 0
    #: What the creator asked for; None where another dialect made it.
    asked: int | None = None

    @functools.cached_property
    def attributes(self) -> dict[int, int]:
        """Number of an attribute -> value."""
        return {}


class Event(_core.Event):
    """An event by handle; `flags` are its creator's, `ex` is True for the newer kind."""

    flags: int
    ex: bool

    @classmethod
    def make(cls, flags: int, ex: bool) -> Event:
        """Return a new event of the current context's device."""
        new = Context.current()._event_in(cls, EVENTS[flags, ex])
        new.flags, new.ex = flags, ex
        return new


class Notify:
    """A notify by handle: an event that stays set until a reset, and who may wait next."""

    def __init__(self, event: _core.Event) -> None:
        self.event = event
        #: Recorded where the latest wait has cleared the notify; None before the first wait.
        self.turn: _core.Event | None = None

    @property
    def _id(self) -> int:
        return self.event._id


def refuse(code: int, why: str) -> HalError:
    """Return the error that makes a function return `code`."""
    return HalError(why, code=code)


def add(new: Stream | Event) -> int:
    """Enter a new object and return its handle."""
    objects[new._id] = new
    return new._id


def stream(handle: int) -> _core.Stream:
    """Return the stream of a handle; 0 is the current context's default stream."""
    found = objects.get(handle)
    if isinstance(found, Stream):
        return found
    if handle != handle & MASK:
        return stream(handle & MASK)
    if handle == 0:
        return _default()
    if found is None and 2 < handle < 2**63:
        _interop.refuse_closed(handle)
        # A stream of another dialect, by its raw handle.
        return _core.Stream.from_handle(handle)
    raise refuse(codes.RT_INVALID_HANDLE, f"no stream has the handle {handle:#x}")


def _default() -> Stream:
    context = Context.current()
    found = objects.get(context._default_id)
    if isinstance(found, Stream):
        return found
    new = context._default_in(Stream)
    add(new)
    return new


def priority(of: _core.Stream) -> int:
    """Return a stream's priority, 0 highest to 7.

    It is the priority that the program gave, also if the device has fewer levels.
    """
    level = of.priority  # refuses a closed one
    asked = of.asked if isinstance(of, Stream) else None
    return LEAST_PRIORITY + level if asked is None else asked


def own_stream(handle: int) -> _core.Stream:
    """Return the stream of a handle that may not be 0."""
    if not handle & MASK:
        raise refuse(codes.INVALID_PARAM, "the stream's handle is 0 (NULL)")
    return stream(handle)


def capturable(on: _core.Stream, marker: Event) -> None:
    """Refuse, where a stream captures, an event by which a capture cannot order work."""
    if not (marker.ex and marker.flags & EVENT_WAITABLE) and on._capture_state("record") == 1:
        raise refuse(
            codes.RT_FEATURE_NOT_SUPPORT,
            "the stream captures, where events are those of create_event_ex_with_flag with ACL_EVENT_SYNC; "
            f"this one was made by {'create_event_ex_with_flag' if marker.ex else 'create_event'} with flag "
            f"{marker.flags:#x}",
        )


def event(handle: int) -> Event:
    """Return the event of a handle."""
    found = objects.get(handle)
    if isinstance(found, Event):
        return found
    if handle != handle & MASK:
        return event(handle & MASK)
    if handle == 0:
        raise refuse(codes.INVALID_PARAM, "the event's handle is 0 (NULL)")
    raise refuse(codes.RT_INVALID_HANDLE, f"no event has the handle {handle:#x}")


def notify(handle: int) -> Notify:
    """Return the notify of a handle."""
    handle &= MASK
    found = objects.get(handle)
    if isinstance(found, Notify):
        return found
    if handle == 0:
        raise refuse(codes.INVALID_PARAM, "the notify's handle is 0 (NULL)")
    raise refuse(codes.RT_INVALID_HANDLE, f"no notify has the handle {handle:#x}")


def context(handle: int) -> Context:
    """Return the context of a handle."""
    handle &= MASK
    if handle == 0:
        raise refuse(codes.INVALID_PARAM, "the context's handle is 0 (NULL)")
    if handle >= 2**63:
        raise refuse(codes.RT_INVALID_HANDLE, f"no context has the handle {handle:#x}")
    return Context._of(handle)


def sweep() -> None:
    """Forget the streams that ended with their context, and queues that serve no stream."""
    for handle, found in list(objects.items()):
        if isinstance(found, Stream) and found.closed:
            objects.pop(handle, None)
    forget_unused_queues()


def forget_unused_queues() -> None:
    """Forget the report queues that no stream is subscribed to any more."""
    for thread, queue in list(queues.items()):
        if queue.unused:
            queues.pop(thread, None)
