"""cupy.cuda.runtime: memory by its addresses."""

from __future__ import annotations

from typing import Any

from ... import _core as core
from ... import _memory
from ..._core import _current, _interop, _sharing
from ..._dialects._adapt import raising
from ..._errors import InvalidValueError
from ..._memory import _addresses
from . import _constants as constants
from ._errors import ERRORS, c_int, c_uint, intptr, size_t
from ._handles import Handle

__all__ = [
    "PointerAttributes",
    "deviceDisablePeerAccess",
    "deviceEnablePeerAccess",
    "free",
    "freeAsync",
    "freeHost",
    "hostAlloc",
    "hostRegister",
    "hostUnregister",
    "ipcCloseMemHandle",
    "ipcGetMemHandle",
    "ipcOpenMemHandle",
    "malloc",
    "mallocAsync",
    "mallocManaged",
    "memAdvise",
    "memGetInfo",
    "memPrefetchAsync",
    "pointerGetAttributes",
    "pointerGetMemoryType",
]


class PointerAttributes:
    """cupy.cuda.runtime.PointerAttributes (14.2.0)."""

    def __init__(self, device: int, devicePointer: int, hostPointer: int, type: int = -1) -> None:
        self.device: int = c_int(device)
        self.devicePointer: int = intptr(devicePointer)
        self.hostPointer: int = intptr(hostPointer)
        self.type = type


@raising(ERRORS)
def malloc(size: int) -> int:
    """cupy.cuda.runtime.malloc (14.2.0): the memory lives until `free`."""
    nbytes = size_t(size)
    return _addresses.alloc(_current.current_device(), nbytes) if nbytes else 0


@raising(ERRORS)
def mallocManaged(size: int, flags: int = constants.cudaMemAttachGlobal) -> int:
    """cupy.cuda.runtime.mallocManaged (14.2.0): on host devices all memory is the host's, too."""
    nbytes = size_t(size)
    if c_uint(flags) not in (1, 2) or not nbytes:
        raise ERRORS["invalid_value"](f"managed memory has flags 1 or 2, not {flags}, and a size")
    _interop.require_host_memory("allocate managed memory")
    return _addresses.alloc_managed(_current.current_device(), nbytes)


@raising(ERRORS)
def free(ptr: int) -> None:
    """cupy.cuda.runtime.free (14.2.0): pending work on it completes first."""
    if address := intptr(ptr):
        _addresses.check_unsafe("free")
        _addresses.free(address)


@raising(ERRORS)
def mallocAsync(size: int, stream: int) -> int:
    """cupy.cuda.runtime.mallocAsync (14.2.0)."""
    nbytes = size_t(size)
    return _addresses.alloc_in_order(Handle.find(stream), nbytes) if nbytes else 0


@raising(ERRORS)
def freeAsync(ptr: int, stream: int) -> None:
    """cupy.cuda.runtime.freeAsync (14.2.0)."""
    address, where = intptr(ptr), Handle.find(stream)
    if address:
        _addresses.free_in_order(where, address)


@raising(ERRORS)
def hostAlloc(size: int, flags: int) -> int:
    """cupy.cuda.runtime.hostAlloc (14.2.0): the flags are checked and mean nothing here."""
    nbytes = size_t(size)
    if c_uint(flags) > 7:
        raise ERRORS["invalid_value"](f"flags of pinned memory are 0 to 7, not {flags}")
    return _addresses.alloc_host(nbytes) if nbytes else 0


@raising(ERRORS)
def freeHost(ptr: int) -> None:
    """cupy.cuda.runtime.freeHost (14.2.0): status 600 while a pending operation works on it."""
    if address := intptr(ptr):
        _addresses.check_unsafe("free pinned memory")
        _addresses.free_host(address)


@raising(ERRORS)
def hostRegister(ptr: int, size: int, flags: int) -> None:
    """cupy.cuda.runtime.hostRegister (14.2.0): the flags are checked and mean nothing here."""
    address, nbytes = intptr(ptr), size_t(size)
    if c_uint(flags) > 15:
        raise ERRORS["invalid_value"](f"flags of registered memory are 0 to 15, not {flags}")
    _addresses.check_unsafe("register memory")
    try:
        _memory.register(address, nbytes)
    except InvalidValueError as exc:
        known = _memory.kind_of(address) == _memory.PINNED
        raise ERRORS["invalid_value"](str(exc), code=712 if known else 1) from None


@raising(ERRORS)
def hostUnregister(ptr: int) -> None:
    """cupy.cuda.runtime.hostUnregister (14.2.0): status 600 while pending work uses it."""
    address = intptr(ptr)
    _addresses.check_unsafe("unregister memory")
    try:
        _memory.unregister(address)
    except InvalidValueError as exc:
        raise ERRORS["invalid_value"](str(exc), code=713) from None


@raising(ERRORS)
def memGetInfo() -> tuple[int, int]:
    """cupy.cuda.runtime.memGetInfo (14.2.0): free and total bytes of the current device."""
    return _memory.memory_info()


@raising(ERRORS)
def pointerGetAttributes(ptr: int) -> PointerAttributes:
    """cupy.cuda.runtime.pointerGetAttributes (14.2.0); managed memory counts as a device's."""
    address = intptr(ptr)
    kind, _, _, device = _memory.lookup(address)
    if kind == _memory.DEVICE:
        return PointerAttributes(device, address, 0, constants.memoryTypeDevice)
    if kind == _memory.PINNED:
        here = _current.current_device()
        return PointerAttributes(here, address, address, constants.memoryTypeHost)
    return PointerAttributes(constants.cudaInvalidDeviceId, 0, address, constants.memoryTypeUnregistered)


def pointerGetMemoryType(ptr: int) -> int:
    """cupy.cuda.runtime.pointerGetMemoryType (14.2.0): ``pointerGetAttributes(ptr).type``."""
    return pointerGetAttributes(ptr).type


@raising(ERRORS)
def memPrefetchAsync(devPtr: int, count: int, dstDevice: int, stream: int) -> None:
    """cupy.cuda.runtime.memPrefetchAsync (14.2.0): moves nothing on host devices."""
    address, nbytes, device = intptr(devPtr), size_t(count), c_int(dstDevice)
    if device != constants.cudaCpuDeviceId:
        core.ordinal(device)
    kind, start, size, _ = _memory.lookup(address)
    if kind != _memory.DEVICE or address + nbytes > start + size:
        raise ERRORS["invalid_value"](f"{nbytes} bytes at {address:#x} are no managed memory")
    Handle.find(stream).nop()


@raising(ERRORS)
def memAdvise(devPtr: int, count: int, advice: int, device: int) -> None:
    """cupy.cuda.runtime.memAdvise (14.2.0): the advice is checked and not needed."""
    address, _, where = intptr(devPtr), size_t(count), c_int(device)
    if where != constants.cudaCpuDeviceId:
        core.ordinal(where)
    if not 1 <= c_int(advice) <= 6 or _memory.kind_of(address) != _memory.DEVICE:
        raise ERRORS["invalid_value"](f"advice {advice} for {address:#x}")


@raising(ERRORS)
def deviceEnablePeerAccess(peerDevice: int) -> None:
    """cupy.cuda.runtime.deviceEnablePeerAccess (14.2.0): again is no error."""
    here, peer = _current.current_device(), core.ordinal(c_int(peerDevice))
    if not _interop.can_access_peer(here, peer):
        raise ERRORS["invalid_device"](f"device {peer} is no peer of the current device")
    _interop.enable_peer(here, peer)


@raising(ERRORS)
def deviceDisablePeerAccess(peerDevice: int) -> None:
    """cupy.cuda.runtime.deviceDisablePeerAccess (14.2.0): it stays, for all users of the devices."""
    core.ordinal(c_int(peerDevice))


@raising(ERRORS)
def ipcGetMemHandle(devPtr: int) -> bytes:
    """cupy.cuda.runtime.ipcGetMemHandle (14.2.0): of the block that has the address; waits for pending work on it."""
    return _sharing.memory_handle(intptr(devPtr))


@raising(ERRORS)
def ipcOpenMemHandle(handle: bytes, flags: int = constants.cudaIpcMemLazyEnablePeerAccess) -> int:
    """cupy.cuda.runtime.ipcOpenMemHandle (14.2.0): the address of the block's start here."""
    if c_uint(flags) != constants.cudaIpcMemLazyEnablePeerAccess:
        raise ERRORS["invalid_value"](
            f"the flags are {flags}; cudaIpcMemLazyEnablePeerAccess is the only one, and needed"
        )
    return _sharing.open_memory(handle)


@raising(ERRORS)
def ipcCloseMemHandle(devPtr: Any) -> None:
    """cupy.cuda.runtime.ipcCloseMemHandle (14.2.0): pending work on the memory completes first."""
    _sharing.close_memory(intptr(devPtr))
