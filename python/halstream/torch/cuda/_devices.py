"""What torch.cuda (2.15) tells about devices."""

from __future__ import annotations

from typing import Any, NamedTuple

from ... import _core as core
from ... import _memory
from ..._core import _interop
from ..._errors import HalError
from .. import _observe
from .._device import count, device_index, existing
from .._errors import dialect_errors
from ._guards import current_stream


class _CudaDeviceProperties(NamedTuple):
    """torch.cuda.get_device_properties (2.15), without identifier.

    Read from the driver on CUDA. A device of the host backend has compute capability 0.0, so that no program
    takes it for a GPU, and as many multiprocessors as it has engines.
    """

    name: str
    major: int
    minor: int
    multi_processor_count: int
    warp_size: int
    total_memory: int


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
    return _CudaDeviceProperties(**_interop.device_facts(where), total_memory=total)


@dialect_errors
def get_device_name(device: Any = None) -> str:
    """torch.cuda.get_device_name (2.15)."""
    return core.Device(_valid(device)).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """torch.cuda.get_device_capability (2.15): (0, 0) on the host backend."""
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
    _observe.tell("device_synchronization")


def is_current_stream_capturing() -> bool:
    """torch.cuda.is_current_stream_capturing (2.15): False, for there is no graph capture yet."""
    return False


def _sleep(cycles: int) -> None:
    """torch.cuda._sleep (2.15): keeps the current stream busy, one nanosecond for a cycle."""
    if not isinstance(cycles, int):
        raise RuntimeError(
            f"torch.cuda._sleep(): expected 'int', not {type(cycles).__name__}"
        )
    current_stream().delay(max(0, cycles) / 1e9)
