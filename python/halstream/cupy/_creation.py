"""How arrays are made, and copied to the host."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np

from .. import _memory
from .._core import _hostfunc
from .._dialects._adapt import raising
from .._memory import _borrow
from .._memory._array import Array
from ._ndarray import accepts, check_order, compute, ndarray
from .cuda import memory, pinned_memory
from .cuda._blocks import stream_of
from .cuda._errors import ERRORS, unsupported

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asnumpy",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "get_array_module",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "matmul",
    "ones",
    "zeros",
    "zeros_like",
]

# From here on a pageable source is not taken within the call of a copy.
_LARGE = 64 << 10


def empty(shape: Any, dtype: Any = float, order: Any = "C") -> ndarray:
    """cupy.empty (14.2.0)."""
    return ndarray(shape, dtype, order=order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C") -> ndarray:
    """cupy.full (14.2.0)."""
    new = ndarray(shape, np.asarray(fill_value).dtype if dtype is None else dtype, order=order)
    if new.size:
        new.fill(fill_value)
    return new


def zeros(shape: Any, dtype: Any = float, order: Any = "C") -> ndarray:
    """cupy.zeros (14.2.0): filled on the current stream."""
    return full(shape, 0, dtype, order)


def ones(shape: Any, dtype: Any = float, order: Any = "C") -> ndarray:
    """cupy.ones (14.2.0): filled on the current stream."""
    return full(shape, 1, dtype, order)


def empty_like(
    prototype: ndarray, dtype: Any = None, order: Any = "K", subok: None = None, shape: Any = None
) -> ndarray:
    """cupy.empty_like (14.2.0)."""
    return ndarray(prototype.shape if shape is None else shape, prototype.dtype if dtype is None else dtype)


def zeros_like(a: ndarray, dtype: Any = None, order: Any = "K", subok: None = None, shape: Any = None) -> ndarray:
    """cupy.zeros_like (14.2.0)."""
    return zeros(a.shape if shape is None else shape, a.dtype if dtype is None else dtype)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> ndarray:
    """cupy.arange (14.2.0): made on the host and copied on the current stream."""
    first, end = (0, start) if stop is None else (start, stop)
    numbers: Any = np.arange
    return array(numbers(first, end, step, dtype))


def array(
    obj: Any,
    dtype: Any = None,
    copy: Any = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    *,
    blocking: bool = False,
) -> ndarray:
    """cupy.array (14.2.0): copied on the current stream; a pinned source is read only then.

    Any other source may be changed at once: large ones are copied through
    pinned memory.
    """
    check_order(order)
    if isinstance(obj, ndarray):
        if obj.ndim < ndmin:
            obj = obj.reshape((1,) * (ndmin - obj.ndim) + obj.shape)
        kind = obj.dtype if dtype is None else np.dtype(dtype)
        same: ndarray = obj if kind == obj.dtype and not copy else obj.astype(kind)
        return same
    if subok:
        raise TypeError("subok is not supported yet")
    host = np.array(obj, dtype, copy=None, order="C", ndmin=ndmin)
    # With one dimension at most both orders are the same.
    if order in ("F", "f") and host.ndim > 1 and not host.flags.f_contiguous:
        raise unsupported("arrays that are not contiguous in C order are not built yet")
    new = ndarray(host.shape, host.dtype)
    stream = stream_of(None)
    if host.nbytes:
        address = host.__array_interface__["data"][0]
        if _memory.kind_of(address) == _memory.PINNED:
            _copy_and_keep(stream, new, host)
        elif host.nbytes > _LARGE:
            pinned = pinned_memory.alloc_pinned_memory(host.nbytes)
            staged = np.frombuffer(cast(Any, pinned), host.dtype, host.size).reshape(host.shape)
            staged[...] = host
            _copy_and_keep(stream, new, staged)
        else:
            new.set(host, stream)
    if blocking:
        stream.synchronize()
    return new


def _copy_and_keep(stream: Any, new: ndarray, source: Any) -> None:
    new.set(source, stream)
    _hostfunc.hold(stream, source)


def asarray(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, blocking: bool = False) -> ndarray:
    """cupy.asarray (14.2.0): an array of this kind as it is, others as `array` copies them."""
    return array(a, dtype, bool(copy), order or "K", blocking=blocking)


asanyarray = asarray


def asnumpy(a: Any, stream: Any = None, order: Any = "C", out: Any = None, *, blocking: bool = True) -> Any:
    """cupy.asnumpy (14.2.0): copied on `stream`, None being the current one; waits if `blocking`."""
    if isinstance(a, ndarray):
        return a.get(stream=stream, order=order, out=out, blocking=blocking)
    if out is not None:
        np.copyto(out, np.asarray(a))
        return out
    return np.asarray(a, order=order)


def from_dlpack(array: Any, *, device: Any = None, copy: Any = None) -> ndarray:
    """cupy.from_dlpack (14.2.0): shares the memory, in the order of the current stream.

    Differences: on the host backend arrays of the CPU are shared, too; `device`
    is a pair of DLPack numbers or a device of this runtime.
    """
    source = array._array if isinstance(array, ndarray) else array
    if isinstance(device, tuple):
        device = device[1]
    found = _from_dlpack(source, device, copy)
    owner = memory.UnownedMemory(found.ptr, found.nbytes, found, found.device.ordinal)
    return ndarray(found.shape, found.dtype, memory.MemoryPointer(owner, 0))


@raising(ERRORS)
def _from_dlpack(source: Any, device: Any, copy: Any) -> Array:
    return _borrow.from_dlpack(source, device=device, copy=copy, stream=stream_of(None))


def get_array_module(*args: Any) -> Any:
    """cupy.get_array_module (14.2.0): this module if an argument is one of its arrays."""
    return sys.modules[__package__] if any(isinstance(arg, ndarray) for arg in args) else np


def get_default_memory_pool() -> memory.MemoryPool:
    """cupy.get_default_memory_pool (14.2.0)."""
    return memory.default_pool


def get_default_pinned_memory_pool() -> pinned_memory.PinnedMemoryPool:
    """cupy.get_default_pinned_memory_pool (14.2.0)."""
    return pinned_memory.default_pool


def matmul(x1: Any, x2: Any) -> ndarray:
    """cupy.matmul (14.2.0), on the current stream, by NumPy; not while that captures, as in cupy."""
    accepts(x1), accepts(x2)
    return compute(np.matmul, x1, x2)
