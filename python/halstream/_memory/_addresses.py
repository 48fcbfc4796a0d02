"""Memory by address, for dialects whose programs refer to memory by number."""

from __future__ import annotations

from .. import _native
from .._core._stream import Stream
from .._errors import HalError
from ._blocks import allocate, checked_size

__all__ = [
    "alloc",
    "alloc_host",
    "alloc_in_order",
    "alloc_managed",
    "free",
    "free_host",
    "free_in_order",
    "free_no_wait",
    "free_on_own_stream",
]


def alloc(ordinal: int, nbytes: int) -> int:
    """Return the address of new device memory, to be given to `free`.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    return allocate(ordinal, _native.mem_alloc, ordinal, checked_size(nbytes))


def alloc_managed(ordinal: int, nbytes: int) -> int:
    """Return the address of new memory of a device that the host may work on as well, to be given to `free`.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    address = alloc(ordinal, nbytes)
    _native.mem_mark_managed(address)
    return address


def check_unsafe(what: str) -> None:
    """Fail if a capture forbids calls that may wait for the device, which ends that capture.

    Parameters
    ----------
    what : str
        The name of the call, for the text of the error.

    Raises
    ------
    CaptureError
        If a stream captures in global mode, or a stream of this thread in thread-local mode.

    Notes
    -----
    Contract: G2. Source: CUDA driver API, cuThreadExchangeStreamCaptureMode.
    """
    _native.check_unsafe(what)


def free(address: int) -> None:
    """Give device memory back; pending work on it completes first.

    Raises
    ------
    InvalidValueError
        If no live block of device memory starts there.
    """
    _native.mem_free(address)


def free_no_wait(address: int) -> None:
    """As `free`, for a call that waits for nothing.

    The sanitizer reports work on the memory that the host has not waited for (M24).

    Raises
    ------
    InvalidValueError
        If no live block of device memory starts there.
    """
    _native.mem_free_no_wait(address)


def alloc_host(nbytes: int) -> int:
    """Return the address of new pinned memory, to be given to `free_host`.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    return allocate(0, _native.host_alloc, checked_size(nbytes))


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


def alloc_in_order(stream: Stream, nbytes: int) -> int:
    """Return the address of memory that work enqueued on the stream from now on may use.

    It is to be given to `free_in_order` or `free_on_own_stream`.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    try:
        return allocate(stream._ordinal, _native.mem_alloc_async, stream._id, checked_size(nbytes))
    except HalError as exc:
        raise stream._fail(exc, "allocate") from None


def free_in_order(stream: Stream, address: int) -> None:
    """Give memory of `alloc_in_order` back at the point that a stream has reached.

    Raises
    ------
    InvalidValueError
        If no such memory of the stream's device starts there.
    """
    try:
        _native.mem_free_async(stream._id, address)
    except RuntimeError as exc:
        raise stream._fail(exc, "free") from None


def free_on_own_stream(address: int) -> None:
    """Give memory of `alloc_in_order` back at the point that its own stream has reached.

    Raises
    ------
    InvalidValueError
        If no such memory starts there.
    """
    _native.mem_free_home(address)
