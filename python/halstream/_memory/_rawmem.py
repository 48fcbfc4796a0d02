"""Stream-ordered memory by address, handles of pools, and copies that say where they go."""

from __future__ import annotations

import contextlib
import itertools
from collections import deque

from .. import _memory, _native
from .._core._base import reap_memory
from .._core._device import ordinal
from .._core._stream import Stream
from .._errors import InvalidHandleError, InvalidValueError
from .._runtime import runtime

__all__ = [
    "OrderedMemory",
    "Part",
    "allocate_in_order",
    "check_direction",
    "close_pool",
    "copy_peer",
    "default_pool",
    "give_back",
    "open_pool",
    "pool_device",
    "release_in_order",
]


def allocate_in_order(stream: Stream, nbytes: int) -> int:
    """Return the address of memory that work enqueued on the stream from now on may use."""
    give_back()
    memory = _memory.PooledMemory(nbytes, stream)
    ptr, memory.ptr = memory.ptr, 0  # the caller's from here on
    return ptr


def release_in_order(stream: Stream, address: int) -> None:
    """Give memory of `allocate_in_order` back at the point the stream has reached."""
    try:
        _native.mem_free_async(stream._id, address)
    except RuntimeError as exc:
        raise stream._fail(exc, "free") from None


class OrderedMemory(_memory.PooledMemory):
    """Memory in the order of a stream, whose finalizer gives it back in that order, too.

    It keeps the stream itself alive, but no object for it.
    """

    __slots__ = ()

    def __init__(self, nbytes: int, stream: Stream) -> None:
        self.ptr = 0
        give_back()
        same = object.__new__(Stream)
        same._attach(stream._id, stream._ordinal, stream._owner)
        super().__init__(nbytes, same)

    def __del__(self) -> None:
        if getattr(self, "ptr", 0) and _ended is not None:
            _ended.append((self.stream, self.ptr))


class Part(_memory.Memory):
    """A part of a block of device memory that another object owns, and that it keeps alive."""

    __slots__ = ("device", "owner")

    def __init__(self, owner: object, ptr: int, nbytes: int, device: int) -> None:
        self.owner, self.ptr, self.nbytes, self.device = owner, ptr, nbytes, device

    def free(self) -> None:
        """Do nothing: the owner gives it back."""

    def __del__(self) -> None:
        pass


# What finalizers left; ordinary calls give it back.
_ended: deque[tuple[Stream, int]] = runtime.keep("raw streams that ended", deque())


def give_back() -> None:
    """Give the memory of collected `OrderedMemory` back, each at the point of its stream."""
    while _ended:
        with contextlib.suppress(IndexError):  # another thread was faster
            where, ptr = _ended.popleft()
            try:
                _native.mem_free_async(where._id, ptr)
            except RuntimeError:
                reap_memory.append(ptr)  # the stream was closed


def check_direction(dst: int, src: int, dst_on_device: bool, src_on_device: bool) -> None:
    """Refuse a copy whose addresses are not where its caller says.

    Pinned memory passes for either, as devices reach it.
    """
    for role, address, on_device in (("target", dst, dst_on_device), ("source", src, src_on_device)):
        kind = _memory.kind_of(address)
        if kind == (_memory.PAGEABLE if on_device else _memory.DEVICE):
            said = "a device's" if on_device else "the host's"
            raise InvalidValueError(
                f"the {role} {address:#x} is not {said} memory, but the direction of the copy says so",
                operation="copy",
            )


def copy_peer(dst: int, dst_device: int, src: int, src_device: int, nbytes: int) -> None:
    """Enqueue a copy between devices in the order of the default streams of both and of the current."""
    here = Stream._default(ordinal(None))
    ends = {Stream._default(ordinal(device)) for device in (dst_device, src_device)} - {here}
    for end in ends:
        here.wait_stream(end)
    _memory.copy(here, dst, src, nbytes)
    for end in ends:
        end.wait_stream(here)


# A device has one stream-ordered pool; every handle of the device names it.
_FIRST = 0x100
_handles = itertools.count(1 << 20)
_devices: dict[int, int] = runtime.keep("devices of raw handles", {})


def default_pool(device: int) -> int:
    """Return the handle of a device's pool."""
    return _FIRST + ordinal(device)


def open_pool(device: int) -> int:
    """Return a further handle of a device's pool, to be given to `close_pool`."""
    handle = next(_handles)
    _devices[handle] = ordinal(device)
    return handle


def close_pool(handle: int) -> None:
    """Give a handle of `open_pool` up."""
    if _devices.pop(handle, None) is None:
        raise InvalidHandleError(f"{handle:#x} is no pool that was created", operation="close pool")


def pool_device(handle: int) -> int:
    """Return the device of a pool."""
    device = _devices.get(handle)
    if device is None:
        device = handle - _FIRST
        if not 0 <= device < _native.device_count():
            raise InvalidHandleError(f"{handle:#x} is no pool of memory", operation="pool")
    return device
