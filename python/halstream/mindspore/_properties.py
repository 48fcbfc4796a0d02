"""What `mindspore.hal.get_device_properties` returns."""

from __future__ import annotations

import os

import halstream

from .. import _core as core
from .._errors import NotSupportedError
from .._interop import device_facts


def _memory(key: str) -> int:
    """Return bytes of the machine's memory; the host device has no others."""
    if halstream.backend() != "host":
        raise NotSupportedError(
            f"memory and core figures of the {halstream.backend()} backend cannot be read yet"
        )
    return int(os.sysconf(key)) * int(os.sysconf("SC_PAGE_SIZE"))


class GpuDeviceProperties:
    """A GPU's figures: mindspore's ``cudaDeviceProp``."""

    def __init__(self, device: core.Device) -> None:
        facts = device_facts(device.ordinal)
        self.name: str = facts["name"]
        self.total_memory = _memory("SC_PHYS_PAGES")
        self.major: int = facts["major"]
        self.minor: int = facts["minor"]
        self.is_multi_gpu_board = 0
        self.is_integrated = 1
        self.multi_processor_count: int = facts["multi_processor_count"]
        self.warp_size: int = facts["warp_size"]

    def __repr__(self) -> str:
        return (
            f"cudaDeviceProp(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"is_multi_gpu_board={self.is_multi_gpu_board}, is_integrated={self.is_integrated}, "
            f"multi_processor_count={self.multi_processor_count}, "
            f"total_memory={self.total_memory >> 20}MB, warp_size={self.warp_size})"
        )


class AscendDeviceProperties:
    """An Ascend device's figures; memory is 0 until the device is initialised."""

    def __init__(self, device: core.Device, initialized: bool) -> None:
        self.name = device.name
        self.total_memory = _memory("SC_PHYS_PAGES") if initialized else 0
        self.free_memory = _memory("SC_AVPHYS_PAGES") if initialized else 0

    def __repr__(self) -> str:
        return (
            f"AscendDeviceProperties(name='{self.name}', "
            f"total_memory={self.total_memory >> 20}MB, free_memory={self.free_memory >> 20}MB)"
        )
