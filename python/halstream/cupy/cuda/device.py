"""cupy.cuda.device (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ... import _core as core
from ..._core import _current, _interop
from ..._dialects._adapt import raising
from ..._memory import memory_info
from . import _devices as runtime
from ._errors import ERRORS, check_may_wait, unsupported
from ._errors import not_built as _not_built
from ._memory_functions import pointerGetAttributes
from ._properties import all_attributes

__all__ = ["Device", "from_pointer", "get_compute_capability", "get_device_id"]

D = TypeVar("D", bound="Device")

_memory_info = raising(ERRORS)(memory_info)


@raising(ERRORS)
def _facts(device: int) -> dict[str, Any]:
    return _interop.device_facts(core.ordinal(device))


_LIBRARIES = "handles of CUDA libraries are not built yet"


class Device(core.Device):
    """cupy.cuda.Device (14.2.0); checked at use, never equal to a number, unhashable.

    Differences: `priority_range` and `name` are there, library handles are not yet.
    """

    __slots__ = ()
    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __init__(self, device: Any = None) -> None:
        self._ordinal = _current.current_device() if device is None else int(device)

    @classmethod
    def from_pci_bus_id(cls: type[D], pci_bus_id: str) -> D:
        """Return the device at an address of the PCI bus."""
        return cls(runtime.deviceGetByPCIBusId(pci_bus_id))

    @property
    def id(self) -> int:
        """Ordinal of the device."""
        return self.ordinal

    @id.setter
    def id(self, value: int) -> None:
        self._ordinal = int(value)

    @raising(ERRORS)
    def use(self: D) -> D:
        """Make it current on this thread; undone when a ``with Device`` around it ends."""
        _current.set_device(core.ordinal(self.ordinal))
        return self

    @raising(ERRORS)
    def __enter__(self: D) -> D:
        _current.enter_device(core.ordinal(self.ordinal))
        return self

    def __exit__(self, *args: object) -> None:
        _current.leave_device(self.ordinal)

    @raising(ERRORS)
    def synchronize(self, timeout: float | None = None) -> None:
        """Wait for all work of the device; `timeout` in seconds is an addition."""
        check_may_wait()
        core.synchronize(self.ordinal, timeout)

    @property
    def compute_capability(self) -> str:
        """Major and minor number; '80' for a host device."""
        known = _facts(self.ordinal)
        return f"{known['major']}{known['minor']}"

    @property
    def attributes(self) -> dict[str, int]:
        """Every attribute of the device; what a host device has nothing of is 0."""
        return all_attributes(self.ordinal)

    @property
    def pci_bus_id(self) -> str:
        """Address on the PCI bus; host devices lie in the domain ffff, which no bus has."""
        return runtime.deviceGetPCIBusId(self.ordinal)

    @property
    def mem_info(self) -> tuple[int, int]:
        """Free and total bytes."""
        return _memory_info(self.ordinal)

    @property
    def cublas_handle(self) -> int:
        """Not built yet."""
        raise unsupported(_LIBRARIES)

    @property
    def cusolver_handle(self) -> int:
        """Not built yet."""
        raise unsupported(_LIBRARIES)

    @property
    def cusolver_sp_handle(self) -> int:
        """Not built yet."""
        raise unsupported(_LIBRARIES)

    @property
    def cusparse_handle(self) -> int:
        """Not built yet."""
        raise unsupported(_LIBRARIES)

    @property
    def cutensor_handle(self) -> int:
        """Not built yet."""
        raise unsupported(_LIBRARIES)

    def __int__(self) -> int:
        return self.ordinal

    def __eq__(self, other: object) -> bool:
        return self.ordinal == other.ordinal if isinstance(other, core.Device) else NotImplemented

    def __lt__(self, other: Device) -> bool:
        return self.ordinal < other.ordinal if isinstance(other, Device) else NotImplemented

    def __le__(self, other: Device) -> bool:
        return self.ordinal <= other.ordinal if isinstance(other, Device) else NotImplemented

    def __gt__(self, other: Device) -> bool:
        return self.ordinal > other.ordinal if isinstance(other, Device) else NotImplemented

    def __ge__(self, other: Device) -> bool:
        return self.ordinal >= other.ordinal if isinstance(other, Device) else NotImplemented

    def __repr__(self) -> str:
        return f"<CUDA Device {self.ordinal}>"


def get_device_id() -> int:
    """cupy.cuda.get_device_id (14.2.0)."""
    return _current.current_device()


def get_compute_capability() -> str:
    """cupy.cuda.device.get_compute_capability (14.2.0), of the current device."""
    return Device().compute_capability


def from_pointer(ptr: int) -> Device:
    """cupy.cuda.device.from_pointer (14.2.0): the owner of an address."""
    return Device(pointerGetAttributes(ptr).device)


__getattr__: Callable[[str], Any] = _not_built(__name__)
