"""Tensors as text, and the NumPy arrays that they are made from."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..._dialects._tensor import of_python
from .dtype import of


def initial(data: Any, wanted: Any) -> Any:
    """Return a tensor's first contents: a NumPy array of its own."""
    if isinstance(data, (np.ndarray, np.generic)):
        host = np.array(data, dtype=wanted, order="C")
    elif isinstance(data, (bool, int, float, complex, list, tuple)):
        try:
            host = np.array(data)
        except ValueError as exc:
            raise TypeError(f"For Tensor, the input_data is irregular: {exc}") from None
        if wanted is None and host.dtype.kind in "fc":
            wanted = of_python(host.dtype.type(0))
        if wanted is not None:
            of(host.dtype)
            host = host.astype(wanted)
    else:
        raise TypeError(
            "For Tensor, the input_data must be a number, a list, a tuple, a numpy.ndarray or a "
            f"Tensor, but got {type(data)}."
        )
    of(host.dtype)
    return host


def text(value: Any, dtype: str) -> str:
    """Return what ``repr`` of a tensor shows."""
    head = f"Tensor(shape={list(value.shape)}, dtype={dtype}, value="
    if not value.size:
        return f"{head} )"
    if value.ndim == 0:
        return f"{head} {value.item():g})" if value.dtype.kind == "f" else f"{head} {value.item()})"
    shown = np.array2string(
        value,
        separator=", ",
        max_line_width=sys.maxsize,
        formatter=_formatter(value.dtype),
    )
    return f"{head}{' ' if value.ndim == 1 else chr(10)}{shown})"


def _formatter(dtype: Any) -> Any:
    if dtype.kind != "f":
        return None
    width, digits = (11, 4) if dtype.itemsize == 2 else (15, 8)
    return {"float_kind": lambda x: f"{x:{width}.{digits}e}"}
