"""Arguments of kernels, as cupy passes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._dialects._kernel_arguments import Packed, address, scalar
from ..._memory._array import Array
from ._pointer import MemoryPointer

__all__ = ["pack"]


def pack(x: Any) -> Packed:
    """Return an argument of a kernel as a launch takes it.

    Raises
    ------
    TypeError
        If it is none.
    """
    if isinstance(x, Packed):
        return x
    number = scalar(x, "long")
    if number is not None:
        return number
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
    raise TypeError(f"Unsupported type {type(x)}")


def _foreign(x: Any, interface: dict[str, Any]) -> Packed:
    """Return the memory of another library's array."""
    dtype, shape, strides = np.dtype(interface["typestr"]), interface["shape"], interface.get("strides")
    if math.prod(shape) == 0:
        return address(0, 0, None)
    if strides is None:
        return address(interface["data"][0], math.prod(shape) * dtype.itemsize, x)
    behind = sum(step * (n - 1) for step, n in zip(strides, shape, strict=True) if step > 0) + dtype.itemsize
    return address(interface["data"][0], behind, x)
