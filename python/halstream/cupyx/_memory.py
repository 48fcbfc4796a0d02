"""Arrays in pinned memory, and copies that may not wait."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._memory._pools import thread
from .._memory._values import shape_of
from ..cupy.cuda import alloc_pinned_memory

__all__ = [
    "allow_synchronize",
    "empty_like_pinned",
    "empty_pinned",
    "zeros_like_pinned",
    "zeros_pinned",
]


@contextlib.contextmanager
def allow_synchronize(allow: bool) -> Iterator[None]:
    """cupyx.allow_synchronize (14.2.0): with False, copies of arrays to the host raise."""
    before, thread.may_wait = thread.may_wait, allow
    try:
        yield
    finally:
        thread.may_wait = before


def empty_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """cupyx.empty_pinned (14.2.0): a NumPy array in pinned memory."""
    return _pinned(shape_of(shape), np.dtype(dtype), order=order)


def zeros_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """cupyx.zeros_pinned (14.2.0)."""
    new = empty_pinned(shape, dtype, order)
    new.fill(0)
    return new


def empty_like_pinned(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Any:
    """cupyx.empty_like_pinned (14.2.0)."""
    if subok is not None:
        raise TypeError("subok is not supported yet")
    lengths = a.shape if shape is None else shape_of(shape)
    return _pinned(lengths, np.dtype(a.dtype if dtype is None else dtype), **_layout(a, order, lengths))


def zeros_like_pinned(a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None) -> Any:
    """cupyx.zeros_like_pinned (14.2.0)."""
    new = empty_like_pinned(a, dtype, order, subok, shape)
    new.fill(0)
    return new


def _pinned(lengths: tuple[int, ...], kind: Any, order: Any = "C", axes: Any = None) -> Any:
    """Return an array of pinned memory; `axes` are its axes from the slowest to the fastest."""
    if kind.hasobject:  # their references would be freed with the memory, unseen by the collector
        raise ValueError("pinned memory cannot hold Python objects; choose another dtype")
    nbytes = math.prod(lengths) * kind.itemsize
    buffer: Any = alloc_pinned_memory(nbytes) if nbytes else None
    if axes is None:
        return np.ndarray(lengths, kind, buffer=buffer, order=order)
    strides, step = [0] * len(lengths), kind.itemsize
    for axis in reversed(axes):
        strides[axis], step = step, step * lengths[axis]
    return np.ndarray(lengths, kind, buffer=buffer, strides=tuple(strides) if nbytes else None)


def _layout(a: Any, order: Any, lengths: tuple[int, ...]) -> dict[str, Any]:
    """Return how the memory of an array like `a` is laid out."""
    letter = order.upper()
    if letter not in ("C", "F", "A", "K"):
        raise ValueError(f"order not understood: {letter}")
    same = len(lengths) == len(a.shape)
    if letter in ("C", "F") or (letter == "K" and not same):
        return {"order": letter if letter == "F" else "C"}
    fortran, c = _contiguous(a)
    if letter == "A" or fortran or c:
        return {"order": "F" if fortran and not c else "C"}
    # As close to the layout of `a` as an array without gaps can be.
    return {"axes": sorted(range(len(lengths)), key=lambda axis: -abs(a.strides[axis]))}


def _contiguous(a: Any) -> tuple[bool, bool]:
    """Return whether an array is contiguous in the order of Fortran, and of C."""
    flags = getattr(a, "flags", None) if isinstance(a, np.ndarray) else None
    return (flags.f_contiguous, flags.c_contiguous) if flags is not None else (False, True)
