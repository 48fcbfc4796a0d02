"""What kind of memory lies at an address, and the address of an object's memory."""

from __future__ import annotations

from typing import Any

from .. import _native
from .._errors import InvalidValueError

__all__ = ["DEVICE", "PAGEABLE", "PINNED", "address_of", "kind_of", "lookup", "register", "unregister"]

# Kinds of memory, by the numbers of the extension.
PAGEABLE, PINNED, DEVICE = 0, 1, 2

_mem_kind = _native.raw("mem_kind")
_mem_block = _native.taking_objects("mem_block")


def lookup(address: int) -> tuple[int, int, int, int]:
    """Return kind, start, size in bytes and device of the block that holds an address.

    Kind is 0 for memory the runtime does not know, 1 for pinned, 2 for device
    memory; the device is -1 for memory of the host.

    Raises
    ------
    BackendAbsentError
        If no backend can be used.
    """
    try:
        return _mem_block(address)  # type: ignore[no-any-return]
    except RuntimeError as exc:
        raise _native.error(exc) from None


def kind_of(address: int) -> int:
    """Return `PAGEABLE`, `PINNED` or `DEVICE` for the memory at an address.

    Raises
    ------
    BackendAbsentError
        If no backend can be used.
    """
    try:
        return _mem_kind(address)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def register(address: int, nbytes: int) -> None:
    """Make memory of the program pinned until `unregister`.

    Raises
    ------
    InvalidValueError
        If the range is no memory of the program, or registered already.
    """
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
                f"{type(buffer).__name__} is no buffer; give an Array, a NumPy array or another object with memory"
            ) from None
        interface = buffer.__array_interface__
    flags = getattr(buffer, "flags", None)
    if flags is not None and not (flags.c_contiguous or flags.f_contiguous):
        raise InvalidValueError("the array is not in one piece; copy it first")
    address, read_only = interface["data"]
    if writable and read_only:
        raise InvalidValueError("the target is read-only")
    return int(address), int(buffer.nbytes)
