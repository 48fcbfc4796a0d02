"""What gives out buffers: of devices, of pinned memory, and of graphs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from ..._core._strict import strict
from ..._dialects._adapt import raising
from ..._errors import ClosedError, NotSupportedError
from ..._memory import PinnedMemory, pool_stats
from ..._memory._addresses import free_host, free_in_order
from ..._memory._rawmem import OrderedMemory, close_pool, default_pool, open_pool
from ..._runtime import runtime
from ._arguments import missing_method, missing_property, options_of, ordinal_of, size_of
from ._buffer import Buffer, MemoryResource
from ._errors import ERRORS, closed
from ._stream import Stream, on_this_thread, stream_of

__all__ = [
    "DeviceMemoryResource",
    "DeviceMemoryResourceOptions",
    "GraphMemoryResource",
    "LegacyPinnedMemoryResource",
    "PinnedMemoryResource",
    "PinnedMemoryResourceOptions",
]

_ordered = raising(ERRORS)(OrderedMemory)
_pinned = raising(ERRORS)(PinnedMemory)
_free_in_order, _free_host = raising(ERRORS)(free_in_order), raising(ERRORS)(free_host)
_figures = raising(ERRORS)(pool_stats)
_default_pool, _open_pool = raising(ERRORS)(default_pool), raising(ERRORS)(open_pool)


@dataclass
class DeviceMemoryResourceOptions:
    """cuda.core.DeviceMemoryResourceOptions (1.2.2)."""

    ipc_enabled: bool = False
    max_size: int = 0


@dataclass
class PinnedMemoryResourceOptions:
    """cuda.core.PinnedMemoryResourceOptions (1.2.2)."""

    ipc_enabled: bool = False
    max_size: int = 0
    numa_id: int | None = None


def _refuse_ipc(options: Any) -> None:
    if options.ipc_enabled:
        raise NotSupportedError("memory of other processes is not built yet", operation="create memory resource")


def _in_order(size: int, stream: Stream, ordinal: int) -> OrderedMemory:
    """Return memory of a device in the order of a stream of it."""
    if stream._ordinal != ordinal:
        raise ERRORS["invalid_value"](
            f"the memory is of device {ordinal} and the stream of device {stream._ordinal}; give a stream of device "
            f"{ordinal}"
        )
    return _ordered(size, on_this_thread(stream))


class MemPoolAttributes:
    """What a pool of a device's memory holds."""

    def __init__(self, ordinal: int) -> None:
        self._ordinal = ordinal

    @property
    def used_mem_current(self) -> int:
        """Bytes in use."""
        return _figures(self._ordinal)["used"]

    @property
    def used_mem_high(self) -> int:
        """Most bytes that were in use."""
        return _figures(self._ordinal)["used_high"]

    @property
    def reserved_mem_current(self) -> int:
        """Bytes that the pool holds, in use and free."""
        return _figures(self._ordinal)["reserved"]

    @property
    def reserved_mem_high(self) -> int:
        """Most bytes that the pool has held."""
        return _figures(self._ordinal)["reserved_high"]

    @property
    def release_threshold(self) -> int:
        """Bytes that the pool keeps when they are free."""
        return _figures(self._ordinal)["threshold"]

    def __repr__(self) -> str:
        names = ("release_threshold", "reserved_mem_current", "reserved_mem_high", "used_mem_current", "used_mem_high")
        return f"_MemPoolAttributes({', '.join(f'{name}={getattr(self, name)}' for name in names)})"


class _OfOneProcess(MemoryResource):
    """A resource whose memory other processes do not have."""

    @property
    def is_ipc_enabled(self) -> bool:
        """False: sharing between processes is not built."""
        return False

    @property
    def is_mapped(self) -> bool:
        """False, as `is_ipc_enabled`."""
        return False

    @property
    def uuid(self) -> None:
        """None, as the memory is not shared between processes."""
        return


class DeviceMemoryResource(_OfOneProcess):
    """cuda.core.DeviceMemoryResource (1.2.2): memory of a device in stream order.

    Differences: a device has one pool, so that `max_size` limits nothing and `attributes` are those of the device;
    the stream has to be of the same device. Sharing between processes is not built.
    """

    def __init__(self, device_id: Any, options: Any = None) -> None:
        self._ordinal = ordinal_of(device_id)
        chosen = None if options is None else options_of(DeviceMemoryResourceOptions, options, "DeviceMemoryResource")
        if chosen is not None:
            _refuse_ipc(chosen)
        self._owned = chosen is not None
        self._pool = _open_pool(self._ordinal) if self._owned else _default_pool(self._ordinal)

    def _open(self) -> None:
        if not self._pool:
            raise closed("DeviceMemoryResource")

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Return a buffer that work enqueued on the stream from now on may use."""
        where, nbytes = stream_of(stream), size_of(size)
        self._open()
        if where._capturing("allocate"):
            raise RuntimeError(
                "_MemPool cannot perform memory operations on a capturing stream (consider using GraphMemoryResource)."
            )
        block = _in_order(nbytes, where, self._ordinal)
        return Buffer._of(block, block.ptr, nbytes, self, None, where)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        """Give memory at an address back at the point that a stream has reached."""
        _free_in_order(on_this_thread(stream_of(stream)), ptr)

    def _give_back(self, block: Any, stream: Stream | None) -> None:
        with contextlib.suppress(ClosedError):  # it goes back behind the last work of its stream when it is dropped
            block.free(None if stream is None or stream._given_up else on_this_thread(stream))

    @property
    def device_id(self) -> int:
        """Number of the device."""
        return self._ordinal

    @property
    def is_device_accessible(self) -> bool:
        """True."""
        return True

    @property
    def is_host_accessible(self) -> bool:
        """False: copy the memory to the host."""
        return False

    @property
    def attributes(self) -> MemPoolAttributes:
        """Figures of the pool."""
        self._open()
        return MemPoolAttributes(self._ordinal)

    @property
    def handle(self) -> int:
        """The pool's number; 0 of one that was closed."""
        return self._pool

    @property
    def is_handle_owned(self) -> bool:
        """True if `close` gives the pool up: the resource was made with options."""
        return self._owned

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return not self._pool

    def close(self) -> None:
        """Give the pool up; its buffers stay."""
        if self._pool and self._owned:
            close_pool(self._pool)
        self._pool = 0

    peer_accessible_by = missing_property("cuda.core.DeviceMemoryResource.peer_accessible_by")
    allocation_handle = missing_property("cuda.core.DeviceMemoryResource.allocation_handle")
    from_allocation_handle = missing_method("cuda.core.DeviceMemoryResource.from_allocation_handle")
    from_registry = missing_method("cuda.core.DeviceMemoryResource.from_registry")
    register = missing_method("cuda.core.DeviceMemoryResource.register")


class _Pinned(MemoryResource):
    """What both resources of pinned memory share."""

    def _allocated(self, nbytes: int) -> Buffer:
        block = _pinned(nbytes) if nbytes else None
        return Buffer._of(block, 0 if block is None else block.ptr, nbytes, self, None, None)

    @property
    def is_device_accessible(self) -> bool:
        """True."""
        return True

    @property
    def is_host_accessible(self) -> bool:
        """True."""
        return True


class LegacyPinnedMemoryResource(_Pinned):
    """cuda.core.LegacyPinnedMemoryResource (1.2.2): pinned memory, without the order of a stream."""

    def allocate(self, size: int, *, stream: Any = None) -> Buffer:
        """Return a buffer that the host and all devices may use at once; a stream is only checked."""
        if stream is not None:
            stream_of(stream)
        return self._allocated(size_of(size))

    def deallocate(self, ptr: int, size: int, *, stream: Any = None) -> None:
        """Give memory at an address back, behind the work of a stream if one is given."""
        if stream is not None:
            stream_of(stream).sync()
        if size:
            _free_host(ptr)

    def _give_back(self, block: Any, stream: Stream | None) -> None:
        if stream is not None:
            stream.sync()

    @property
    def device_id(self) -> int:
        """Refused: all devices may use it."""
        raise RuntimeError("a pinned memory resource is not bound to any GPU")


class PinnedMemoryResource(_Pinned, _OfOneProcess):
    """cuda.core.PinnedMemoryResource (1.2.2): pinned memory that is given back in stream order.

    Differences: it has no pool, so that `max_size` limits nothing and `numa_id` chooses nothing, and a buffer can be
    used at once; figures and sharing between processes are not built.
    """

    def __init__(self, options: Any = None) -> None:
        self._owned = options is not None
        _refuse_ipc(options_of(PinnedMemoryResourceOptions, options, "PinnedMemoryResource"))
        self._closed = False

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Return a buffer that work enqueued on the stream from now on may use."""
        where = stream_of(stream)
        if self._closed:
            raise closed("PinnedMemoryResource")
        if where._capturing("allocate"):
            raise RuntimeError("_MemPool cannot perform memory operations on a capturing stream.")
        return self._allocated(size_of(size))

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        """Give memory at an address back, behind the work of a stream."""
        stream_of(stream).sync()
        if size:
            _free_host(ptr)

    def _give_back(self, block: Any, stream: Stream | None) -> None:
        """Leave it to the collector: memory that is dropped stays until the work on it has completed."""

    @property
    def device_id(self) -> int:
        """-1, as it is memory of the host."""
        return -1

    @property
    def numa_id(self) -> int:
        """-1: the system chooses the node."""
        return -1

    @property
    def is_handle_owned(self) -> bool:
        """True if it was made with options."""
        return self._owned

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._closed

    def close(self) -> None:
        """Give the resource up; its buffers stay."""
        self._closed = True

    attributes = missing_property("cuda.core.PinnedMemoryResource.attributes")
    handle = missing_property("cuda.core.PinnedMemoryResource.handle")
    allocation_handle = missing_property("cuda.core.PinnedMemoryResource.allocation_handle")
    from_allocation_handle = missing_method("cuda.core.PinnedMemoryResource.from_allocation_handle")
    from_registry = missing_method("cuda.core.PinnedMemoryResource.from_registry")
    register = missing_method("cuda.core.PinnedMemoryResource.register")


class GraphMemoryResource(MemoryResource):
    """cuda.core.GraphMemoryResource (1.2.2): memory that a graph allocates when it runs; one object for each device.

    Difference: its figures and `trim` are not built.
    """

    _ordinal: int

    def __new__(cls, device_id: Any) -> GraphMemoryResource:
        ordinal = ordinal_of(device_id)
        found = _of_graphs.get(ordinal)
        if found is None:
            found = super().__new__(cls)
            found._ordinal = ordinal
            found = _of_graphs.setdefault(ordinal, found)
        return found

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Return a buffer that the work of a capture may use; the graph allocates it each time it runs."""
        where, nbytes = stream_of(stream), size_of(size)
        _require_capture(where)
        block = _in_order(nbytes, where, self._ordinal)
        return Buffer._of(block, block.ptr, nbytes, self, None, where)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        """Have the graph give memory at an address back at the point that a stream has reached."""
        where = stream_of(stream)
        _require_capture(where)
        _free_in_order(on_this_thread(where), ptr)

    def close(self) -> None:
        """Do nothing: the memory is the graphs'."""

    @property
    def device_id(self) -> int:
        """Number of the device."""
        return self._ordinal

    @property
    def is_device_accessible(self) -> bool:
        """True."""
        return True

    @property
    def is_host_accessible(self) -> bool:
        """False: copy the memory to the host."""
        return False

    attributes = missing_property("cuda.core.GraphMemoryResource.attributes")
    trim = missing_method("cuda.core.GraphMemoryResource.trim")


_of_graphs: dict[int, GraphMemoryResource] = runtime.keep("cuda.core's memory of graphs", {}, clear=True)


def _require_capture(stream: Stream) -> None:
    if not stream._capturing("allocate"):
        raise RuntimeError("GraphMemoryResource cannot perform memory operations on a non-capturing stream.")


for _class in (
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    GraphMemoryResource,
    LegacyPinnedMemoryResource,
    PinnedMemoryResource,
    PinnedMemoryResourceOptions,
):
    _class.__module__ = "halstream.cuda.core"
    strict.add(_class)
