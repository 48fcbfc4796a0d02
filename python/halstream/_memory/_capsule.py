"""Reading of DLPack capsules."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

from .. import _native
from .._errors import InvalidValueError
from .._records import TensorRecord, decode
from ._exchange import NAME, VERSIONED, ExchangeError

__all__ = ["Tensor", "delete", "open_capsule", "read", "use"]

_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}


class Tensor(NamedTuple):
    """The tensor that a capsule describes."""

    address: int  # of the managed tensor, which its deleter takes
    deleter: int
    flags: int
    device: tuple[int, int]
    ptr: int
    shape: tuple[int, ...]
    dtype: Any
    strides: tuple[int, ...] | None  # in elements, None if in C order
    nbytes: int


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
    """Return the name and the address of a capsule that was not consumed yet.

    Raises
    ------
    TypeError
        If it is no capsule.
    ExchangeError
        If it was consumed already, or is none of DLPack's.
    """
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
    """Return the description of a capsule's tensor.

    Raises
    ------
    ExchangeError
        If its version or element type is unknown, or its description is not valid.
    """
    try:
        tensor: TensorRecord = decode(_native.dlpack_tensor(address, name == VERSIONED))
    except InvalidValueError as exc:
        raise _native.error(exc, {"invalid_value": ExchangeError}) from None
    strides = tensor["strides"]
    return Tensor(
        address,
        tensor["deleter"],
        tensor["flags"],
        (tensor["type"], tensor["id"]),
        tensor["start"],
        tuple(tensor["shape"]),
        _dtype(tensor["code"], tensor["bits"]),
        None if strides is None else tuple(strides),
        tensor["size"],
    )


def _dtype(code: int, bits: int) -> Any:
    with contextlib.suppress(TypeError):
        if code in _KINDS:
            return np.dtype(f"{_KINDS[code]}{bits // 8}")
        if (code, bits) == (4, 16):
            return np.dtype("bfloat16")  # known while the package ml_dtypes is loaded
    raise ExchangeError(
        f"NumPy has no dtype for DLPack's element type (code {code}, {bits} bits)",
        operation="import",
    )


def use(capsule: Any, name: bytes) -> None:
    """Mark a capsule as consumed: its tensor is the caller's to give back from now on."""
    _api().rename(capsule, _USED[name])


def delete(tensor: Tensor) -> None:
    """Give a tensor back to its library."""
    if tensor.deleter:
        _api().deleter(tensor.deleter)(tensor.address)
