"""acl.mdl: captures of streams as model-running instances (``aclmdlRI``), in the manner of pyACL.

pyACL of CANN 8.5 has no names for these functions of the C library. This module gives them those that
pyACL's rule makes of the C names (``aclmdlRICaptureBegin`` is `ri_capture_begin`), with codes as results and
what C writes through pointers before the code. Strict mode hides them. An instance is a number, made by
`ri_capture_end`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NoReturn

from .. import _core, _native
from .._core._capture import begin, end
from .._core._context import Context
from .._core._graph import Graph, GraphExec
from .._dialects._not_built import NotBuiltError, not_built
from .._runtime import runtime
from . import _codes as codes
from . import constants as c
from ._call import command
from ._table import MASK, refuse, stream

__all__ = [
    "ri_capture_begin",
    "ri_capture_end",
    "ri_capture_get_info",
    "ri_capture_task_grp_begin",
    "ri_capture_task_grp_end",
    "ri_capture_task_update_begin",
    "ri_capture_task_update_end",
    "ri_capture_thread_exchange_mode",
    "ri_debug_print",
    "ri_destroy",
    "ri_execute",
    "ri_execute_async",
]

_NOT_CAPTURED = c.ACL_ERROR_RT_STREAM_NOT_CAPTURED
_IMPLICIT = c.ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT
_SYNC_TIMEOUT = codes.RT_STREAM_SYNC_TIMEOUT

#: The instances that were not destroyed, by number.
_instances: dict[int, tuple[Graph, GraphExec]] = runtime.keep("acl model-running instances", {})


def _mode(mode: int) -> int:
    if not 0 <= mode <= c.ACL_MODEL_RI_CAPTURE_MODE_RELAXED:
        raise refuse(codes.RT_PARAM_INVALID, f"there is no mode {mode} of captures")
    return mode


def _instance(number: int) -> tuple[Graph, GraphExec]:
    found = _instances.get(number & MASK)
    if found is None:
        raise refuse(codes.RT_INVALID_HANDLE, f"no model-running instance has the handle {number:#x}")
    return found


@command("hi", home="acl.mdl")
def ri_capture_begin(handle: int, mode: int, /) -> int:
    """aclmdlRICaptureBegin: later work on the stream is recorded, and does not run."""
    of = stream(handle)
    if handle & MASK == 0 or of._id == Context.current()._default_id:
        raise refuse(_IMPLICIT, "the default stream cannot capture; use another stream")
    begin(of, _mode(mode))
    return 0


@command("h", (0,), home="acl.mdl")
def ri_capture_end(handle: int, /) -> tuple[int, int]:
    """aclmdlRICaptureEnd: (instance, ret)."""
    of = stream(handle)
    if not _native.stream_capture_state(of._id):
        raise refuse(_NOT_CAPTURED, "the stream does not capture; call ri_capture_begin first")
    graph = object.__new__(Graph)
    graph._owner = end(of)
    run = graph.instantiate()
    number = run._owner.ident
    _instances[number] = graph, run
    return number, 0


@command("h", (0, 0), home="acl.mdl")
def ri_capture_get_info(handle: int, /) -> tuple[int, int, int]:
    """aclmdlRICaptureGetInfo: (status, instance, ret). The instance is 0 before the capture has ended."""
    return int(_native.stream_capture_state(stream(handle)._id)), 0, 0


@command("i", (0,), home="acl.mdl")
def ri_capture_thread_exchange_mode(mode: int, /) -> tuple[int, int]:
    """aclmdlRICaptureThreadExchangeMode: (the mode of this thread before, ret)."""
    return int(_native.capture_mode_exchange(_mode(mode))), 0


@command("hh", home="acl.mdl")
def ri_execute_async(number: int, handle: int, /) -> int:
    """aclmdlRIExecuteAsync: run what was captured, in the order of the stream."""
    _instance(number)[1].launch(stream(handle))
    return 0


@command("hi", home="acl.mdl", timeout=_SYNC_TIMEOUT)
def ri_execute(number: int, timeout: int, /) -> int:
    """aclmdlRIExecute: run it and wait, for `timeout` milliseconds or, with -1, without limit."""
    run = _instance(number)[1]
    if timeout != -1 and timeout <= 0:
        raise refuse(codes.RT_PARAM_INVALID, f"a time limit is -1 or above 0, not {timeout}")
    beside = _core.Stream()
    run.launch(beside)
    beside.synchronize(None if timeout < 0 else timeout / 1000)
    return 0


@command("h", home="acl.mdl")
def ri_destroy(number: int, /) -> int:
    """aclmdlRIDestroy: give it up; runs that were enqueued go on."""
    graph, run = _instance(number)
    del _instances[number & MASK]
    run.close()
    graph.close()
    return 0


@command("h", home="acl.mdl")
def ri_debug_print(number: int, /) -> int:
    """aclmdlRIDebugPrint: to the logger ``halstream.acl``, in the language of graphviz."""
    logging.getLogger("halstream.acl").info("%s", _instance(number)[0].dot())
    return 0


def _no_groups(of: _core.Stream) -> int:
    del of
    raise refuse(codes.RT_FEATURE_NOT_SUPPORT, "groups of tasks that can be updated are not built; capture again")


@command("h", home="acl.mdl")
def ri_capture_task_grp_begin(handle: int, /) -> int:
    """aclmdlRICaptureTaskGrpBegin: 207000, groups of tasks are not built."""
    return _no_groups(stream(handle))


@command("h", (0,), home="acl.mdl")
def ri_capture_task_grp_end(handle: int, /) -> tuple[int, int]:
    """aclmdlRICaptureTaskGrpEnd: (0, 207000)."""
    return 0, _no_groups(stream(handle))


@command("hh", home="acl.mdl")
def ri_capture_task_update_begin(handle: int, group: int, /) -> int:
    """aclmdlRICaptureTaskUpdateBegin: 207000."""
    del group
    return _no_groups(stream(handle))


@command("h", home="acl.mdl")
def ri_capture_task_update_end(handle: int, /) -> int:
    """aclmdlRICaptureTaskUpdateEnd: 207000."""
    return _no_groups(stream(handle))


if not TYPE_CHECKING:
    not_built(__name__)  # strict mode hides what is here

    def __getattr__(name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise NotBuiltError(f"acl.mdl.{name} is not built yet; halstream.acl.mdl has captures only, no models")
