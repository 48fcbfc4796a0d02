"""Operators on tensors: types and shapes are settled at the call, the rest on the stream."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from . import _rules
from ._contents import Contents

T = TypeVar("T", bound=Contents)

_COMPARE = (np.equal, np.not_equal)
SCALARS = (bool, int, float, complex, np.number, np.bool_)


def binary(name: str, function: Any, a: Any, b: Any) -> Any:
    """Enqueue an operation on two tensors, or on one and a scalar."""
    pair = _pair(a, b)
    if pair is None:
        return NotImplemented
    x, y, dtype = pair
    shape = _rules.broadcast(name, getattr(x, "shape", ()), getattr(y, "shape", ()))
    if function is np.true_divide:
        dtype = _rules.inexact(dtype)
    kind = np.bool_ if function in _COMPARE else dtype
    cls = type(x if isinstance(x, Contents) else y)
    return cls._result(
        _typed, shape, kind, function, _plain(x, dtype), _plain(y, dtype), dtype
    )


def change(name: str, function: Any, a: Contents, b: Any) -> Any:
    """Enqueue an operation whose result takes the place of the first operand's contents."""
    pair = _pair(a, b)
    if pair is None:
        return NotImplemented
    dtype = _rules.inexact(pair[2]) if function is np.true_divide else pair[2]
    if not np.can_cast(dtype, a._dtype, "same_kind"):
        raise TypeError(f"For '{name}', a tensor of {a.dtype} cannot hold the result in place.")
    if _rules.broadcast(name, a.shape, getattr(pair[1], "shape", ())) != a.shape:
        raise ValueError(f"For '{name}', the result does not fit a tensor of shape {a.shape}.")
    a._change(_typed, function, a, _plain(pair[1], dtype), dtype)
    return a


def unary(name: str, function: Any, x: T) -> T:
    """Enqueue an operation on one tensor."""
    if not isinstance(x, Contents):
        raise TypeError(f"For '{name}', the input must be a Tensor, but got {type(x)}.")
    kind = x._dtype.kind
    if (kind == "c" and function is np.absolute) or (kind == "b" and function is np.negative):
        raise TypeError(f"For '{name}', tensors of {x.dtype} are not supported.")
    dtype = _rules.inexact(x._dtype) if function is np.sin else x._dtype
    return type(x)._result(_typed, x.shape, dtype, function, x, dtype)


def product(a: T, b: T) -> T:
    """Enqueue a matrix product."""
    shape = _rules.matmul(a.shape, b.shape)
    dtype = _rules.promote(a._dtype, b._dtype)
    return type(a)._result(_typed, shape, dtype, np.matmul, a, b, dtype)


def _pair(a: Any, b: Any) -> tuple[Any, Any, Any] | None:
    """Return both operands and the element type of the result; None for what is no operand."""
    if isinstance(a, np.ndarray) and isinstance(b, Contents):
        a = type(b)._of(a)
    if isinstance(b, np.ndarray) and isinstance(a, Contents):
        b = type(a)._of(b)
    if isinstance(a, Contents) and isinstance(b, Contents):
        return a, b, _rules.promote(a._dtype, b._dtype)
    if isinstance(a, Contents) and isinstance(b, SCALARS):
        return a, b, _rules.with_scalar(a._dtype, b)
    if isinstance(b, Contents) and isinstance(a, SCALARS):
        return a, b, _rules.with_scalar(b._dtype, a)
    return None


def _plain(value: Any, dtype: Any) -> Any:
    # Here and not on the stream: a number that does not fit wraps, as in a tensor.
    return value if isinstance(value, Contents) else np.asarray(value).astype(dtype)[()]


def _typed(function: Any, *operands: Any, out: Any) -> None:
    *values, dtype = operands
    if function in _COMPARE:
        function(*values, out=out)
    else:
        function(*values, out=out, dtype=dtype, casting="unsafe")


def copy_into(source: Any, *, out: Any) -> None:
    """Copy between element types, on a stream."""
    np.copyto(out, source, casting="unsafe")
