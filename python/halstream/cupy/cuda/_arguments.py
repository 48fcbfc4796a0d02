"""Arguments of kernels, as cupy passes them."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from ... import _memory
from ..._dialects._kernel_arguments import Packed, address
from ..._memory._array import Array
from ._pointer import MemoryPointer

__all__ = ["pack"]

# What a kernel may be given of NumPy, by the codes of the types.
_SCALARS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefdFD")
# An int that may be an address: what is smaller is looked up nowhere.
_ADDRESS = 1 << 32


def pack(x: Any) -> Packed:
    """Return an argument of a kernel as a launch takes it.

    Raises
    ------
    TypeError
        If it is none.
    """
    kind = type(x)
    if kind is Packed:
        return x  # type: ignore[no-any-return]
    if kind in _SCALARS:
        return Packed(x.tobytes(), "-", x.dtype.kind)
    if kind is bool:
        return Packed(bytes([x]), "-", "b")
    if isinstance(x, int):
        return _integer(x)
    if isinstance(x, float):
        return Packed(struct.pack("<d", x), "-", "f")
    if isinstance(x, complex):
        return Packed(struct.pack("<dd", x.real, x.imag), "-", "c")
    if x is None:
        return address(0, 0, None)
    if isinstance(x, MemoryPointer):
        return address(x.ptr, max(0, x.mem.ptr + x.mem.size - x.ptr), x.mem)
    if isinstance(x, np.ndarray) and x.size == 1:
        return Packed(x.tobytes(), "-", x.dtype.kind)
    if isinstance(x, np.void):
        return Packed(x.tobytes(), "-", "V")
    array = getattr(x, "_array", x)  # of an ndarray
    if isinstance(array, Array):
        return address(array.ptr, array.nbytes, array)
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is not None:
        return _foreign(x, interface)
    raise TypeError(f"Unsupported type {kind}")


def _integer(x: int) -> Packed:
    if x >= _ADDRESS:  # the number of an address, which says more than the number alone
        where, start, size, _ = _memory.lookup(x)
        if where != _memory.PAGEABLE:
            return address(x, start + size - x, None)
    try:
        return Packed(struct.pack("<q" if x < 1 << 63 else "<Q", x), "-", "i" if x < 1 << 63 else "u")
    except struct.error:
        raise OverflowError("Python int too large to convert to C long") from None


def _foreign(x: Any, interface: dict[str, Any]) -> Packed:
    """Return the memory of another library's array."""
    dtype, shape, strides = np.dtype(interface["typestr"]), interface["shape"], interface.get("strides")
    if math.prod(shape) == 0:
        return address(0, 0, None)
    if strides is None:
        return address(interface["data"][0], math.prod(shape) * dtype.itemsize, x)
    behind = sum(step * (n - 1) for step, n in zip(strides, shape, strict=True) if step > 0) + dtype.itemsize
    return address(interface["data"][0], behind, x)
