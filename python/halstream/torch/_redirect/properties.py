"""What torch.cuda says about a device."""

from __future__ import annotations

import os
import uuid
from typing import Any

from ..._core import _interop

__all__ = ["CAPABILITY", "DeviceProperties", "identity", "properties"]

#: Compute capability that programs see: the first one whose kernels are all in ATen's CPU backend
#: (bfloat16 included); a higher one would make programs choose kernels for FP8 or for Hopper only.
CAPABILITY = (8, 0)


def capability() -> tuple[int, int]:
    """Return CAPABILITY, or what HALSTREAM_TORCH_CAPABILITY says, for example 9.0."""
    text = os.environ.get("HALSTREAM_TORCH_CAPABILITY", "")
    major, _, minor = text.partition(".")
    return (int(major), int(minor or 0)) if major.isdigit() and (minor or "0").isdigit() else CAPABILITY


class DeviceProperties:
    """torch.cuda.get_device_properties: a host device with the figures of a small GPU where programs divide by them."""

    __module__ = "torch._C"

    def __init__(self, name: str, total_memory: int, processors: int, own: uuid.UUID, ordinal: int) -> None:
        self.name = name
        self.major, self.minor = capability()
        self.total_memory = total_memory
        self.multi_processor_count = processors
        self.is_integrated = 1
        self.is_multi_gpu_board = 0
        self.max_threads_per_multi_processor = 2048
        self.max_threads_per_block = 1024
        self.warp_size = 32
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 48 << 10
        self.shared_memory_per_block_optin = 163 << 10
        self.shared_memory_per_multiprocessor = 164 << 10
        self.L2_cache_size = 1 << 20
        self.clock_rate = 1_000_000
        self.memory_clock_rate = 1_000_000
        self.memory_bus_width = 64
        self.gcnArchName = name
        self.pci_bus_id, self.pci_device_id, self.pci_domain_id = ordinal, 0, 0xFFFF
        self.uuid = own

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"uuid={self.uuid}, pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def properties(module: Any, ordinal: int) -> DeviceProperties:
    """Return the properties of a device."""
    _, total = module.mem_get_info(ordinal)
    processors = int(_interop.device_facts(ordinal)["multi_processor_count"])
    named = module.visible_devices()[ordinal]
    return DeviceProperties(module.device_name(ordinal), total, processors, identity(named), named)


def identity(ordinal: int) -> uuid.UUID:
    """Return the uuid of a device by its ordinal before CUDA_VISIBLE_DEVICES."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"halstream/{ordinal}")
