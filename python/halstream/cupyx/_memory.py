"""Arrays in pinned memory, and copies that may not wait."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._memory._array import _shape
from .._memory._pools import thread
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
    lengths, kind = _shape(shape), np.dtype(dtype)
    if kind.hasobject:  # their references would be freed with the memory, unseen by the collector
        raise ValueError("pinned memory cannot hold Python objects; choose another dtype")
    nbytes = math.prod(lengths) * kind.itemsize
    buffer: Any = alloc_pinned_memory(nbytes) if nbytes else None
    return np.ndarray(lengths, kind, buffer=buffer, order=order)


def zeros_pinned(shape: Any, dtype: Any = float, order: Any = "C") -> Any:
    """cupyx.zeros_pinned (14.2.0)."""
    new = empty_pinned(shape, dtype, order)
    new.fill(0)
    return new


def empty_like_pinned(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> Any:
    """cupyx.empty_like_pinned (14.2.0); in C order unless `order` is F."""
    return empty_pinned(
        a.shape if shape is None else shape,
        a.dtype if dtype is None else dtype,
        "F" if order == "F" else "C",
    )


def zeros_like_pinned(
    a: Any, dtype: Any = None, order: Any = "K", subok: Any = None, shape: Any = None
) -> Any:
    """cupyx.zeros_like_pinned (14.2.0); in C order unless `order` is F."""
    new = empty_like_pinned(a, dtype, order, subok, shape)
    new.fill(0)
    return new
