"""Attributes of streams: what a program sets on a stream and reads back."""

from __future__ import annotations

from typing import Any

from ... import _core
from .. import _codes as codes
from .. import _table
from .. import constants as c
from .._call import command
from .._table import Stream, refuse, stream

_KEYS = {
    c.ACL_STREAM_ATTR_FAILURE_MODE: "failureMode",
    c.ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK: "overflowSwitch",
    c.ACL_STREAM_ATTR_USER_CUSTOM_TAG: "userCustomTag",
}


def _values(handle: int, owner: _core.Stream) -> dict[int, int]:
    """Return the attributes of a stream, which then stay with its handle."""
    if not isinstance(owner, Stream):
        owner = Stream._wrap(owner)
        # By the handle that the program has: on a vendor's backend it is not the id.
        _table.objects[handle] = owner
    return owner.attributes


def _set(handle: int, attribute: int, value: int) -> int:
    owner = stream(handle)
    # An enqueue is what checks that the stream's context is current.
    owner.nop()
    values = _values(handle, owner)
    if attribute == c.ACL_STREAM_ATTR_FAILURE_MODE:
        if value not in (c.ACL_CONTINUE_ON_FAILURE, c.ACL_STOP_ON_FAILURE):
            raise refuse(codes.RT_PARAM_INVALID, f"the failure mode is 0 or 1, not {value}")
        if values.get(attribute) == c.ACL_STOP_ON_FAILURE and value != c.ACL_STOP_ON_FAILURE:
            raise refuse(codes.RT_FEATURE_NOT_SUPPORT, "the failure mode 1 cannot be undone")
    values[attribute] = value
    return 0


@command("hid")
def set_stream_attribute(handle: int, attribute: int, value: dict[str, Any], /) -> int:
    """aclrtSetStreamAttribute: ``{"failureMode": n}`` (1), ``overflowSwitch`` (2), ``userCustomTag`` (3)."""
    key = _KEYS.get(attribute)
    if key is None:
        raise refuse(codes.RT_PARAM_INVALID, f"the attribute {attribute} cannot be set")
    number = value.get(key)
    if not isinstance(number, int):
        raise refuse(codes.INVALID_PARAM, f"the attribute {attribute} needs an int under {key!r}")
    return _set(handle, attribute, number)


@command("hi", ({},))
def get_stream_attribute(handle: int, attribute: int, /) -> tuple[dict[str, Any], int]:
    """aclrtGetStreamAttribute: (dict, ret)."""
    owner = stream(handle)
    values = owner.attributes if isinstance(owner, Stream) else {}
    if attribute in _KEYS:
        return {_KEYS[attribute]: values.get(attribute, 0)}, 0
    if attribute == c.ACL_STREAM_ATTR_PRIORITY:
        return {"reserved": [_table.priority(owner), 0, 0, 0]}, 0
    raise refuse(codes.RT_PARAM_INVALID, f"there is no attribute {attribute}")


@command("hh")
def set_stream_failure_mode(handle: int, mode: int, /) -> int:
    """aclrtSetStreamFailureMode: kept and read back; a stream goes on after a failure."""
    return _set(handle, c.ACL_STREAM_ATTR_FAILURE_MODE, mode)


@command("hu")
def set_stream_overflow_switch(handle: int, switch: int, /) -> int:
    """aclrtSetStreamOverflowSwitch: kept and read back; no kernel looks at it yet."""
    return _set(handle, c.ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, switch)


@command("h", (0,))
def get_stream_overflow_switch(handle: int, /) -> tuple[int, int]:
    """aclrtGetStreamOverflowSwitch: (switch, ret)."""
    owner = stream(handle)
    values = owner.attributes if isinstance(owner, Stream) else {}
    return values.get(c.ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, 0), 0
