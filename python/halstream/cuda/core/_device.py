"""Device: where streams, events and memory are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ... import _core as core
from ..._core import _current, _interop
from ..._dialects._adapt import raising
from ..._dialects._cuda_attributes import pci_bus_id
from . import _threads
from ._arguments import checked, missing_method, missing_property, ordinal_of
from ._buffer import Buffer, MemoryResource
from ._context import Context
from ._errors import ERRORS, CUDAError
from ._event import Event
from ._properties import DeviceProperties
from ._resources import DeviceMemoryResource
from ._stream import Stream, default_stream

if TYPE_CHECKING:
    from .graph import GraphBuilder

__all__ = ["ComputeCapability", "Device"]

D = TypeVar("D", bound="Device")

_synchronize = raising(ERRORS)(core.synchronize)
_facts, _uuid = raising(ERRORS)(_interop.device_facts), raising(ERRORS)(_interop.device_uuid)
_can_access = raising(ERRORS)(_interop.can_access_peer)


class ComputeCapability(NamedTuple):
    """The compute capability of a device."""

    major: int
    minor: int


class Device(core.Device):
    """cuda.core.Device (1.2.2): of each device one object in each thread.

    Differences: `sync` takes a time limit; there are no other contexts than the primary ones.
    """

    __module__ = "halstream.cuda.core"  # strict mode, which knows classes by it, sees them as they are made
    __slots__ = ("__weakref__", "_ready", "_resource")

    _ready: bool  # whether it was made current on its thread
    _resource: MemoryResource | None

    def __new__(cls: type[D], device_id: Any = None) -> D:
        ordinal = ordinal_of(device_id)
        known: dict[int, Any] = _threads.devices()
        found: D | None = known.get(ordinal)
        if found is None:
            found = object.__new__(cls)
            found._ordinal, found._ready, found._resource = ordinal, False, None
            known[ordinal] = found
        return found

    def __init__(self, device_id: Any = None) -> None:
        pass

    def _check_ready(self) -> None:
        """Raise an error if the device was not made current on this thread."""
        if not self._ready:
            raise CUDAError(
                f"Device {self._ordinal} is not yet initialized, perhaps you forgot to call .set_current() first?"
            )

    @classmethod
    def get_all_devices(cls) -> tuple[Device, ...]:
        """Return all devices."""
        return tuple(cls(ordinal) for ordinal in range(core.device_count()))

    # -- what it is ---------------------------------------------------------

    @property
    def device_id(self) -> int:
        """Number of the device."""
        return self._ordinal

    @property
    def uuid(self) -> str:
        """UUID of the device; host devices have one made of the machine's name."""
        return _uuid(self._ordinal)

    @property
    def pci_bus_id(self) -> str:
        """Address on the PCI bus; host devices lie in the domain ffff, which no bus has."""
        return _bus_id(self._ordinal)

    @property
    def compute_capability(self) -> ComputeCapability:
        """Major and minor number; (8, 0) for a host device."""
        known = _facts(self._ordinal)
        return ComputeCapability(known["major"], known["minor"])

    @property
    def arch(self) -> str:
        """The compute capability as text; '80' for a host device."""
        major, minor = self.compute_capability
        return f"{major}{minor}"

    @property
    def properties(self) -> DeviceProperties:
        """Attributes of the device."""
        return DeviceProperties._of(self._ordinal)

    def can_access_peer(self, peer: Any) -> bool:
        """Return True if it can use the memory of a device."""
        other = ordinal_of(peer)
        return other == self._ordinal or _can_access(self._ordinal, other)

    resources = missing_property("cuda.core.Device.resources")
    to_system_device = missing_method("cuda.core.Device.to_system_device")

    # -- what is current ------------------------------------------------------

    def set_current(self, ctx: Context | None = None) -> Context | None:
        """Make it current on the calling thread; with a context make its device current, and return what was."""
        if ctx is None:
            ordinal, before = self._ordinal, None
        else:
            ordinal = checked(ctx, Context, "ctx")._ordinal
            if ordinal != self._ordinal:
                raise RuntimeError(
                    f"the provided context was created on the device with id={ordinal}, which is different from the "
                    f"target id={self._ordinal}"
                )
            before = Context._of(_current.current_device())
        _current.set_device(ordinal)
        _threads.set_context()
        self._ready = True
        return before

    @property
    def context(self) -> Context:
        """Its context."""
        self._check_ready()
        return Context._of(self._ordinal)

    @property
    def default_stream(self) -> Stream:
        """The default stream of the current device, as the package has it."""
        _threads.require_context()
        return default_stream()

    create_context = missing_method("cuda.core.Device.create_context")

    # -- what it makes --------------------------------------------------------

    def create_stream(self, obj: Any = None, options: Any = None) -> Stream:
        """Return a new stream, or the one of an object that has the method ``__cuda_stream__``."""
        self._check_ready()
        if obj is not None and options is not None:
            raise ValueError("obj and options cannot be both specified at the same time")
        return Stream._new(self._ordinal, options) if obj is None else Stream._of(obj)

    def create_event(self, options: Any = None) -> Event:
        """Return a new event, which nothing has recorded."""
        self._check_ready()
        return Event._free(self._ordinal, options)

    @property
    def memory_resource(self) -> MemoryResource:
        """What `allocate` takes memory from; by default the device's pool."""
        if self._resource is None:
            self._resource = DeviceMemoryResource(self._ordinal)
        return self._resource

    @memory_resource.setter
    def memory_resource(self, mr: MemoryResource) -> None:
        self._resource = checked(mr, MemoryResource, "mr")

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Return memory of `memory_resource`."""
        self._check_ready()
        return self.memory_resource.allocate(size, stream=stream)

    def create_graph_builder(self) -> GraphBuilder:
        """Return a builder of graphs with a stream of its own."""
        self._check_ready()
        return self.create_stream().create_graph_builder()

    def sync(self, timeout: float | None = None) -> None:
        """Wait for all work of the device; `timeout` in seconds is an addition."""
        self._check_ready()
        _synchronize(self._ordinal, timeout)

    create_opaque_array = missing_method("cuda.core.Device.create_opaque_array")
    create_mipmapped_array = missing_method("cuda.core.Device.create_mipmapped_array")
    create_texture_object = missing_method("cuda.core.Device.create_texture_object")
    create_surface_object = missing_method("cuda.core.Device.create_surface_object")

    def __int__(self) -> int:
        return self._ordinal

    def __eq__(self, other: object) -> bool:
        return self._ordinal == other.ordinal if isinstance(other, core.Device) else NotImplemented

    __hash__ = core.Device.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self._ordinal,)

    def __repr__(self) -> str:
        return f"<Device {self._ordinal} ({self.name})>"


_bus_id = raising(ERRORS)(pci_bus_id)

Stream._device_class = Event._device_class = Device
