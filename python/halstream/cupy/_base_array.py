"""The base class of device arrays: description, exchange, copies to and from the host."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from .._memory._array import Array
from .._memory._rawmem import Part
from .._memory._values import shape_of
from .cuda import memory
from .cuda._blocks import stream_of
from .cuda._captured import refuse_captured
from .cuda._errors import check_may_wait, unsupported
from .cuda._handles import Handle
from .cuda._pointer import copy_bytes
from .cuda.device import Device
from .cuda.stream import Stream


def consumer(stream: Any) -> Any:
    """Return the stream that a consumer names by its handle."""
    if stream is None:
        return None
    if not isinstance(stream, int) or stream < -1:
        raise ValueError(f"On CUDA stream must be -1 or a handle, not {stream!r}")
    if stream == 0:
        warnings.warn("Stream 0 is ambiguous in DLPack; say 1 for the default stream.", stacklevel=3)
    # A new stream without work stands for no order.
    return Stream(non_blocking=True) if stream == -1 else Handle.find(stream)


def check_order(order: Any) -> None:
    """Refuse what names no order of elements, by its first letter; None is the usual one."""
    if order is not None and not (isinstance(order, str) and order[:1] in ("", *"CFAKcfak")):
        raise TypeError("order not understood")


class BaseArray:
    """Typed device memory: its description and its copies."""

    __array_priority__ = 100
    __array_ufunc__ = None

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        check_order(order)
        lengths, kind = shape_of(shape), np.dtype(dtype)
        if kind.hasobject:
            raise ValueError(f"Unsupported dtype {kind}")
        if strides is not None or (order not in ("C", None) and len(lengths) > 1):
            raise unsupported("arrays that are not contiguous in C order are not built yet")
        self.data: Any = memory.alloc(math.prod(lengths) * kind.itemsize) if memptr is None else memptr
        nbytes = max(1, math.prod(lengths) * kind.itemsize)
        part = Part(self.data, self.data.ptr, nbytes, self.data.device_id)
        self._array = Array(part, self.data.ptr, lengths, kind)

    # -- description ------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy has it."""
        return self._array.shape

    @property
    def dtype(self) -> Any:
        """As NumPy has it."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """As NumPy has it."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """As NumPy has it."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """As NumPy has it."""
        return self._array.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """As NumPy has it."""
        return self._array.strides

    @property
    def itemsize(self) -> int:
        """As NumPy has it."""
        return int(self._array.dtype.itemsize)

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return Device(self.data.device_id)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._array.__cuda_array_interface__

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Return a capsule of the memory; `stream` is the handle of the consumer's, -1 no order."""
        return self._array.__dlpack__(stream=consumer(stream), max_version=max_version, dl_device=dl_device, copy=copy)

    # -- contents ---------------------------------------------------------

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Return a copy on the host, made in stream order; waits for it if `blocking`."""
        check_may_wait()
        if order not in ("C", "F", "A"):
            raise ValueError(f"unsupported order: {order}")
        target = np.empty(self.shape, self.dtype) if out is None else out
        if not isinstance(target, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if target.dtype != self.dtype:
            raise TypeError(f"{target.dtype} array cannot be obtained from {self.dtype} array")
        if target.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {target.shape}")
        if not target.flags.c_contiguous:
            raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")
        with self.device:
            where = stream_of(stream)
            refuse_captured("a copy to the host", where)
            if self.nbytes:
                address = target.__array_interface__["data"][0]
                copy_bytes(where, address, self.data.ptr, self.nbytes, target)
            if blocking:
                where.synchronize()
        return np.asfortranarray(target) if out is None and order == "F" else target

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy an array of the host here in stream order; a pinned one is read when the copy runs."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if self.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {arr.shape}")
        with self.device:
            where = stream_of(stream)
            refuse_captured("a copy from the host", where)
            if self.nbytes:
                whole = np.ascontiguousarray(arr)
                address = whole.__array_interface__["data"][0]
                copy_bytes(where, self.data.ptr, address, self.nbytes, whole)
