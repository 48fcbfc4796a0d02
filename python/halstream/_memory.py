"""Memory: blocks of devices and of the host that the runtime knows, and copies between them."""

from __future__ import annotations

import operator
from typing import Any

from . import _current, _native
from ._base import drain, reap_memory
from ._device import ordinal
from ._errors import InvalidValueError
from ._stream import Stream

__all__ = [
    "DeviceMemory",
    "Memory",
    "PinnedMemory",
    "PooledMemory",
    "address_of",
    "copy",
    "copy_blocking",
    "copy_rows",
    "fill",
    "lookup",
    "memory_info",
    "pool_stats",
    "register",
    "set_pool_threshold",
    "trim_pool",
    "unregister",
]

_stream_copy = _native.raw("stream_copy")
_stream_fill = _native.raw("stream_fill")
_mem_alloc_async = _native.raw("mem_alloc_async")
_mem_free_async = _native.raw("mem_free_async")

PAGEABLE, PINNED, DEVICE = 0, 1, 2


class Memory:
    """A block of bytes; given back when the last reference is gone.

    Work that is pending on it completes first: giving it back never disturbs
    an operation that was enqueued before.

    Attributes
    ----------
    ptr : int
        Address of the first byte, a multiple of 256.
    nbytes : int
        Size in bytes.
    """

    __slots__ = ("__weakref__", "nbytes", "ptr")
    kind = DEVICE

    ptr: int
    nbytes: int

    def free(self) -> None:
        """Give it back now. No later call may name it; again does nothing."""
        if self.ptr:
            ptr, self.ptr = self.ptr, 0
            self._free(ptr)

    def _free(self, ptr: int) -> None:
        _native.mem_free(ptr)

    def __del__(self) -> None:
        ptr = getattr(self, "ptr", 0)
        if ptr and reap_memory is not None:
            reap_memory.append(ptr)

    def __repr__(self) -> str:
        state = f"{self.nbytes} bytes at {self.ptr:#x}" if self.ptr else "freed"
        return f"<halstream.{type(self).__name__} {state}>"


class DeviceMemory(Memory):
    """Memory of a device.

    Parameters
    ----------
    nbytes : int
        One or more.
    device : Device, int, str or None
        None is the current device.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.

    Notes
    -----
    Contract M1, M2.
    """

    __slots__ = ("device",)

    def __init__(self, nbytes: int, device: Any = None) -> None:
        self.ptr = 0
        if reap_memory:
            drain()
        self.device = ordinal(device)
        self.nbytes = operator.index(nbytes)
        self.ptr = _native.mem_alloc(self.device, self.nbytes)


class PooledMemory(Memory):
    """Memory of a device in the order of a stream: work enqueued there later may use it.

    Given back at the point that the stream has reached when it is freed. Work
    on other streams must be ordered with the stream by events.

    Notes
    -----
    Contract M7.
    """

    __slots__ = ("device", "stream")

    def __init__(self, nbytes: int, stream: Stream) -> None:
        self.ptr = 0
        if reap_memory:
            drain()
        self.stream = stream
        self.device = stream._ordinal
        self.nbytes = operator.index(nbytes)
        try:
            self.ptr = _mem_alloc_async(stream._id, self.nbytes)
        except RuntimeError as exc:
            raise stream._fail(exc, "allocate") from None

    def free(self, stream: Stream | None = None) -> None:
        """Give it back at the point that a stream (None: its own) has reached."""
        if self.ptr:
            ptr, self.ptr = self.ptr, 0
            where = self.stream if stream is None else stream
            try:
                _mem_free_async(where._id, ptr)
            except RuntimeError as exc:
                self.ptr = ptr
                raise where._fail(exc, "free") from None


class PinnedMemory(Memory):
    """Host memory that copies read when the stream gets there, not at the call.

    `free` fails with `NotReadyError` while a pending operation works on it.

    Notes
    -----
    Contract M4, M10.
    """

    __slots__ = ()
    kind = PINNED

    def __init__(self, nbytes: int) -> None:
        self.ptr = 0
        if reap_memory:
            drain()
        self.nbytes = operator.index(nbytes)
        self.ptr = _native.host_alloc(self.nbytes)

    def free(self) -> None:
        """Give it back; `NotReadyError` while a pending operation works on it."""
        if self.ptr:
            _native.host_free(self.ptr)
            self.ptr = 0


def lookup(address: int) -> tuple[int, int, int, int]:
    """Return kind, start, size in bytes and device of the block that holds an address.

    Kind is 0 for memory the runtime does not know, 1 for pinned, 2 for device
    memory; the device is -1 for memory of the host.
    """
    kind, start, size, device = map(int, _native.mem_lookup(address).split())
    return kind, start, size, device


def memory_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of a device's memory."""
    where = ordinal(device)
    return int(_native.mem_free_bytes(where)), int(_native.mem_total_bytes(where))


def pool_stats(device: Any = None) -> dict[str, int]:
    """Return what the stream-ordered pool of a device holds, in bytes."""
    where = ordinal(device)
    names = ("used", "reserved", "used_high", "reserved_high", "threshold")
    return {name: int(_native.pool_stat(where, i)) for i, name in enumerate(names)}


def trim_pool(device: Any = None, least: int = 0) -> None:
    """Give memory that the pool keeps back to the device, down to `least` bytes."""
    _native.pool_trim(ordinal(device), operator.index(least))


def set_pool_threshold(nbytes: int, device: Any = None) -> None:
    """Choose how many bytes the pool keeps when they are free; without, it keeps all."""
    _native.pool_threshold(ordinal(device), operator.index(nbytes))


def register(address: int, nbytes: int) -> None:
    """Make memory of the program pinned until `unregister`."""
    _native.host_register(address, nbytes)


def unregister(address: int) -> None:
    """Make registered memory pageable again; `NotReadyError` while work on it is pending."""
    _native.host_unregister(address)


def address_of(buffer: Any, *, writable: bool = False) -> tuple[int, int]:
    """Return address and bytes of a buffer: an object with memory in one piece.

    Accepts `Memory`, `Array`, NumPy arrays and every object of the buffer
    protocol.

    Raises
    ------
    TypeError
        If it has no memory.
    InvalidValueError
        If its memory is not in one piece, or read-only where it is to be written.
    """
    ptr = getattr(buffer, "ptr", None)
    if ptr is not None:
        return int(ptr), int(buffer.nbytes)
    interface = getattr(buffer, "__array_interface__", None)
    if interface is None:
        import numpy as np

        try:
            buffer = np.frombuffer(buffer, np.uint8)
        except (TypeError, AttributeError):
            raise TypeError(
                f"a {type(buffer).__name__} is no buffer; give an Array, a NumPy array or "
                "another object with memory"
            ) from None
        interface = buffer.__array_interface__
    flags = getattr(buffer, "flags", None)
    if flags is not None and not (flags.c_contiguous or flags.f_contiguous):
        raise InvalidValueError("the array is not in one piece; copy it first")
    address, read_only = interface["data"]
    if writable and read_only:
        raise InvalidValueError("the target is read-only")
    return int(address), int(buffer.nbytes)


def copy(stream: Stream, dst: int, src: int, nbytes: int) -> None:
    """Enqueue a copy of bytes between addresses.

    Pinned and device sources are read when the stream gets there. Up to 64 KiB
    of a pageable source are taken within the call; a larger copy from
    pageable memory, and every copy to it, returns when it is done.

    Raises
    ------
    InvalidValueError
        If a range leaves its block, was freed, or the two overlap.

    Notes
    -----
    Contract M3, M4, M5, M13. Source: CUDA driver API, cuMemcpyAsync.
    """
    try:
        _stream_copy(stream._id, dst, src, nbytes)
    except Exception as exc:
        raise stream._fail(exc, "copy", stream, Stream) from None


def copy_rows(
    stream: Stream, dst: int, dst_pitch: int, src: int, src_pitch: int, width: int, height: int
) -> None:
    """Enqueue a copy of `height` rows of `width` bytes, the rows a pitch apart; see `copy`."""
    try:
        _native.stream_copy_rows(stream._id, dst, dst_pitch, src, src_pitch, width, height)
    except RuntimeError as exc:
        raise stream._fail(exc, "copy") from None


def copy_blocking(dst: int, src: int, nbytes: int, device: Any = None) -> None:
    """Copy as an operation of the legacy default stream, and wait for it.

    Notes
    -----
    Contract M6. Source: CUDA driver API, cuMemcpy.
    """
    stream = Stream._default(ordinal(device))
    copy(stream, dst, src, nbytes)
    stream.synchronize()


def fill(stream: Stream, dst: int, value: int, itemsize: int, count: int) -> None:
    """Enqueue `count` elements of 1, 2 or 4 bytes, each set to `value`.

    Notes
    -----
    Contract M8. Source: CUDA driver API, cuMemsetD8Async.
    """
    try:
        _stream_fill(stream._id, dst, value, itemsize, count)
    except Exception as exc:
        raise stream._fail(exc, "fill", stream, Stream) from None


def current(stream: Stream | None) -> Stream:
    """Return a stream, the current one for None."""
    return Stream._current(_current.current_device()) if stream is None else stream
