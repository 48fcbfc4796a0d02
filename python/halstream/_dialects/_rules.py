"""Which element type and shape results of operations on tensors have, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np

_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def _rank(dtype: Any) -> int:
    """Return how high a kind of numbers stands above bool."""
    return _RANKS[dtype.kind]


def of_python(value: Any) -> Any:
    """Return the element type that a Python scalar gets in a tensor."""
    if isinstance(value, (bool, np.bool_)):
        return np.dtype(np.bool_)
    if isinstance(value, (int, np.integer)):
        return np.dtype(np.int64)
    if isinstance(value, (float, np.floating)):
        return np.dtype(np.float32)
    return np.dtype(np.complex64)


def promote(a: Any, b: Any) -> Any:
    """Return the type of two tensors' result: among kinds the higher one's own type wins.

    NumPy would make a Float64 of Int32 and Float32.
    """
    if _rank(a) == _rank(b):
        return np.promote_types(a, b)
    if {_rank(a), _rank(b)} == {2, 3}:
        return np.promote_types(a, b)
    return a if _rank(a) > _rank(b) else b


def with_scalar(dtype: Any, value: Any) -> Any:
    """Return the type of a tensor's result with a scalar: its own, unless of a lower kind."""
    other = of_python(value)
    if _rank(other) <= _rank(dtype):
        return dtype
    return np.promote_types(dtype, other) if _rank(other) == 3 and _rank(dtype) == 2 else other


def inexact(dtype: Any) -> Any:
    """Return the type of quotients and sines."""
    return dtype if _rank(dtype) >= 2 else np.dtype(np.float32)


def broadcast(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(f"For '{name}', the shapes {a} and {b} cannot be broadcast.") from None


def matmul(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a matrix product by NumPy's rules."""
    if not a or not b:
        raise ValueError("For 'MatMul', both operands need one dimension or more.")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise RuntimeError(f"For 'MatMulExt' op, shape1[-1] must be equal to shape2[-2], but got {a[-1]} and {inner}.")
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return (*broadcast("MatMul", a[:-2], b[:-2]), *rows, *columns)
