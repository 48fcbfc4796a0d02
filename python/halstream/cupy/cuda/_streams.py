"""cupy.cuda.runtime: streams by their raw handles."""

from __future__ import annotations

from typing import Any

from ..._core import _current, _interop
from ..._dialects._adapt import raising
from . import _constants as constants
from ._errors import ERRORS, CUDARuntimeError, c_int, c_uint, intptr
from ._event import Event
from ._handles import NO_CALLBACK, Handle

__all__ = [
    "launchHostFunc",
    "streamAddCallback",
    "streamCreate",
    "streamCreateWithFlags",
    "streamCreateWithPriority",
    "streamDestroy",
    "streamGetFlags",
    "streamGetPriority",
    "streamQuery",
    "streamSynchronize",
    "streamWaitEvent",
]


def streamCreate() -> int:
    """cupy.cuda.runtime.streamCreate (14.2.0): the stream lives until `streamDestroy`."""
    return streamCreateWithPriority(constants.streamDefault, 0)


def streamCreateWithFlags(flags: int) -> int:
    """cupy.cuda.runtime.streamCreateWithFlags (14.2.0)."""
    return streamCreateWithPriority(flags, 0)


@raising(ERRORS)
def streamCreateWithPriority(flags: int, priority: int) -> int:
    """cupy.cuda.runtime.streamCreateWithPriority (14.2.0)."""
    bits, level = c_uint(flags), c_int(priority)
    if bits > constants.streamNonBlocking:
        raise ERRORS["invalid_value"](f"flags of a stream are 0 or 1, not {flags}")
    return _interop.new_raw(_current.current_device(), priority=level, non_blocking=bits == 1)


def streamGetFlags(stream: int) -> int:
    """cupy.cuda.runtime.streamGetFlags (14.2.0)."""
    return int(Handle.find(stream).non_blocking)


def streamGetPriority(stream: int) -> int:
    """cupy.cuda.runtime.streamGetPriority (14.2.0)."""
    return Handle.find(stream).priority


@raising(ERRORS)
def streamDestroy(stream: int) -> None:
    """cupy.cuda.runtime.streamDestroy (14.2.0): pending work still runs."""
    _interop.close_raw(intptr(stream))


def streamSynchronize(stream: int) -> None:
    """cupy.cuda.runtime.streamSynchronize (14.2.0)."""
    Handle.find(stream).synchronize()


def streamAddCallback(
    stream: int, callback: Any, arg: int, flags: int = 0, *, reads: Any = None, writes: Any = None
) -> None:
    """cupy.cuda.runtime.streamAddCallback (14.2.0): ``callback(stream, 0, arg)``. No capture takes it."""
    handle, number = intptr(stream), intptr(arg)
    c_uint(flags)
    where = Handle.find(handle)
    where._check_not_captured("streamAddCallback", NO_CALLBACK)
    where.call(callback, handle, 0, number, reads=reads, writes=writes)


def launchHostFunc(stream: int, callback: Any, arg: int, *, reads: Any = None, writes: Any = None) -> None:
    """cupy.cuda.runtime.launchHostFunc (14.2.0): ``callback(arg)``."""
    handle, number = intptr(stream), intptr(arg)
    Handle.find(handle).call(callback, number, reads=reads, writes=writes)


def streamQuery(stream: int) -> int:
    """cupy.cuda.runtime.streamQuery (14.2.0): a status, 0 done and 600 busy; never raises it."""
    try:
        return 0 if Handle.find(stream).query() else 600
    except CUDARuntimeError as exc:
        return exc.status


def streamWaitEvent(stream: int, event: int, flags: int = 0) -> None:
    """cupy.cuda.runtime.streamWaitEvent (14.2.0); 1 makes an external node of a graph, while the stream captures."""
    where, what, how = Handle.find(intptr(stream)), Event.find(intptr(event)), c_uint(flags)
    if how == 0:
        where.wait_event(what)
        return
    if how != 1:
        raise ERRORS["invalid_value"](f"there are no flags {how} of waits; give 0, or 1 for an external node")
    if not where._capturing("streamWaitEvent"):
        raise ERRORS["invalid_value"]("an external wait is a node of a graph, and the stream does not capture; give 0")
    where.wait_external(what)
