"""cupy.cuda.runtime: devices, versions, the profiler."""

from __future__ import annotations

import re

from ... import _core as core
from ..._core import _current, _interop
from ..._dialects import _cuda_attributes
from ..._dialects._adapt import raising
from ._errors import ERRORS, CUDARuntimeError, c_int

__all__ = [
    "check_status",
    "deviceCanAccessPeer",
    "deviceGetByPCIBusId",
    "deviceGetPCIBusId",
    "deviceSynchronize",
    "driverGetVersion",
    "getDevice",
    "getDeviceCount",
    "profilerStart",
    "profilerStop",
    "runtimeGetVersion",
    "setDevice",
]

_BUS_ID = re.compile(r"([0-9a-fA-F]{1,8}):([0-9a-fA-F]{1,2}):([0-9a-fA-F]{1,2})(\.[0-9a-fA-F])?")


def getDevice() -> int:
    """cupy.cuda.runtime.getDevice (14.2.0)."""
    return _current.current_device()


@raising(ERRORS)
def setDevice(device: int) -> None:
    """cupy.cuda.runtime.setDevice (14.2.0); undone when a ``with Device`` around it ends."""
    _current.set_device(core.ordinal(c_int(device)))


@raising(ERRORS)
def getDeviceCount() -> int:
    """cupy.cuda.runtime.getDeviceCount (14.2.0)."""
    return core.device_count()


@raising(ERRORS)
def deviceSynchronize() -> None:
    """cupy.cuda.runtime.deviceSynchronize (14.2.0)."""
    core.synchronize()


@raising(ERRORS)
def deviceCanAccessPeer(device: int, peerDevice: int) -> int:
    """cupy.cuda.runtime.deviceCanAccessPeer (14.2.0)."""
    first, second = core.ordinal(c_int(device)), core.ordinal(c_int(peerDevice))
    return int(_interop.can_access_peer(first, second))


def deviceGetPCIBusId(device: int) -> str:
    """cupy.cuda.runtime.deviceGetPCIBusId (14.2.0); host devices lie in the domain ffff."""
    return _bus_id(device)


def deviceGetByPCIBusId(pci_bus_id: str) -> int:
    """cupy.cuda.runtime.deviceGetByPCIBusId (14.2.0)."""
    if not isinstance(pci_bus_id, str):
        raise TypeError(f"Expected str, got {type(pci_bus_id).__name__}")
    match = _BUS_ID.fullmatch(pci_bus_id)
    if match is None:
        raise ERRORS["invalid_value"](f"{pci_bus_id!r} is no address on a PCI bus")
    domain, bus, device = (int(part, 16) for part in match.groups()[:3])
    if _interop.backend_name() != "host":
        return _by_bus_id(f"{domain:04x}:{bus:02x}:{device:02x}", pci_bus_id)
    if domain != _cuda_attributes.HOST_DOMAIN or device or bus >= getDeviceCount():
        raise ERRORS["invalid_device"](f"no device has the PCI bus id {pci_bus_id!r}")
    return bus


@raising(ERRORS)
def _bus_id(device: int) -> str:
    return _cuda_attributes.pci_bus_id(core.ordinal(c_int(device)))


def _by_bus_id(wanted: str, given: str) -> int:
    for ordinal in range(getDeviceCount()):
        if _bus_id(ordinal).startswith(wanted):
            return ordinal
    raise ERRORS["invalid_device"](f"no device has the PCI bus id {given!r}")


def check_status(status: int) -> None:
    """cupy.cuda.runtime.check_status (14.2.0)."""
    if c_int(status):
        raise CUDARuntimeError(status)


def runtimeGetVersion() -> int:
    """cupy.cuda.runtime.runtimeGetVersion (14.2.0): the CUDA whose behaviour this follows."""
    return 12090


def driverGetVersion() -> int:
    """cupy.cuda.runtime.driverGetVersion (14.2.0): as `runtimeGetVersion` on host devices."""
    if _interop.backend_name() != "host":
        return _driver_version()
    return 12090


@raising(ERRORS)
def _driver_version() -> int:
    return int(_interop.fact(0, "driver"))


def profilerStart() -> None:
    """cupy.cuda.runtime.profilerStart (14.2.0): does nothing, no profiler is attached."""


def profilerStop() -> None:
    """cupy.cuda.runtime.profilerStop (14.2.0): does nothing, no profiler is attached."""
