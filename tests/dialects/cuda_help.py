"""What the tests of cuda.core share: a device that is current, kernels, and numbers in pinned memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from halstream.cuda import core

#: Adds 1 to a number; adds one number to another.
PTX = b"""
.version 7.0
.target sm_50
.address_size 64
.visible .entry increment(.param .u64 to)
{
    .reg .u64 %to;
    .reg .u32 %x;
    ld.param.u64 %to, [to];
    ld.global.u32 %x, [%to];
    add.u32 %x, %x, 1;
    st.global.u32 [%to], %x;
    ret;
}
.visible .entry add(.param .u64 to, .param .u32 by)
{
    .reg .u64 %to;
    .reg .u32 %x, %by;
    ld.param.u64 %to, [to];
    ld.param.u32 %by, [by];
    ld.global.u32 %x, [%to];
    add.u32 %x, %x, %by;
    st.global.u32 [%to], %x;
    ret;
}
"""
ONE = core.LaunchConfig(grid=1, block=1)


def device(number: int = 0) -> core.Device:
    """Return a device, made current."""
    found = core.Device(number)
    found.set_current()
    return found


def kernel(name: str = "increment") -> core.Kernel:
    """Return one of the kernels of `PTX`."""
    return core.ObjectCode.from_ptx(PTX).get_kernel(name)


def numbers(*values: int) -> tuple[core.Buffer, Any]:
    """Return a buffer of 32-bit numbers in pinned memory, and its view."""
    buffer = core.LegacyPinnedMemoryResource().allocate(4 * len(values))
    view = np.from_dlpack(buffer).view(np.uint32)
    view[:] = values
    return buffer, view
