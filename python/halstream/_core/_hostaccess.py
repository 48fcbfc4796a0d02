"""Accesses of the host to memory, which the runtime cannot observe by itself."""

from __future__ import annotations

import contextlib
from typing import Any

from .. import _native
from .._errors import InvalidValueError
from ._lookup import address_of

__all__ = ["extent", "host_access", "host_writes"]

_host_access = _native.raw("host_access")
_ACCESSES = {"r": (0,), "w": (1,), "rw": (0, 1)}


def host_access(buffer: Any, mode: str = "r") -> None:
    """Declare that the calling thread reads or writes a buffer itself.

    Copies that wait and `Array.numpy` say so by themselves. For the sanitizer
    and traces; cheap while neither is on.

    Parameters
    ----------
    buffer : buffer
        `Memory`, `Array`, a NumPy array, or an object of the buffer protocol.
        Of an array that is not in one piece, all bytes from its lowest to its
        highest element count.
    mode : {'r', 'w', 'rw'}
        Read it, write it, or both.

    Raises
    ------
    InvalidValueError
        For another mode, or a buffer that cannot be written.
    TypeError
        If the buffer has no memory.
    CallInHostFunctionError
        In a function on a stream, whose accesses are declared when it is enqueued.
    """
    accesses = _ACCESSES.get(mode) if isinstance(mode, str) else None
    if accesses is None:
        raise InvalidValueError(f"the mode of an access is 'r', 'w' or 'rw', not {mode!r}")
    start, nbytes = extent(buffer, writable=mode != "r")
    if not nbytes:
        return
    try:
        for write in accesses:
            _host_access(start, nbytes, write)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def host_writes(start: int, nbytes: int) -> None:
    """Declare that the calling thread writes memory itself, if it can: a function on a stream declares its accesses."""
    with contextlib.suppress(RuntimeError):
        _host_access(start, nbytes, 1)


def extent(buffer: Any, *, writable: bool = False) -> tuple[int, int]:
    """Return the address and the bytes from the lowest to the highest element.

    Raises
    ------
    InvalidValueError
        If the buffer is to be `writable` and is not.
    """
    # Asking memory of the runtime for its interface would wait for the work on it.
    own = getattr(buffer, "ptr", None) is not None
    strides: Any = None if own else getattr(buffer, "strides", None)
    interface: Any = None if strides is None else getattr(buffer, "__array_interface__", None)
    if interface is None:
        return address_of(buffer, writable=writable)
    address, read_only = interface["data"]
    if writable and read_only:
        raise InvalidValueError("the buffer is read-only")
    if 0 in buffer.shape:
        return int(address), 0
    steps = [(n - 1) * step for n, step in zip(buffer.shape, strides, strict=True)]
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0)
    return int(address) + low, high - low + int(buffer.dtype.itemsize)
