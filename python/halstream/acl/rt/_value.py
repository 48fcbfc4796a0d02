"""Values in memory that streams write and wait for."""

from __future__ import annotations

from ..._memory import _stream_values as values
from ..._native._constants import (
    CONDITION_ANY_BIT,
    CONDITION_AT_LEAST,
    CONDITION_EQUAL,
    CONDITION_MISSING_BIT,
)
from .. import _codes as codes
from .. import constants as c
from .._call import command
from .._table import refuse, stream
from ._memory import given

__all__ = ["value_wait", "value_write"]

_CONDITIONS = {
    c.ACL_STREAM_WAIT_VALUE_GEQ: CONDITION_AT_LEAST,
    c.ACL_STREAM_WAIT_VALUE_EQ: CONDITION_EQUAL,
    c.ACL_STREAM_WAIT_VALUE_AND: CONDITION_ANY_BIT,
    c.ACL_STREAM_WAIT_VALUE_NOR: CONDITION_MISSING_BIT,
}


@command("hhuh")
def value_write(pointer: int, value: int, flag: int, handle: int, /) -> int:
    """aclrtValueWrite: write 64 bits when the stream gets there; the flag is 0."""
    address, where = given(pointer), stream(handle)
    if flag:
        raise refuse(codes.RT_PARAM_INVALID, f"the flag is 0, not {flag:#x}")
    values.write_value(where, address, value)
    return 0


@command("hhuh")
def value_wait(pointer: int, value: int, flag: int, handle: int, /) -> int:
    """aclrtValueWait: later work waits until the 64 bits are >= (0), == (1), & (2) or nor (3) `value`.

    >= compares by the sign of the difference, so that counters may wrap around.
    """
    address, where = given(pointer), stream(handle)
    if flag not in _CONDITIONS:
        raise refuse(codes.RT_PARAM_INVALID, f"there is no condition {flag}")
    values.wait_value(where, address, value, _CONDITIONS[flag])
    return 0
