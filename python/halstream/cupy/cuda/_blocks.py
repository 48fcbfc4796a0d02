"""Blocks of memory as objects: Memory, UnownedMemory, MemoryAsync, ManagedMemory."""

from __future__ import annotations

from typing import Any
from weakref import ReferenceType, ref

from ... import _core as core
from ... import _native
from ..._core import _current, _interop
from ..._dialects._adapt import raising
from ..._memory import DeviceMemory
from ..._memory._rawmem import OrderedMemory
from . import _memory_functions as runtime
from ._constants import cudaInvalidDeviceId
from ._errors import ERRORS, c_int, intptr, size_t
from ._handles import Handle
from .device import Device
from .stream import get_current_stream

_device_memory = raising(ERRORS)(DeviceMemory)


def stream_of(stream: Any) -> core.Stream:
    """Return the stream of an argument: any object with `ptr`, or None for the current one."""
    if isinstance(stream, core.Stream):
        return stream
    if stream is not None:
        return Handle.find(stream.ptr)
    current: core.Stream = get_current_stream()
    return current


def concrete(stream: core.Stream) -> core.Stream:
    """Return the calling thread's stream for the per-thread default stream, any other as it is."""
    if getattr(stream, "ptr", 0) != 2:
        return stream
    found: core.Stream = core.Device(stream._ordinal).per_thread_stream
    return found


class BaseMemory:
    """cupy.cuda.BaseMemory (14.2.0): an address, a size and the number of a device."""

    __slots__ = ("__weakref__", "_block", "device_id", "ptr", "size")

    def __init__(self) -> None:
        self._block: Any = None  # keeps the memory alive
        self.ptr: int = 0
        self.size: int = 0
        self.device_id: int = 0

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return Device(self.device_id)

    def __int__(self) -> int:
        return self.ptr

    def _waits_for(self, stream: core.Stream) -> bool:
        """Return True if, once dropped, the memory stays valid until known work of a stream has completed."""
        return False

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle or copy a {type(self).__name__}: it owns live memory")


class Memory(BaseMemory):
    """cupy.cuda.Memory (14.2.0): given back when collected, after the work pending on it."""

    __slots__ = ()

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size: int = size_t(size)
        self.device_id: int = _current.current_device()
        if self.size:
            self._block = _device_memory(self.size)
            self.ptr: Any = self._block.ptr

    def _waits_for(self, stream: core.Stream) -> bool:
        return self._block is not None and bool(self._block._waits_for(stream))


class UnownedMemory(BaseMemory):
    """cupy.cuda.UnownedMemory (14.2.0): memory of `owner`, which is kept alive."""

    __slots__ = ()

    def __init__(self, ptr: int, size: int, owner: object, device_id: int = -1) -> None:
        super().__init__()
        self.ptr: int = intptr(ptr)
        self.size: int = size_t(size)
        self._block = owner
        number = c_int(device_id)
        if number < 0:
            here = _current.current_device()
            number = runtime.pointerGetAttributes(self.ptr).device if self.ptr else here
        self.device_id: int = number


class ManagedMemory(Memory):
    """cupy.cuda.ManagedMemory (14.2.0): on host devices all memory is the host's, too."""

    __slots__ = ()

    def __init__(self, size: int) -> None:
        _check_managed("allocate managed memory")
        super().__init__(size)
        if self.ptr:
            _native.mem_mark_managed(self.ptr)

    def prefetch(self, stream: Any, *, device_id: int = cudaInvalidDeviceId) -> None:
        """Move it to a device in stream order; on host devices there is nothing to move."""
        device = self.device_id if device_id == cudaInvalidDeviceId else device_id
        runtime.memPrefetchAsync(self.ptr, self.size, device, stream_of(stream).handle)

    def advise(self, advise: int, dev: Any) -> None:
        """Say how it will be used; `dev` is a device or its number."""
        runtime.memAdvise(self.ptr, self.size, advise, int(dev))


_check_managed = raising(ERRORS)(_interop.require_host_memory)


class MemoryAsync(BaseMemory):
    """cupy.cuda.MemoryAsync (14.2.0): memory in stream order.

    Difference: always given back on its own stream, also when the stream's
    object was collected; in cupy on the stream that is current then.
    """

    __slots__ = ("stream_ref",)

    def __init__(self, size: int, stream: Any) -> None:
        super().__init__()
        where = stream_of(stream)
        self.size: int = size_t(size)
        self.device_id: int = where._ordinal
        self.stream_ref: ReferenceType[Any] = ref(stream if stream is not None else where)
        if self.size:
            self._block = _ordered_memory(self.size, concrete(where))
            self.ptr: Any = self._block.ptr

    def _waits_for(self, stream: core.Stream) -> bool:
        return self._block is not None and bool(self._block._waits_for(stream))


_ordered_memory = raising(ERRORS)(OrderedMemory)

for _name in ("BaseMemory", "ManagedMemory", "Memory", "MemoryAsync", "UnownedMemory"):
    globals()[_name].__module__ = "halstream.cupy.cuda.memory"
