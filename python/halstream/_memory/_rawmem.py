"""Blocks that end in stream order, parts of blocks, handles of pools, and directions of copies."""

from __future__ import annotations

import itertools
from typing import Any

from .. import _native
from .._core._device import ordinal
from .._core._lookup import DEVICE, PAGEABLE, kind_of
from .._core._stream import Stream
from .._errors import InvalidHandleError, InvalidValueError
from .._native._constants import RELEASE_IN_ORDER
from .._runtime import runtime
from ._blocks import Memory, PooledMemory
from ._copies import copy

__all__ = [
    "OrderedMemory",
    "Part",
    "check_direction",
    "close_pool",
    "copy_peer",
    "default_pool",
    "open_pool",
    "pool_device",
]


class OrderedMemory(PooledMemory):
    """Memory in the order of a stream; also freed in that order when it is collected.

    It keeps the stream itself alive, but no object for it.
    """

    __slots__ = ()
    _release = RELEASE_IN_ORDER

    def __init__(self, nbytes: int, stream: Stream) -> None:
        same = object.__new__(Stream)
        same._attach(stream._id, stream._ordinal, stream._owner)
        super().__init__(nbytes, same)

    def _waits_for(self, stream: Stream) -> bool:
        return self.stream._id == stream._id


class Part(Memory):
    """A part of a block of device memory that another object owns, and that it keeps alive."""

    __slots__ = ("device", "owner")

    def __init__(self, owner: object, ptr: int, nbytes: int, device: int) -> None:
        self.owner, self.ptr, self.nbytes, self.device = owner, ptr, nbytes, device

    def free(self) -> None:
        """Do nothing: the owner gives it back."""

    def record_stream(self, stream: Stream) -> None:
        """Do nothing: it is given back with its owner, which other streams must be ordered before."""

    def _waits_for(self, stream: Stream) -> bool:
        waits: Any = getattr(self.owner, "_waits_for", None)
        return waits is not None and bool(waits(stream))


def check_direction(dst: int, src: int, dst_on_device: bool, src_on_device: bool) -> None:
    """Refuse a copy whose addresses are not where its caller says.

    Pinned memory passes for either, as devices reach it.

    Raises
    ------
    InvalidValueError
        If an address is not of the kind that the direction says.
    """
    for role, address, on_device in (("target", dst, dst_on_device), ("source", src, src_on_device)):
        kind = kind_of(address)
        if kind == (PAGEABLE if on_device else DEVICE):
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
    copy(here, dst, src, nbytes)
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
    """Close a handle of `open_pool`.

    Raises
    ------
    InvalidHandleError
        If `open_pool` did not return the handle.
    """
    if _devices.pop(handle, None) is None:
        raise InvalidHandleError(f"{handle:#x} is no pool that was created", operation="close pool")


def pool_device(handle: int) -> int:
    """Return the device of a pool.

    Raises
    ------
    InvalidHandleError
        If it is no handle of a pool.
    """
    device = _devices.get(handle)
    if device is None:
        device = handle - _FIRST
        if not 0 <= device < _native.device_count():
            raise InvalidHandleError(f"{handle:#x} is no pool of memory", operation="pool")
    return device
