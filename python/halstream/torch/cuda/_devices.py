"""torch.cuda (2.15): devices and their properties."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _core as core
from ... import _memory
from ..._core import _interop
from ..._errors import HalError
from .._device import count, device_index, existing
from .._errors import dialect_errors
from ._guards import current_stream


class _CudaDeviceProperties(NamedTuple):
    """torch.cuda.get_device_properties (2.15); what a device does not have is 0.

    Read from the driver on CUDA. A device of the host backend has the compute
    capability of the kernels that it executes, 8.0, with their limits, and as many
    multiprocessors as it has engines. Differences: `uuid` is a text.
    """

    name: str
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    total_memory: int
    uuid: str
    is_integrated: int
    is_multi_gpu_board: int
    max_threads_per_multi_processor: int
    max_threads_per_block: int
    L2_cache_size: int
    clock_rate: int
    memory_clock_rate: int
    memory_bus_width: int
    shared_memory_per_block: int
    shared_memory_per_block_optin: int
    shared_memory_per_multiprocessor: int
    regs_per_multiprocessor: int
    pci_bus_id: int
    pci_device_id: int
    pci_domain_id: int

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"pci_bus_id={self.pci_bus_id}, pci_device_id={self.pci_device_id}, "
            f"pci_domain_id={self.pci_domain_id}, L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


# Properties that are one attribute of a device each, and what a host device has that does not know the attribute.
_ATTRIBUTES = {
    "is_integrated": (18, 1),
    "is_multi_gpu_board": (84, 0),
    "max_threads_per_multi_processor": (39, 0),
    "max_threads_per_block": (1, 0),
    "L2_cache_size": (38, 0),
    "clock_rate": (13, 0),
    "memory_clock_rate": (36, 0),
    "memory_bus_width": (37, 0),
    "shared_memory_per_block": (8, 0),
    "shared_memory_per_block_optin": (97, 0),
    "shared_memory_per_multiprocessor": (81, 0),
    "regs_per_multiprocessor": (82, 0),
    "pci_bus_id": (33, None),  # the ordinal
    "pci_device_id": (34, 0),
    "pci_domain_id": (50, 0xFFFF),
}


def _attributes(ordinal: int) -> dict[str, Any]:
    host = _interop.backend_name() == "host"
    return {
        name: int(_interop.fact(ordinal, f"attribute:{number}", str(ordinal if own is None else own) if host else "0"))
        for name, (number, own) in _ATTRIBUTES.items()
    }


def device_count() -> int:
    """torch.cuda.device_count (2.15): 0 where no backend can be used; never raises."""
    try:
        return core.device_count()
    except HalError:
        return 0


def is_available() -> bool:
    """torch.cuda.is_available (2.15): True for every backend with a device; never raises."""
    return device_count() > 0


@dialect_errors
def _open() -> None:
    _interop.open_backend()


def is_initialized() -> bool:
    """torch.cuda.is_initialized (2.15): True once this process has used the runtime."""
    return _interop.initialized()


def init() -> None:
    """torch.cuda.init (2.15): opens the backend, which its first use does as well."""
    _open()


def _lazy_init() -> None:
    """torch.cuda._lazy_init (2.15): as `init`."""
    _open()


def _is_in_bad_fork() -> bool:
    """torch.cuda._is_in_bad_fork (2.15): True in a child that was forked after the first use."""
    return _interop.in_forked_child()


def _valid(device: Any, name: str = "device") -> int:
    index = device_index(device, optional=True)
    if not 0 <= index < count():
        raise AssertionError(f"Invalid {name} id")
    return index


@dialect_errors
def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """torch.cuda.get_device_properties (2.15)."""
    where = _valid(device)
    _, total = _memory.memory_info(where)
    return _CudaDeviceProperties(
        **_interop.device_facts(where),
        total_memory=total,
        uuid=_interop.device_uuid(where),
        **_attributes(where),
    )


@dialect_errors
def get_device_name(device: Any = None) -> str:
    """torch.cuda.get_device_name (2.15)."""
    return core.Device(_valid(device)).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """torch.cuda.get_device_capability (2.15): (8, 0) on the host backend."""
    facts = get_device_properties(device)
    return facts.major, facts.minor


@dialect_errors
def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """torch.cuda.can_device_access_peer (2.15): a device is no peer of itself."""
    return _interop.can_access_peer(_valid(device), _valid(peer_device, "peer device"))


@dialect_errors
def synchronize(device: Any = None) -> None:
    """torch.cuda.synchronize (2.15): waits for all streams of the device, of all threads."""
    core.synchronize(existing(device_index(device, optional=True)))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """torch.cuda.is_bf16_supported (2.15): from compute capability 8.0 on; nothing is emulated here."""
    return get_device_capability() >= (8, 0)


def is_tf32_supported() -> bool:
    """torch.cuda.is_tf32_supported (2.15): from compute capability 8.0 on."""
    return get_device_capability() >= (8, 0)


def get_arch_list() -> list[str]:
    """torch.cuda.get_arch_list (2.15): no kernels are compiled in, so none."""
    return []


def get_gencode_flags() -> str:
    """torch.cuda.get_gencode_flags (2.15): no kernels are compiled in, so none."""
    return ""


def ipc_collect() -> None:
    """torch.cuda.ipc_collect (2.15): arrays of the mirror are not sent to other processes."""


def is_current_stream_capturing() -> bool:
    """torch.cuda.is_current_stream_capturing (2.15): False as well before the runtime is first used."""
    return is_initialized() and current_stream().is_capturing()


def _sleep(cycles: int) -> None:
    """torch.cuda._sleep (2.15): keeps the current stream busy, one nanosecond for a cycle."""
    if not isinstance(cycles, int):
        raise RuntimeError(f"torch.cuda._sleep(): expected 'int', not {type(cycles).__name__}")
    current_stream().delay(max(0, cycles) / 1e9)
