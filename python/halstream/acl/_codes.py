"""The numbers that ACL functions return, their names, and which failure gives which."""

from __future__ import annotations

from . import _ascendcl
from ._ascendcl import BY_KIND as BY_KIND
from ._ascendcl import BY_RULE as BY_RULE

HOST_MEMORY_ALREADY_REGISTERED: int = _ascendcl.ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED
HOST_MEMORY_NOT_REGISTERED: int = _ascendcl.ACL_ERROR_HOST_MEMORY_NOT_REGISTERED
INVALID_FILE: int = _ascendcl.ACL_ERROR_INVALID_FILE
INVALID_PARAM: int = _ascendcl.ACL_ERROR_INVALID_PARAM
PARSE_FILE: int = _ascendcl.ACL_ERROR_PARSE_FILE
REPEAT_FINALIZE: int = _ascendcl.ACL_ERROR_REPEAT_FINALIZE
REPEAT_INITIALIZE: int = _ascendcl.ACL_ERROR_REPEAT_INITIALIZE
RT_CONTEXT_NULL: int = _ascendcl.ACL_ERROR_RT_CONTEXT_NULL
RT_CONTEXT_RELEASE_ERROR: int = _ascendcl.ACL_ERROR_RT_CONTEXT_RELEASE_ERROR
RT_EVENT_SYNC_TIMEOUT: int = _ascendcl.ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
RT_EVENT_TIMESTAMP_INVALID: int = _ascendcl.ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID
RT_FEATURE_NOT_SUPPORT: int = _ascendcl.ACL_ERROR_RT_FEATURE_NOT_SUPPORT
RT_INTERNAL_ERROR: int = _ascendcl.ACL_ERROR_RT_INTERNAL_ERROR
RT_INVALID_HANDLE: int = _ascendcl.ACL_ERROR_RT_INVALID_HANDLE
RT_MEMORY_ALLOCATION: int = _ascendcl.ACL_ERROR_RT_MEMORY_ALLOCATION
RT_MEMORY_FREE: int = _ascendcl.ACL_ERROR_RT_MEMORY_FREE
RT_NO_NOTIFY_RESOURCE: int = _ascendcl.ACL_ERROR_RT_NO_NOTIFY_RESOURCE
RT_NO_STREAM_RESOURCE: int = _ascendcl.ACL_ERROR_RT_NO_STREAM_RESOURCE
RT_PARAM_INVALID: int = _ascendcl.ACL_ERROR_RT_PARAM_INVALID
RT_REPORT_TIMEOUT: int = _ascendcl.ACL_ERROR_RT_REPORT_TIMEOUT
RT_STREAM_NO_CB_REG: int = _ascendcl.ACL_ERROR_RT_STREAM_NO_CB_REG
RT_STREAM_SUBSCRIBE: int = _ascendcl.ACL_ERROR_RT_STREAM_SUBSCRIBE
RT_STREAM_SYNC_TIMEOUT: int = _ascendcl.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
RT_THREAD_SUBSCRIBE: int = _ascendcl.ACL_ERROR_RT_THREAD_SUBSCRIBE
SUCCESS: int = _ascendcl.ACL_SUCCESS

#: What a capture refuses because the host would wait for the device.
UNSAFE_IN_CAPTURE: int = _ascendcl.ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT

#: Numbers from here on are CANN's own; smaller ones come from other vendors.
FIRST = 100000

#: Name -> number, for every error of both layers.
BY_NAME: dict[str, int] = {
    name: number
    for name, number in vars(_ascendcl).items()
    if name.startswith("ACL_ERROR_") or name in ("ACL_SUCCESS", "ACL_RT_SUCCESS")
}

_NAMES = {number: name for name, number in BY_NAME.items()}


def text(function: str, code: int, why: str) -> str:
    """Return the message of a failed call: a line with a code, then an indented reason."""
    line = {1: "EE1001", 2: "EE2002"}.get(code // 100000, "EE9999")
    name = _NAMES.get(code, "unknown")
    return f"{line}: {function} failed, error code is {code} ({name}).\n        {why}"
