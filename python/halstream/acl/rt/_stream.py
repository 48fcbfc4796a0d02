"""Streams: life, waiting, queries, attributes."""

from __future__ import annotations

from typing import Any

from ..._core._context import Context, abort, wait_limited
from ..._core._context import destroy_stream as end_stream
from ..._errors import WaitTimeoutError
from .. import _codes as codes
from .. import _table
from .. import constants as c
from .._ascendcl import LEAST_PRIORITY, MOST_STREAMS, STREAM_HARDWARE, STREAM_KEPT
from .._call import command, seconds
from .._session import session
from .._table import Event, Stream, capturable, event, refuse, stream


def _left(ordinal: int) -> int:
    used = sum(
        isinstance(o, Stream) and o._owner is not None and o._ordinal == ordinal for o in list(_table.objects.values())
    )
    return max(0, MOST_STREAMS - used)


def _create(priority: int, flags: int) -> tuple[int, int]:
    context = Context.current()
    if len(_table.objects) >= MOST_STREAMS and not _left(context.ordinal):
        raise refuse(
            codes.RT_NO_STREAM_RESOURCE,
            f"all {MOST_STREAMS} streams of device {context.ordinal} are in use; destroy some",
        )
    asked = min(priority, LEAST_PRIORITY)
    new = context._stream_in(Stream, asked - LEAST_PRIORITY)
    new.flags, new.asked = flags, asked
    return _table.add(new), 0


@command(failed=(0,))
def create_stream(*_: object) -> tuple[int, int]:
    """aclrtCreateStream: (stream, ret), in the current context, at the highest priority."""
    return _create(0, 0)


@command("uu", (0,))
def create_stream_with_config(priority: int, flag: int, /) -> tuple[int, int]:
    """aclrtCreateStreamWithConfig: (stream, ret).

    Priorities above 7 are taken as 7, unknown flags dropped. Streams for models,
    CPU scheduling and device-only use are not supported (207000).
    """
    if flag & STREAM_HARDWARE:
        raise refuse(codes.RT_FEATURE_NOT_SUPPORT, f"streams with flag {flag:#x} belong to a model or a chip")
    return _create(priority, flag & STREAM_KEPT)


@command("h")
def destroy_stream(handle: int, /) -> int:
    """aclrtDestroyStream: wait for the stream's work, then end it."""
    end_stream(_table.own_stream(handle))
    return _forget(handle)


@command("h")
def destroy_stream_force(handle: int, /) -> int:
    """aclrtDestroyStreamForce: drop the pending work and end the stream."""
    end_stream(_table.own_stream(handle), drop=True)
    return _forget(handle)


def _forget(handle: int) -> int:
    _table.objects.pop(handle & _table.MASK, None)
    if _table.queues:
        _table.forget_unused_queues()
    return 0


@command("h")
def stream_abort(handle: int, /) -> int:
    """aclrtStreamAbort: drop the pending work; waits for the stream return 107023."""
    abort(stream(handle))
    return 0


@command("h")
def synchronize_stream(handle: int, /) -> int:
    """aclrtSynchronizeStream: wait for the work submitted so far; any thread, any context."""
    stream(handle).synchronize()
    return 0


@command("hi")
def synchronize_stream_with_timeout(handle: int, timeout: int, /) -> int:
    """aclrtSynchronizeStreamWithTimeout: milliseconds, -1 for ever, 0 is an error."""
    limit = seconds(timeout)
    try:
        stream(handle).synchronize(limit)
    except WaitTimeoutError as exc:
        # The stream's own limits end with the same kind but name another operation.
        if exc.operation != "synchronize":
            raise
        raise refuse(codes.RT_STREAM_SYNC_TIMEOUT, str(exc)) from None
    return 0


@command("h", (c.ACL_STREAM_STATUS_RESERVED,))
def stream_query(handle: int, /) -> tuple[int, int]:
    """aclrtStreamQuery: (0 complete or 1 not ready, ret)."""
    return 0 if stream(handle).query() else 1, 0


def _wait(waiting: Any, marker: Event, limit: int) -> int:
    capturable(waiting, marker)
    if limit:
        wait_limited(waiting, marker, limit)
    else:
        waiting.wait_event(marker)
    return 0


@command("hh", unrecorded=codes.RT_PARAM_INVALID)
def stream_wait_event(handle: int, marker: int, /) -> int:
    """aclrtStreamWaitEvent: later work of the stream waits for the event's latest record."""
    return _wait(stream(handle), event(marker), session.wait_limit)


@command("hhi", unrecorded=codes.RT_PARAM_INVALID)
def stream_wait_event_with_timeout(handle: int, marker: int, timeout: int, /) -> int:
    """aclrtStreamWaitEventWithTimeout (not in pyACL): seconds, 0 for ever."""
    if timeout < 0:
        raise refuse(codes.RT_PARAM_INVALID, f"the limit is 0 or more seconds, not {timeout}")
    return _wait(stream(handle), event(marker), timeout)


@command("u")
def set_op_wait_timeout(timeout: int, /) -> int:
    """aclrtSetOpWaitTimeout: seconds that later `stream_wait_event` calls wait; 0 for ever."""
    session.wait_limit = timeout
    return 0


@command("u")
def set_op_execute_time_out(timeout: int, /) -> int:
    """aclrtSetOpExecuteTimeOut: accepted; it limits kernels, and there are none yet."""
    return 0


@command("h", (0,))
def stream_get_id(handle: int, /) -> tuple[int, int]:
    """aclrtStreamGetId: (small number of the stream on its device, ret)."""
    return stream(handle).index, 0


@command("h", (0,))
def stream_get_priority(handle: int, /) -> tuple[int, int]:
    """aclrtStreamGetPriority (not in pyACL): (0 highest to 7, ret)."""
    return _table.priority(stream(handle)), 0


@command("h", (0,))
def stream_get_flags(handle: int, /) -> tuple[int, int]:
    """aclrtStreamGetFlags (not in pyACL): (flags of the creation, ret)."""
    return getattr(stream(handle), "flags", 0), 0


@command(failed=(0,))
def get_stream_available_num(*_: object) -> tuple[int, int]:
    """aclrtGetStreamAvailableNum: (streams that can still be made on this device, ret)."""
    return _left(Context.current().ordinal), 0
