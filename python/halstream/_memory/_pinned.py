"""NumPy arrays in pinned memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._errors import InvalidValueError
from ._blocks import PinnedMemory
from ._values import shape_of, view

__all__ = ["pinned_empty"]


def pinned_empty(shape: Any, dtype: Any = float) -> Any:
    """Return a NumPy array in pinned memory, with any contents.

    Copies from it are asynchronous: it must stay unchanged until the copy
    has run. The memory is given back with the last view of it.

    Raises
    ------
    InvalidValueError
        If the type holds Python objects, or a length is negative.
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    wanted, kind = shape_of(shape), np.dtype(dtype)
    if kind.hasobject:
        raise InvalidValueError("pinned memory cannot hold Python objects; choose another dtype")
    if 0 in wanted or not kind.itemsize:
        return np.empty(wanted, kind)
    memory = PinnedMemory(math.prod(wanted) * kind.itemsize)
    return view(memory, memory.ptr, wanted, kind)
