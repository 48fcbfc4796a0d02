"""Attributes of devices by CUDA's numbers, also of devices that have none of their own."""

from __future__ import annotations

from .._core import _interop
from .._core._device import Device

__all__ = ["HOST_DOMAIN", "attribute", "pci_bus_id"]

# The PCI domain of host devices: no real bus has it.
HOST_DOMAIN = 0xFFFF

_MAX_PITCH, _INTEGRATED, _PROCESSORS, _CONCURRENT, _BUS, _ENGINES, _DOMAIN = 11, 18, 16, 31, 33, 40, 50
_UNIFIED, _MAPPED, _OVERLAP, _PRIORITIES, _MANAGED, _ATOMIC, _PAGEABLE, _CONCURRENT_MANAGED = (
    41,
    19,
    15,
    78,
    83,
    86,
    88,
    89,
)
_HOST_POINTERS, _REGISTERED, _HOST_TABLES, _DIRECT, _POOLS, _POOL_HANDLES, _CONCURRENT_MANAGED = (
    91,
    99,
    100,
    101,
    115,
    119,
    89,
)

# Host devices share the host's memory: managed, pageable and registered memory are used where they lie.
_ON_HOST = frozenset(
    {_INTEGRATED, _UNIFIED, _MAPPED, _OVERLAP, _MANAGED, _ATOMIC, _PAGEABLE, _CONCURRENT_MANAGED, _HOST_POINTERS}
    | {_REGISTERED, _HOST_TABLES, _DIRECT, _POOLS}
)
_ON_NPU = frozenset({_MAPPED, _CONCURRENT, _REGISTERED, _POOLS})
# What a vendor's device has and this runtime does not offer there.
_NOT_BUILT_ON_VENDORS = frozenset({_CONCURRENT_MANAGED, _DIRECT, _MANAGED, _POOL_HANDLES})


def attribute(ordinal: int, number: int) -> int:
    """Return the attribute of a device that has a number of CUDA's; 0 for what the device does not have."""
    derived = _DERIVED.get(_interop.backend_name())
    if derived is not None:
        return derived(ordinal, number)
    if number in _NOT_BUILT_ON_VENDORS:
        return 0
    # What the driver of a device does not know, the device does not have.
    return int(_interop.fact(ordinal, f"attribute:{number}", "0"))


def pci_bus_id(ordinal: int) -> str:
    """Return a device's address on the PCI bus; host devices lie in a domain that no bus has."""
    if _interop.backend_name() != "host":
        return _interop.fact(ordinal, "pci").lower()
    return f"{HOST_DOMAIN:04x}:{ordinal:02x}:00.0"


def _has_priorities(ordinal: int) -> int:
    least, greatest = Device(ordinal).priority_range
    return int(least != greatest)


def _of_host(ordinal: int, number: int) -> int:
    """Return an attribute of a host device; what kernels may have is said by the device."""
    if number in _ON_HOST:
        return 1
    if number in (_ENGINES, _CONCURRENT):
        engines = int(_interop.device_facts(ordinal)["multi_processor_count"])
        return engines if number == _ENGINES else int(engines > 1)
    if number == _PRIORITIES:
        return _has_priorities(ordinal)
    known = {_MAX_PITCH: 2**31 - 1, _BUS: ordinal, _DOMAIN: HOST_DOMAIN}
    return known[number] if number in known else int(_interop.fact(ordinal, f"attribute:{number}", "0"))


def _of_npu(ordinal: int, number: int) -> int:
    """Return an attribute of an Ascend NPU: what this runtime offers there."""
    if number in _ON_NPU:
        return 1
    if number == _PROCESSORS:
        return int(_interop.fact(ordinal, "processors", "0"))
    return _has_priorities(ordinal) if number == _PRIORITIES else 0


#: The backends whose devices have no attributes of CUDA of their own, and what is said of them.
_DERIVED = {"host": _of_host, "ascend": _of_npu}
