"""Values in memory that streams write and wait for."""

from __future__ import annotations

from .. import _native
from .._core._stream import Stream
from ._copies import failed

__all__ = ["wait_value", "write_value"]


def write_value(stream: Stream, address: int, value: int) -> None:
    """Enqueue a write of 64 bits.

    Parameters
    ----------
    stream : Stream
        The stream that writes.
    address : int
        A multiple of 8, in pinned memory or memory of the stream's device. On CUDA
        that is an array of at most 4096 bytes, allocated without a stream.
    value : int
        From 0 to ``2**64 - 1``.

    Raises
    ------
    InvalidValueError
        If the address is another one, or the driver allows no values there.
    WrongDeviceError
        If it is memory of another device.
    NotSupportedError
        If the device cannot.

    Notes
    -----
    Contract M19, V5. Source: CUDA driver API, cuStreamWriteValue64.
    """
    try:
        _native.stream_write_value(stream._id, address, value)
    except Exception as exc:
        raise failed(stream, exc, "write_value") from None


def wait_value(stream: Stream, address: int, value: int, condition: int) -> None:
    """Make later work of a stream wait until the 64 bits at an address meet a condition.

    Parameters
    ----------
    stream : Stream
        The stream that waits.
    address : int
        As for `write_value`.
    value : int
        From 0 to ``2**64 - 1``.
    condition : int
        `CONDITION_AT_LEAST` (by the sign of the difference), `CONDITION_EQUAL`, `CONDITION_ANY_BIT` (set in both)
        or `CONDITION_MISSING_BIT` (set in neither).

    Raises
    ------
    HalError
        As `write_value` does, and `InvalidValueError` if the condition is none, too.

    Notes
    -----
    Contract M19, V5. Source: CUDA driver API, cuStreamWaitValue64.
    """
    try:
        _native.stream_wait_value(stream._id, address, value, condition)
    except Exception as exc:
        raise failed(stream, exc, "wait_value") from None
