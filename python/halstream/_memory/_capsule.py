"""What a capsule of DLPack says of the tensor in it."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import struct
from typing import Any, NamedTuple

import numpy as np

from ._exchange import NAME, VERSIONED, ExchangeError

__all__ = ["Tensor", "delete", "open_capsule", "read", "use"]

_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}

_TENSOR = struct.Struct("=Qiii2BHQQQ")
_MANAGED_DELETER = 56  # behind the tensor and the context
_VERSIONED_HEAD = struct.Struct("=II8xQQ")


class Tensor(NamedTuple):
    """What a capsule says."""

    address: int  # of the managed tensor, which its deleter takes
    deleter: int
    flags: int
    device: tuple[int, int]
    ptr: int
    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None  # in elements, None if in C order

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


class _Api(NamedTuple):
    valid: Any
    name: Any
    pointer: Any
    rename: Any
    deleter: Any


@functools.cache
def _api() -> _Api:
    python, capsule = ctypes.pythonapi, ctypes.py_object

    def function(name: str, result: Any, *arguments: Any) -> Any:
        prototype = ctypes.PYFUNCTYPE(result, *arguments)
        return prototype((f"PyCapsule_{name}", python))

    return _Api(
        function("IsValid", ctypes.c_int, capsule, ctypes.c_char_p),
        function("GetName", ctypes.c_char_p, capsule),
        function("GetPointer", ctypes.c_void_p, capsule, ctypes.c_char_p),
        function("SetName", ctypes.c_int, capsule, ctypes.c_char_p),
        # With Python's lock held: there are deleters that rely on it.
        ctypes.PYFUNCTYPE(None, ctypes.c_void_p),
    )


# Capsules keep the address of their name.
_USED = {NAME: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}


def open_capsule(capsule: Any) -> tuple[bytes, int]:
    """Return the name and the address of a capsule that nobody has consumed."""
    api = _api()
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"__dlpack__() gave a {type(capsule).__name__}, not a capsule")
    for name in (VERSIONED, NAME):
        if api.valid(capsule, name):
            return name, int(api.pointer(capsule, name))
    name = api.name(capsule) or b""
    if name in _USED.values():
        raise ExchangeError(
            "this capsule was consumed already; ask its producer for another one",
            operation="import",
        )
    raise ExchangeError(f"a capsule named {name.decode(errors='replace')!r} is none of DLPack", operation="import")


def read(name: bytes, address: int) -> Tensor:
    """Return what a capsule says of its tensor.

    Raises
    ------
    ExchangeError
        If its version or element type is unknown, or its description is not valid.
    """
    flags, at = 0, address
    if name == VERSIONED:
        major, minor, deleter, flags = _VERSIONED_HEAD.unpack(ctypes.string_at(address, 32))
        if major != 1:
            raise ExchangeError(
                f"the tensor has version {major}.{minor} of DLPack; 1 is understood",
                operation="import",
            )
        at += 32
    else:
        (deleter,) = struct.unpack("=Q", ctypes.string_at(address + _MANAGED_DELETER, 8))
    data, kind, ident, ndim, code, bits, lanes, shape_at, strides_at, offset = _TENSOR.unpack(
        ctypes.string_at(at, _TENSOR.size)
    )
    if not 0 <= ndim <= _MOST_DIMENSIONS:
        raise _bad(f"it has {ndim} dimensions; 0 to {_MOST_DIMENSIONS} are possible")
    if ndim and not shape_at:
        raise _bad(f"it has {ndim} dimensions, and the address of their lengths is NULL")
    shape = _numbers(shape_at, ndim)
    strides = _numbers(strides_at, ndim) if strides_at else None
    if min(shape, default=0) < 0:
        raise _bad(f"its shape {shape} has a negative length")
    if strides is not None and _in_order(shape, strides):
        strides = None
    dtype = _dtype(code, bits, lanes)
    tensor = Tensor(address, deleter, flags, (kind, ident), data + offset, shape, dtype, strides)
    if tensor.nbytes:
        low, high = _extent(tensor)
        if not data or low < 0 or high > _ADDRESSES:
            raise _bad(f"its bytes, from {data:#x} with an offset of {offset:#x}, do not lie in memory")
    return tensor


#: More dimensions than any library has; each costs a read of foreign memory.
_MOST_DIMENSIONS = 64
#: User space ends far below; what lies beyond is no address of any memory.
_ADDRESSES = 1 << 63


def _bad(why: str) -> ExchangeError:
    return ExchangeError(f"the capsule's tensor is not valid: {why}", operation="import")


def _extent(tensor: Tensor) -> tuple[int, int]:
    """Return the address of the lowest byte and that behind the highest."""
    size = int(tensor.dtype.itemsize)
    if tensor.strides is None:
        return tensor.ptr, tensor.ptr + tensor.nbytes
    steps = [(n - 1) * step * size for n, step in zip(tensor.shape, tensor.strides, strict=True)]
    low = tensor.ptr + sum(step for step in steps if step < 0)
    return low, tensor.ptr + sum(step for step in steps if step > 0) + size


def _numbers(address: int, count: int) -> tuple[int, ...]:
    if count == 0:
        return ()
    return struct.unpack(f"={count}q", ctypes.string_at(address, 8 * count))


def _in_order(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    step = 1
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1 and stride != step:
            return 0 in shape
        step *= length
    return True


def _dtype(code: int, bits: int, lanes: int) -> Any:
    with contextlib.suppress(TypeError):
        if lanes == 1 and bits % 8 == 0:
            if code in _KINDS:
                return np.dtype(f"{_KINDS[code]}{bits // 8}")
            if (code, bits) == (4, 16):
                return np.dtype("bfloat16")  # known while the package ml_dtypes is loaded
    raise ExchangeError(
        f"NumPy has no dtype for DLPack's element type (code {code}, {bits} bits, {lanes} lanes)",
        operation="import",
    )


def use(capsule: Any, name: bytes) -> None:
    """Mark a capsule as consumed: its tensor is the caller's to give back from now on."""
    _api().rename(capsule, _USED[name])


def delete(tensor: Tensor) -> None:
    """Give a tensor back to its library."""
    if tensor.deleter:
        _api().deleter(tensor.deleter)(tensor.address)
