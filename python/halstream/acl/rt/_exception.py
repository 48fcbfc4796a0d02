"""Information about work that failed, for a callback of the program."""

from __future__ import annotations

from typing import Any

from .._call import command
from .._session import session

__all__ = [
    "get_device_id_from_exception_info",
    "get_error_code_from_exception_info",
    "get_stream_id_from_exception_info",
    "get_task_id_from_exception_info",
    "get_thread_id_from_exception_info",
    "set_exception_info_callback",
]

_UNKNOWN = 0xFFFFFFFF


@command("o")
def set_exception_info_callback(function: Any, /) -> int:
    """aclrtSetExceptionInfoCallback: call ``function(info)`` when work failed; None ends it.

    Difference: the call that reports the failure makes it, on its own thread.
    """
    if function is not None and not callable(function):
        raise TypeError("acl.rt.set_exception_info_callback args parse failed")
    session.exception_callback = function
    return 0


def _field(info: Any, name: str) -> int:
    if not isinstance(info, int):
        raise TypeError(f"acl.rt.get_{name}_from_exception_info args parse failed")
    return session.exceptions.get(info, {}).get(name, _UNKNOWN)


def get_task_id_from_exception_info(info: int, /) -> int:
    """aclrtGetTaskIdFromExceptionInfo: 0xFFFFFFFF, for tasks have no numbers here."""
    return _field(info, "task_id")


def get_stream_id_from_exception_info(info: int, /) -> int:
    """aclrtGetStreamIdFromExceptionInfo: 0xFFFFFFFF if the failure has no stream."""
    return _field(info, "stream_id")


def get_thread_id_from_exception_info(info: int, /) -> int:
    """aclrtGetThreadIdFromExceptionInfo: the thread that reported the failure."""
    return _field(info, "thread_id")


def get_device_id_from_exception_info(info: int, /) -> int:
    """aclrtGetDeviceIdFromExceptionInfo: the device of the reporting thread's context."""
    return _field(info, "device_id")


def get_error_code_from_exception_info(info: int, /) -> int:
    """aclrtGetErrorCodeFromExceptionInfo: the code that the failing call returns."""
    return _field(info, "error_code")
