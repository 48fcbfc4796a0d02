"""Checks of the arguments of array functions: a shape, the value of one element."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .._errors import InvalidValueError

__all__ = ["element_bytes", "shape_of", "view"]


def element_bytes(value: Any, dtype: Any) -> bytes:
    """Return the bytes of one value in a dtype that can hold it.

    Raises
    ------
    InvalidValueError
        If it is more than one value, or none that the type holds.
    """
    scalar = np.asarray(value)
    if scalar.ndim:
        raise InvalidValueError(f"fill() takes one value, not {scalar.size}; use copy_from()")
    if scalar.dtype.kind in "iu" and dtype.kind in "iu":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        if not least <= int(scalar) <= most:
            raise InvalidValueError(f"{value} is no {dtype}: those are {least} to {most}")
        return scalar.astype(dtype).tobytes()
    return scalar.astype(dtype, casting="same_kind").tobytes()


def shape_of(shape: Any) -> tuple[int, ...]:
    """Return a shape given as a length or as lengths, all of them integers >= 0.

    Raises
    ------
    InvalidValueError
        If a length is negative.
    TypeError
        If a length is no whole number.
    """
    lengths = (shape,) if not isinstance(shape, (tuple, list)) else tuple(shape)
    wanted = tuple(operator.index(n) for n in lengths)
    if any(n < 0 for n in wanted):
        raise InvalidValueError(f"a shape has no negative lengths, but got {wanted}")
    return wanted


class _Exposed:
    """Memory as NumPy sees it; the view keeps this object, and so the memory, alive."""

    def __init__(self, owner: object, ptr: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "descr": dtype.descr,
            "data": (ptr, False),
        }


def view(owner: object, ptr: int, shape: tuple[int, ...], dtype: Any) -> Any:
    """Return memory as NumPy sees it; the view keeps the owner alive."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(_Exposed(owner, ptr, shape, dtype))
