"""Events: three creators, and what each kind may do."""

from __future__ import annotations

from ..._core import _context
from ..._core._context import Context
from .. import _codes as codes
from .. import _table
from .. import constants as c
from .._ascendcl import EVENT_COMMON, EVENT_DEFAULT, EVENT_WAITABLE, EVENTS, MOST_EVENTS
from .._call import command, seconds
from .._table import Event, capturable, event, refuse, stream


def _check(flag: int, ex: bool) -> None:
    if (flag, ex) not in EVENTS:
        single = " or ".join(f"{bit:#x}" for bit, newer in EVENTS if newer == ex and bit & ~EVENT_COMMON)
        raise refuse(
            codes.RT_PARAM_INVALID,
            f"an event is made with bits of 0xf, or {single} alone, not {flag:#x}",
        )


def _no(marker: Event, ex: bool, what: str) -> Event:
    """Refuse what an event for captures, or (with `ex`) of the newer kind, cannot do."""
    if marker.flags & c.ACL_EVENT_EXTERNAL or (ex and marker.ex):
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, f"an event made with flag {marker.flags:#x} cannot {what}")
    return marker


@command(failed=(0,))
def create_event(*_: object) -> tuple[int, int]:
    """aclrtCreateEvent: (event, ret); it can time, and be waited for once recorded."""
    return _table.add(Event.make(EVENT_DEFAULT, ex=False)), 0


@command("u", (0,))
def create_event_with_flag(flag: int, /) -> tuple[int, int]:
    """aclrtCreateEventWithFlag: (event, ret); with ``ACL_EVENT_SYNC`` set until `reset_event`."""
    _check(flag, ex=False)
    return _table.add(Event.make(flag, ex=False)), 0


@command("u", (0,))
def create_event_ex_with_flag(flag: int, /) -> tuple[int, int]:
    """aclrtCreateEventExWithFlag: (event, ret); may be recorded again at any time."""
    _check(flag, ex=True)
    if flag == c.ACL_EVENT_IPC:
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, "pyACL has no function that gives an event to another process")
    return _table.add(Event.make(flag, ex=True)), 0


@command("h")
def destroy_event(handle: int, /) -> int:
    """aclrtDestroyEvent: never waits; pending records and waits keep their meaning."""
    marker = event(handle)
    _table.objects.pop(marker._id, None)
    marker.close()
    return 0


@command("hh")
def record_event(handle: int, where: int, /) -> int:
    """aclrtRecordEvent: the event is complete when the stream's work so far is.

    207000 in a capture, for an event of the older kind or one that no stream can wait for.
    """
    on, marker = stream(where), event(handle)
    capturable(on, marker)
    on.record(marker)
    return 0


@command("hh")
def reset_event(handle: int, where: int, /) -> int:
    """aclrtResetEvent: clear, in stream order, an event that stays set until then.

    One of `create_event` needs no reset: nothing is enqueued, the call succeeds.
    207000 for one made with other flags, or by `create_event_ex_with_flag`.
    """
    on, marker = stream(where), event(handle)
    capturable(on, marker)
    if not marker.ex and marker.flags == EVENT_DEFAULT:
        on.nop()  # an enqueue is what checks that the stream's context is current
    else:
        _context.reset_event(on, marker)
    return 0


@command("h", (0,))
def query_event(handle: int, /) -> tuple[int, int]:
    """aclrtQueryEvent: (0 complete or 1 not ready, ret); never recorded is complete."""
    marker = _no(event(handle), True, "be queried this way; use query_event_status")
    return 0 if marker.query() or not marker.recorded else 1, 0


@command("h", (0,))
def query_event_status(handle: int, /) -> tuple[int, int]:
    """aclrtQueryEventStatus: (1 complete or 0 not ready, ret)."""
    return 1 if _no(event(handle), False, "be queried").query() else 0, 0


@command("h", (0,))
def query_event_wait_status(handle: int, /) -> tuple[int, int]:
    """aclrtQueryEventWaitStatus: (0 if every wait for the event has passed, else 1; ret)."""
    marker = _no(event(handle), True, "track who waits for it")
    return 1 if _context.waits_pending(marker) else 0, 0


@command("h", timeout=codes.RT_EVENT_SYNC_TIMEOUT)
def synchronize_event(handle: int, /) -> int:
    """aclrtSynchronizeEvent: wait for the latest record; never recorded returns at once."""
    _no(event(handle), False, "be synchronized").synchronize()
    return 0


@command("hi", timeout=codes.RT_EVENT_SYNC_TIMEOUT)
def synchronize_event_with_timeout(handle: int, timeout: int, /) -> int:
    """aclrtSynchronizeEventWithTimeout: milliseconds, -1 for ever, 0 is an error."""
    limit = seconds(timeout)
    _no(event(handle), False, "be synchronized").synchronize(limit)
    return 0


@command("hh", (0.0,))
def event_elapsed_time(start: int, end: int, /) -> tuple[float, int]:
    """aclrtEventElapsedTime: (milliseconds from `start` to `end`, ret); both complete."""
    first, last = event(start), event(end)
    return _no(first, False, "be timed").elapsed(_no(last, False, "be timed")), 0


@command("h", (0,))
def event_get_timestamp(handle: int, /) -> tuple[int, int]:
    """aclrtEventGetTimestamp: (microseconds of the device's clock, ret)."""
    return _context.timestamp_us(_no(event(handle), False, "be timed")), 0


@command("h", (0,))
def get_event_id(handle: int, /) -> tuple[int, int]:
    """aclrtGetEventId: (number, ret); only of events that streams can wait for."""
    marker = event(handle)
    if not marker.flags & EVENT_WAITABLE:
        raise refuse(codes.RT_INTERNAL_ERROR, f"an event made with flag {marker.flags:#x} has no number")
    return marker._id & 0xFFFFFFFF, 0


@command(failed=(0,))
def get_event_avail_num(*_: object) -> tuple[int, int]:
    """aclrtGetEventAvailNum: (event numbers still free on this device, ret)."""
    where = Context.current().ordinal
    events = [o for o in list(_table.objects.values()) if isinstance(o, Event)]
    return max(0, MOST_EVENTS - sum(marker._ordinal == where for marker in events)), 0
