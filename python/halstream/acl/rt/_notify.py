"""Notifies: binary semaphores between streams; one record lets one wait pass."""

from __future__ import annotations

import contextlib
from typing import Any

from ..._core import Event as CoreEvent
from ..._core import _context
from ..._core._context import Context
from ..._errors import HalError
from .. import _codes as codes
from .. import _table
from .. import constants as c
from .._ascendcl import MOST_NOTIFIES
from .._call import command
from .._table import Notify, refuse, stream

__all__ = [
    "create_notify",
    "destroy_notify",
    "get_notify_id",
    "notify_batch_reset",
    "notify_get_export_key",
    "notify_import_by_key",
    "notify_set_import_pid",
    "record_notify",
    "wait_and_reset_notify",
]


@command("h", (0,))
def create_notify(flag: int, /) -> tuple[int, int]:
    """aclrtCreateNotify: (notify, ret); the flag 1, for use by the device only, changes nothing."""
    if flag not in (c.ACL_NOTIFY_DEFAULT, c.ACL_NOTIFY_DEVICE_USE_ONLY):
        raise refuse(codes.RT_PARAM_INVALID, f"the flag is 0 or 1, not {flag:#x}")
    context = Context.current()
    if sum(isinstance(o, Notify) for o in list(_table.objects.values())) >= MOST_NOTIFIES:
        raise refuse(codes.RT_NO_NOTIFY_RESOURCE, f"all {MOST_NOTIFIES} notifies are in use")
    new = Notify(context.event(_context.KIND_FUTURE))
    _table.objects[new._id] = new
    return new._id, 0


@command("h")
def destroy_notify(handle: int, /) -> int:
    """aclrtDestroyNotify: never waits; pending records and waits keep their meaning."""
    _table.objects.pop(_table.notify(handle)._id, None)
    return 0


@command("hh")
def record_notify(handle: int, where: int, /) -> int:
    """aclrtRecordNotify: set the notify when the stream's work so far is done."""
    stream(where).record(_table.notify(handle).event)
    return 0


@command("hhu")
def wait_and_reset_notify(handle: int, where: int, timeout: int, /) -> int:
    """aclrtWaitAndResetNotify: later work waits until the notify is set, and clears it.

    Seconds, 0 for ever. Waits of several streams pass in the order of the calls.
    """
    marker, on = _table.notify(handle), stream(where)
    if marker.turn is not None:
        on.wait_event(marker.turn)  # the wait before this one has cleared the notify
    if timeout:
        _context.wait_limited(on, marker.event, timeout)
    else:
        on.wait_event(marker.event)
    _context.reset_event(on, marker.event)
    turn: CoreEvent = Context.current().event()
    on.record(turn)
    marker.turn = turn
    return 0


@command("o")
def notify_batch_reset(handles: Any, /) -> int:
    """aclrtNotifyBatchReset: clear several notifies; waits for the clearing only."""
    if not isinstance(handles, list):
        raise TypeError("acl.rt.notify_batch_reset args parse failed")
    markers = [_table.notify(handle) for handle in handles]
    aside = Context.current().aside
    for marker in markers:
        _context.reset_event(aside, marker.event)
    with contextlib.suppress(HalError):  # an error of earlier work is not this call's
        aside.synchronize()
    return 0


@command("h", (0,))
def get_notify_id(handle: int, /) -> tuple[int, int]:
    """aclrtGetNotifyId: (number, ret)."""
    return _table.notify(handle)._id & 0xFFFFFFFF, 0


_IPC = "notifies of other processes are not built yet"


@command("hhh", ("",))
def notify_get_export_key(handle: int, length: int, flag: int, /) -> tuple[str, int]:
    """aclrtNotifyGetExportKey: not built yet (207000)."""
    _table.notify(handle)
    raise refuse(codes.RT_FEATURE_NOT_SUPPORT, _IPC)


@command("sh", (0,))
def notify_import_by_key(key: str, flag: int, /) -> tuple[int, int]:
    """aclrtNotifyImportByKey: not built yet (207000)."""
    raise refuse(codes.RT_FEATURE_NOT_SUPPORT, _IPC)


@command("ho")
def notify_set_import_pid(handle: int, pids: Any, /) -> int:
    """aclrtNotifySetImportPid: not built yet (207000)."""
    _table.notify(handle)
    raise refuse(codes.RT_FEATURE_NOT_SUPPORT, _IPC)
