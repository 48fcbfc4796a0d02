"""Memory by address: what is where, figures, copies and fills."""

from __future__ import annotations

import operator
from typing import Any, cast

from .. import _native
from .._core import _current, _hostfunc
from .._core._base import drain
from .._core._device import ordinal
from .._core._stream import Stream
from .._errors import InvalidValueError
from .._runtime import runtime
from ._blocks import (
    DEVICE,
    PAGEABLE,
    PINNED,
    DeviceMemory,
    Memory,
    PinnedMemory,
    PooledMemory,
)

__all__ = [
    "DEVICE",
    "PAGEABLE",
    "PINNED",
    "DeviceMemory",
    "Memory",
    "PinnedMemory",
    "PooledMemory",
    "address_of",
    "copy",
    "copy_blocking",
    "copy_rows",
    "fill",
    "kind_of",
    "lookup",
    "memory_info",
    "pool_stats",
    "register",
    "reset_pool_peaks",
    "set_pool_threshold",
    "trim_pool",
    "unregister",
]

_stream_copy = _native.raw("stream_copy")
_stream_fill = _native.raw("stream_fill")
_mem_lookup = _native.raw("mem_lookup")

_FIGURES = ("used", "reserved", "used_high", "reserved_high", "threshold")
_peaks: dict[tuple[int, str], int] = runtime.keep("peaks of memory pools", {}, clear=True)


def lookup(address: int) -> tuple[int, int, int, int]:
    """Return kind, start, size in bytes and device of the block that holds an address.

    Kind is 0 for memory the runtime does not know, 1 for pinned, 2 for device
    memory; the device is -1 for memory of the host.
    """
    kind, start, size, device = map(int, _native.mem_lookup(address).split())
    return kind, start, size, device


def kind_of(address: int) -> int:
    """Return `PAGEABLE`, `PINNED` or `DEVICE` for the memory at an address."""
    try:
        return int(_mem_lookup(address)[0])
    except RuntimeError as exc:
        raise _native.error(exc) from None


def memory_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total bytes of a device's memory."""
    where = ordinal(device)
    return int(_native.mem_free_bytes(where)), int(_native.mem_total_bytes(where))


def pool_stats(device: Any = None) -> dict[str, int]:
    """Return what the stream-ordered pool of a device holds, in bytes.

    Blocks whose last reference is gone do not count, unless work is pending on them.
    """
    where = ordinal(device)
    settle(where)
    stats = {name: int(_native.pool_stat(where, i)) for i, name in enumerate(_FIGURES)}
    for name in ("used_high", "reserved_high"):
        stats[name] = max(stats[name], _peaks.get((where, name), 0))
    return stats


def settle(ordinal: int) -> None:
    """Give back what nobody refers to and no pending work needs."""
    drain()
    _native.mem_free_bytes(ordinal)


def reset_pool_peaks(device: Any = None, *, used: bool = True, reserved: bool = True) -> None:
    """Make the highest figures of a device's pool, or one of them, start from what is held now."""
    where = ordinal(device)
    before = pool_stats(where)
    _native.pool_reset_peaks(where)
    # The pool resets both at once; one that is to stay counts on from here.
    for name, wanted in (("used_high", used), ("reserved_high", reserved)):
        _peaks[where, name] = 0 if wanted else before[name]


def trim_pool(device: Any = None, least: int = 0) -> None:
    """Give memory that the pool keeps back to the device, down to `least` bytes."""
    settle(ordinal(device))
    _native.pool_trim(ordinal(device), operator.index(least))


def set_pool_threshold(nbytes: int, device: Any = None) -> None:
    """Choose how many bytes the pool keeps when they are free; without, it keeps all."""
    _native.pool_threshold(ordinal(device), operator.index(nbytes))


def register(address: int, nbytes: int) -> None:
    """Make memory of the program pinned until `unregister`."""
    try:
        _native.host_register(address, nbytes)
    except OverflowError as exc:
        raise InvalidValueError(f"an address or a size is negative or past 64 bits ({exc})") from None


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
        if writable and getattr(buffer, "readonly", False):
            raise InvalidValueError("the target is read-only")
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


def copy(stream: Stream, dst: int, src: int, nbytes: int, *owners: object) -> None:
    """Enqueue a copy of bytes between addresses.

    Pinned and device sources are read when the stream gets there. Up to 64 KiB
    of a pageable source are taken within the call; a larger copy from
    pageable memory, and every copy to it, returns when it is done. Such a
    copy reports the stream's first error, as `synchronize` does.

    Parameters
    ----------
    stream : Stream
    dst, src, nbytes : int
    *owners
        Objects that the pageable memory belongs to. When Ctrl-C ends the wait
        the copy goes on, and keeps them.

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
        try:
            error = _failed(stream, exc, "copy")
        except BaseException as raised:
            if owners and raised is exc:
                _hostfunc.hold(stream, *owners)  # what a signal's handler raised
            raise
        raise error from None
    except BaseException:
        if owners:
            _hostfunc.hold(stream, *owners)
        raise


def _failed(stream: Any, exc: Exception, operation: str) -> BaseException:
    if not isinstance(stream, Stream):
        return TypeError(f"{operation}() takes a halstream Stream, not {type(stream).__name__}")
    if isinstance(exc, OverflowError):
        wrong: Any = stream._errors.get("invalid_value", InvalidValueError)
        return cast(BaseException, wrong(f"an address or a size is negative or past 64 bits ({exc})"))
    return stream._fail(exc, operation)


def copy_rows(
    stream: Stream, dst: int, dst_pitch: int, src: int, src_pitch: int, width: int, height: int
) -> None:
    """Enqueue a copy of `height` rows of `width` bytes, the rows a pitch apart; see `copy`."""
    try:
        _native.stream_copy_rows(stream._id, dst, dst_pitch, src, src_pitch, width, height)
    except Exception as exc:
        raise _failed(stream, exc, "copy") from None


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
        raise _failed(stream, exc, "fill") from None


def current(stream: Stream | None) -> Stream:
    """Return a stream: the current one for None, and the one of a ``__cuda_stream__``."""
    if stream is None:
        return Stream._current(_current.current_device())
    return stream if isinstance(stream, Stream) else Stream.from_cuda_stream(stream)
