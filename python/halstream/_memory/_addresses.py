"""Memory by address, for dialects whose programs hold plain numbers."""

from __future__ import annotations

from .. import _native
from .._core._stream import Stream
from .._errors import InvalidValueError
from .._runtime import runtime
from . import DeviceMemory, Memory, PinnedMemory, PooledMemory

#: What `take` gave out, by address; it lives until `give_back`.
_taken: dict[int, PooledMemory] = runtime.keep("pooled memory by address", {})


def alloc(ordinal: int, nbytes: int) -> int:
    """Return the address of new device memory, to be given to `free`."""
    return _released(DeviceMemory(nbytes, ordinal))


def _released(memory: Memory) -> int:
    # The number is all there is now: no object gives the memory back.
    address, memory.ptr = memory.ptr, 0
    return address


def free(address: int) -> None:
    """Give device memory back; pending work on it completes first.

    Raises
    ------
    InvalidValueError
        If no live block of device memory starts there.
    """
    _native.mem_free(address)


def alloc_host(nbytes: int) -> int:
    """Return the address of new pinned memory, to be given to `free_host`."""
    return _released(PinnedMemory(nbytes))


def free_host(address: int) -> None:
    """Give pinned memory back.

    Raises
    ------
    NotReadyError
        If a pending operation works on it.
    InvalidValueError
        If no pinned memory of the runtime starts there.
    """
    _native.host_free(address)


def take(nbytes: int, stream: Stream) -> int:
    """Return the address of memory in the order of a stream, to be given to `give_back`."""
    memory = PooledMemory(nbytes, stream)
    _taken[memory.ptr] = memory
    return memory.ptr


def give_back(address: int) -> None:
    """Give memory of `take` back at the point that its stream has reached."""
    memory = _taken.pop(address, None)
    if memory is None:
        raise InvalidValueError(
            f"{address:#x} was freed already, or never came from this allocator"
        )
    memory.free()


def taken(address: int) -> PooledMemory | None:
    """Return the memory of `take` at an address, None if there is none."""
    return _taken.get(address)
