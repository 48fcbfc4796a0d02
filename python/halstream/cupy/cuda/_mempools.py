"""cupy.cuda.runtime: pools of stream-ordered memory.

A device has one such pool here. `memPoolCreate` gives a further handle of it:
figures and limits are those of the device.
"""

from __future__ import annotations

from typing import Any

from ... import _memory
from ..._dialects._adapt import raising
from ..._memory import _addresses, _rawmem
from . import _constants as constants
from ._errors import ERRORS, c_int, intptr, size_t
from ._handles import Handle

__all__ = [
    "MemPoolProps",
    "deviceGetDefaultMemPool",
    "deviceGetMemPool",
    "deviceSetMemPool",
    "mallocFromPoolAsync",
    "memPoolCreate",
    "memPoolDestroy",
    "memPoolGetAttribute",
    "memPoolSetAttribute",
    "memPoolTrimTo",
]

_FIGURES = {
    constants.cudaMemPoolAttrReleaseThreshold: "threshold",
    constants.cudaMemPoolAttrReservedMemCurrent: "reserved",
    constants.cudaMemPoolAttrReservedMemHigh: "reserved_high",
    constants.cudaMemPoolAttrUsedMemCurrent: "used",
    constants.cudaMemPoolAttrUsedMemHigh: "used_high",
}


class MemPoolProps:
    """cupy.cuda.runtime.MemPoolProps (14.2.0)."""

    def __init__(self, allocType: int, handleType: int, locationType: int, devId: int) -> None:
        self._device = c_int(devId)
        self._kinds = c_int(allocType), c_int(handleType), c_int(locationType)


@raising(ERRORS)
def deviceGetDefaultMemPool(device: int) -> int:
    """cupy.cuda.runtime.deviceGetDefaultMemPool (14.2.0)."""
    return _rawmem.default_pool(c_int(device))


def deviceGetMemPool(device: int) -> int:
    """cupy.cuda.runtime.deviceGetMemPool (14.2.0): always the default one."""
    return deviceGetDefaultMemPool(device)


@raising(ERRORS)
def deviceSetMemPool(device: int, pool: int) -> None:
    """cupy.cuda.runtime.deviceSetMemPool (14.2.0): any handle names the device's one pool."""
    default = _rawmem.default_pool(c_int(device))
    if _rawmem.pool_device(intptr(pool)) != _rawmem.pool_device(default):
        raise ERRORS["invalid_value"](f"pool {pool:#x} belongs to another device than {device}")


@raising(ERRORS)
def memPoolCreate(props: MemPoolProps) -> int:
    """cupy.cuda.runtime.memPoolCreate (14.2.0): a further handle of the device's one pool."""
    allocation, handle, location = props._kinds
    if (allocation, location) != (1, 1):
        raise ERRORS["invalid_value"]("a pool has pinned allocations on a device: types 1 and 1")
    if handle:
        raise ERRORS["not_supported"]("pools shared with other processes are not built yet")
    return _rawmem.open_pool(props._device)


@raising(ERRORS)
def memPoolDestroy(pool: int) -> None:
    """cupy.cuda.runtime.memPoolDestroy (14.2.0): memory taken from it stays valid."""
    _rawmem.close_pool(intptr(pool))


@raising(ERRORS)
def memPoolTrimTo(pool: int, size: int) -> None:
    """cupy.cuda.runtime.memPoolTrimTo (14.2.0)."""
    _memory.trim_pool(_rawmem.pool_device(intptr(pool)), size_t(size))


@raising(ERRORS)
def memPoolGetAttribute(pool: int, attr: int) -> int:
    """cupy.cuda.runtime.memPoolGetAttribute (14.2.0): reuse (1, 2, 3) is always allowed."""
    device, number = _rawmem.pool_device(intptr(pool)), c_int(attr)
    _addresses.check_unsafe("read an attribute of a pool")
    if number in (1, 2, 3):
        return 1
    if number not in _FIGURES:
        raise ERRORS["invalid_value"](f"no attribute of a pool has the number {attr}")
    return _memory.pool_stats(device)[_FIGURES[number]]


@raising(ERRORS)
def memPoolSetAttribute(pool: int, attr: int, value: Any) -> None:
    """cupy.cuda.runtime.memPoolSetAttribute (14.2.0); a high figure can only become 0."""
    device, number = _rawmem.pool_device(intptr(pool)), c_int(attr)
    _addresses.check_unsafe("set an attribute of a pool")
    if number == constants.cudaMemPoolAttrReleaseThreshold:
        _memory.set_pool_threshold(size_t(value), device)
    elif number in (
        constants.cudaMemPoolAttrReservedMemHigh,
        constants.cudaMemPoolAttrUsedMemHigh,
    ) and not size_t(value):
        used = number == constants.cudaMemPoolAttrUsedMemHigh
        _memory.reset_pool_peaks(device, used=used, reserved=not used)
    elif number not in (1, 2, 3):
        raise ERRORS["invalid_value"](f"attribute {attr} of a pool cannot become {value}")


@raising(ERRORS)
def mallocFromPoolAsync(size: int, pool: int, stream: int) -> int:
    """cupy.cuda.runtime.mallocFromPoolAsync (14.2.0)."""
    nbytes, device, where = size_t(size), _rawmem.pool_device(intptr(pool)), Handle.find(stream)
    if where._ordinal != device:
        raise ERRORS["invalid_value"](f"the stream is not of the pool's device {device}")
    return _addresses.alloc_in_order(where, nbytes) if nbytes else 0
