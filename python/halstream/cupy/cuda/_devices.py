"""cupy.cuda.runtime: devices, versions, the profiler."""

from __future__ import annotations

import re
from typing import Any

from ... import _core as core
from ..._core import _current, _interop
from ..._dialects._adapt import raising
from ..._memory import memory_info
from . import _constants as constants
from ._errors import ERRORS, CUDARuntimeError, c_int

__all__ = [
    "check_status",
    "deviceCanAccessPeer",
    "deviceGetAttribute",
    "deviceGetByPCIBusId",
    "deviceGetPCIBusId",
    "deviceSynchronize",
    "driverGetVersion",
    "getDevice",
    "getDeviceCount",
    "getDeviceProperties",
    "profilerStart",
    "profilerStop",
    "runtimeGetVersion",
    "setDevice",
]

# The PCI domain of host devices: no real bus has it.
_HOST_DOMAIN = 0xFFFF

ATTRIBUTES = {
    name.removeprefix("cudaDevAttr"): value
    for name, value in vars(constants).items()
    if name.startswith("cudaDevAttr")
}

# Entries of a device's properties that are attributes of it.
_PROPERTIES = {
    "multiProcessorCount": constants.cudaDevAttrMultiProcessorCount,
    "asyncEngineCount": constants.cudaDevAttrAsyncEngineCount,
    "warpSize": constants.cudaDevAttrWarpSize,
    "maxThreadsPerBlock": constants.cudaDevAttrMaxThreadsPerBlock,
    "maxThreadsPerMultiProcessor": constants.cudaDevAttrMaxThreadsPerMultiProcessor,
    "sharedMemPerBlock": constants.cudaDevAttrMaxSharedMemoryPerBlock,
    "regsPerBlock": constants.cudaDevAttrMaxRegistersPerBlock,
    "clockRate": constants.cudaDevAttrClockRate,
    "memoryClockRate": constants.cudaDevAttrMemoryClockRate,
    "memoryBusWidth": constants.cudaDevAttrGlobalMemoryBusWidth,
    "l2CacheSize": constants.cudaDevAttrL2CacheSize,
    "concurrentKernels": constants.cudaDevAttrConcurrentKernels,
    "cooperativeLaunch": constants.cudaDevAttrCooperativeLaunch,
    "streamPrioritiesSupported": constants.cudaDevAttrStreamPrioritiesSupported,
    "unifiedAddressing": constants.cudaDevAttrUnifiedAddressing,
    "managedMemory": constants.cudaDevAttrManagedMemory,
    "integrated": constants.cudaDevAttrIntegrated,
    "pciDomainID": constants.cudaDevAttrPciDomainId,
    "pciBusID": constants.cudaDevAttrPciBusId,
    "pciDeviceID": constants.cudaDevAttrPciDeviceId,
}

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


@raising(ERRORS)
def getDeviceProperties(device: int) -> dict[str, Any]:
    """cupy.cuda.runtime.getDeviceProperties (14.2.0): fewer entries than there.

    A host device has only the facts that it can have.
    """
    ordinal = core.ordinal(c_int(device))
    facts = _interop.device_facts(ordinal)
    if _interop.backend_name() != "host":
        return {
            "name": facts["name"].encode(),
            "major": facts["major"],
            "minor": facts["minor"],
            "totalGlobalMem": memory_info(ordinal)[1],
            **{name: _attribute(ordinal, number) for name, number in _PROPERTIES.items()},
        }
    return {
        "name": facts["name"].encode(),
        "major": facts["major"],
        "minor": facts["minor"],
        "multiProcessorCount": facts["multi_processor_count"],
        "asyncEngineCount": facts["multi_processor_count"],
        "warpSize": facts["warp_size"],
        "maxThreadsPerBlock": 1,
        "concurrentKernels": 1,
        "streamPrioritiesSupported": 1,
        "unifiedAddressing": 1,
        "integrated": 1,
        "pciDomainID": _HOST_DOMAIN,
        "pciBusID": ordinal,
        "pciDeviceID": 0,
    }


@raising(ERRORS)
def _attribute(ordinal: int, number: int) -> int:
    # What the driver of a device does not know, the device does not have.
    return int(_interop.fact(ordinal, f"attribute:{number}", "0"))


def deviceGetAttribute(attrib: int, device: int) -> int:
    """cupy.cuda.runtime.deviceGetAttribute (14.2.0); what a device has nothing of is 0."""
    number = c_int(attrib)
    known = getDeviceProperties(device)
    if number not in ATTRIBUTES.values():
        raise ERRORS["invalid_value"](f"no attribute of a device has the number {attrib}")
    if _interop.backend_name() != "host":
        return _attribute(c_int(device), number)
    return int(
        {
            constants.cudaDevAttrMaxThreadsPerBlock: 1,
            constants.cudaDevAttrMaxBlockDimX: 1,
            constants.cudaDevAttrMaxBlockDimY: 1,
            constants.cudaDevAttrMaxBlockDimZ: 1,
            constants.cudaDevAttrWarpSize: known["warpSize"],
            constants.cudaDevAttrGpuOverlap: 1,
            constants.cudaDevAttrMultiProcessorCount: known["multiProcessorCount"],
            constants.cudaDevAttrIntegrated: 1,
            constants.cudaDevAttrConcurrentKernels: 1,
            constants.cudaDevAttrPciBusId: known["pciBusID"],
            constants.cudaDevAttrAsyncEngineCount: known["asyncEngineCount"],
            constants.cudaDevAttrUnifiedAddressing: 1,
            constants.cudaDevAttrPciDomainId: _HOST_DOMAIN,
            constants.cudaDevAttrStreamPrioritiesSupported: 1,
        }.get(number, 0)
    )


def deviceGetPCIBusId(device: int) -> str:
    """cupy.cuda.runtime.deviceGetPCIBusId (14.2.0); host devices lie in the domain ffff."""
    known = getDeviceProperties(device)
    if _interop.backend_name() != "host":
        return _bus_id(c_int(device))
    return f"{known['pciDomainID']:04x}:{known['pciBusID']:02x}:{known['pciDeviceID']:02x}.0"


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
    if domain != _HOST_DOMAIN or device or bus >= getDeviceCount():
        raise ERRORS["invalid_device"](f"no device has the PCI bus id {pci_bus_id!r}")
    return bus


@raising(ERRORS)
def _bus_id(ordinal: int) -> str:
    return _interop.fact(ordinal, "pci").lower()


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
