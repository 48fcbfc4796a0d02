"""What the programs in AscendCL share."""

from __future__ import annotations

import ctypes

import numpy as np
from halstream import acl


def begin() -> None:
    """Make sure that this thread has a device."""
    if acl.rt.get_device()[1]:
        acl.init()  # an error if another program has done so, which is as good
        ok(acl.rt.set_device(0))


def made(result: tuple[int, int]) -> int:
    """Return what a call made; its code must be 0."""
    value, code = result
    ok(code)
    return value


def ok(*codes: int) -> None:
    """Check that every call said success."""
    assert not any(codes), f"{codes}: {acl.get_recent_err_msg()}"


def device_block(size: int) -> int:
    """Return device memory of zeros; they are there on return."""
    block = made(acl.rt.malloc(size, acl.ACL_MEM_MALLOC_HUGE_FIRST))
    ok(acl.rt.memset(block, size, 0, size))
    return block


def host_block(size: int) -> tuple[np.ndarray, int]:
    """Return bytes of pinned memory as an array, and their address."""
    address = made(acl.rt.malloc_host(size))
    return np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8), address
