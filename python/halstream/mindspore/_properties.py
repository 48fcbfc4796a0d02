"""What `mindspore.hal.get_device_properties` returns."""

from __future__ import annotations

import os

import halstream

from .. import _core as core
from .._core._interop import device_facts, fact
from .._memory import memory_info


def _memory(ordinal: int) -> tuple[int, int]:
    """Return the free and the total bytes; on the host device those of the machine."""
    if halstream.backend() != "host":
        return memory_info(ordinal)
    page = int(os.sysconf("SC_PAGE_SIZE"))
    return int(os.sysconf("SC_AVPHYS_PAGES")) * page, int(os.sysconf("SC_PHYS_PAGES")) * page


def _flag(ordinal: int, attribute: int, on_host: int) -> int:
    """Return an attribute that is 0 or 1, by CUDA's number."""
    if halstream.backend() != "cuda":
        return on_host
    return int(fact(ordinal, f"attribute:{attribute}", "0"))


_INTEGRATED, _MULTI_GPU_BOARD = 18, 84


class GpuDeviceProperties:
    """A GPU's figures: mindspore's ``cudaDeviceProp``."""

    def __init__(self, device: core.Device) -> None:
        facts = device_facts(device.ordinal)
        self.name: str = facts["name"]
        self.total_memory: int = _memory(device.ordinal)[1]
        self.major: int = facts["major"]
        self.minor: int = facts["minor"]
        self.is_multi_gpu_board: int = _flag(device.ordinal, _MULTI_GPU_BOARD, 0)
        self.is_integrated: int = _flag(device.ordinal, _INTEGRATED, 1)
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
        self.name: str = device.name
        free, total = _memory(device.ordinal) if initialized else (0, 0)
        self.free_memory: int = free
        self.total_memory: int = total

    def __repr__(self) -> str:
        return (
            f"AscendDeviceProperties(name='{self.name}', "
            f"total_memory={self.total_memory >> 20}MB, free_memory={self.free_memory >> 20}MB)"
        )
