"""Operators on tensors: types and shapes are determined at the call, the elements are computed on the stream."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from . import _rules
from ._tensor import Contents, copy_into

T = TypeVar("T", bound=Contents)

__all__ = ["SCALARS", "binary", "change", "copy_into", "product", "reduce", "unary"]

COMPARE = frozenset((np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal))
# Operations that NumPy refuses for bool, and those that give the same result.
_OF_BOOL = {np.subtract: np.logical_xor, np.floor_divide: np.logical_and}
_NOT_OF_BOOL = frozenset((np.remainder, np.power))
# Operations whose other operand may be a list of numbers.
_WITH_LISTS = frozenset((np.add, np.subtract, np.floor_divide))
_BITWISE = frozenset((np.bitwise_and, np.bitwise_or, np.bitwise_xor))
SCALARS = (bool, int, float, complex, np.number, np.bool_)


def binary(name: str, function: Any, a: Any, b: Any) -> Any:
    """Enqueue an operation on two tensors, or on one and a scalar."""
    if function in _WITH_LISTS:
        a, b = _listed(a, b), _listed(b, a)
    pair = _pair(a, b)
    if pair is None:
        return NotImplemented
    x, y, dtype = pair
    shape = _rules.broadcast(name, getattr(x, "shape", ()), getattr(y, "shape", ()))
    dtype = _settled(name, function, dtype)
    kind = np.bool_ if function in COMPARE else dtype
    cls = (x if isinstance(x, Contents) else y)._class
    return cls._result(_typed, shape, kind, function, _plain(x, dtype), _plain(y, dtype), dtype)


def change(name: str, function: Any, a: Contents, b: Any) -> Any:
    """Enqueue an operation whose result takes the place of the first operand's contents."""
    pair = _pair(a, b)
    if pair is None:
        return NotImplemented
    dtype = _settled(name, function, pair[2])
    if not np.can_cast(dtype, a._dtype, "same_kind"):
        raise TypeError(f"For '{name}', a tensor of {a._dtype} cannot hold the result in place.")
    if _rules.broadcast(name, tuple(a.shape), getattr(pair[1], "shape", ())) != tuple(a.shape):
        raise ValueError(f"For '{name}', the result does not fit a tensor of shape {a.shape}.")
    a._change(_typed, function, a, _plain(pair[1], dtype), dtype)
    return a


def unary(name: str, function: Any, x: T, *, inexact: bool = False) -> T:
    """Enqueue an operation on one tensor; `inexact` ones have no integers as results."""
    if not isinstance(x, Contents):
        raise TypeError(f"For '{name}', the input must be a Tensor, but got {type(x)}.")
    kind = x._dtype.kind
    if (kind == "c" and function is np.absolute) or (kind == "b" and function is np.negative):
        raise TypeError(f"For '{name}', tensors of {x._dtype} are not supported.")
    dtype = _rules.inexact(x._dtype) if inexact else x._dtype
    return x._class._result(_typed, x.shape, dtype, function, x, dtype)  # type: ignore[no-any-return]


def product(a: T, b: T) -> T:
    """Enqueue a matrix product."""
    shape = _rules.matmul(tuple(a.shape), tuple(b.shape))
    dtype = _rules.promote(a._dtype, b._dtype)
    return a._class._result(_typed, shape, dtype, np.matmul, a, b, dtype)  # type: ignore[no-any-return]


def reduce(name: str, function: Any, x: T, axis: Any, keep: bool, dtype: Any) -> T:
    """Enqueue what NumPy's `function` makes of dimensions: one, several, or all for None."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if any(not isinstance(n, (int, np.integer)) for n in axes):
        raise TypeError(f"For '{name}', the axis must be an int or several, but got {axis!r}.")
    for n in axes:
        if not -x.ndim <= n < max(x.ndim, 1):
            raise ValueError(f"For '{name}', the axis value must be in [{-x.ndim},{x.ndim}), but got {n}.")
    left_out = {n % x.ndim for n in axes} if x.ndim else set()
    shape = [1 if i in left_out else n for i, n in enumerate(x.shape) if keep or i not in left_out]
    if not x.size and function in (np.max, np.min):
        raise ValueError(f"For '{name}', the tensor has no elements.")
    return x._class._result(  # type: ignore[no-any-return]
        _reduced, shape, dtype, function, x, tuple(sorted(left_out)), keep
    )


def _settled(name: str, function: Any, dtype: Any) -> Any:
    """Return the type an operation is done in; TypeError where it does not exist."""
    kind = dtype.kind
    if (kind == "b" and function in _NOT_OF_BOOL) or (kind in "fc" and function in _BITWISE):
        raise TypeError(f"For '{name}', tensors of {dtype} are not supported.")
    return _rules.inexact(dtype) if function is np.true_divide else dtype


def _pair(a: Any, b: Any) -> tuple[Any, Any, Any] | None:
    """Return both operands and the element type of the result; None for what is no operand."""
    if isinstance(a, np.ndarray) and isinstance(b, Contents):
        a = b._class._of(a)
    if isinstance(b, np.ndarray) and isinstance(a, Contents):
        b = a._class._of(b)
    if isinstance(a, Contents) and isinstance(b, Contents):
        return a, b, _rules.promote(a._dtype, b._dtype)
    if isinstance(a, Contents) and isinstance(b, SCALARS):
        return a, b, _rules.with_scalar(a._dtype, b)
    if isinstance(b, Contents) and isinstance(a, SCALARS):
        return a, b, _rules.with_scalar(b._dtype, a)
    return None


def _listed(value: Any, other: Any) -> Any:
    """Return a list of numbers as an array, of the other operand's type if that can hold them."""
    if not isinstance(value, (list, tuple)) or not isinstance(other, Contents):
        return value
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"a list for an operation with a tensor holds numbers, not {array.dtype}: {value!r}")
    return array.astype(_rules.with_scalar(other._dtype, array.dtype.type(0)))


def _plain(value: Any, dtype: Any) -> Any:
    # Here and not on the stream: a number that does not fit wraps, as in a tensor.
    return value if isinstance(value, Contents) else np.asarray(value).astype(dtype)[()]


def _typed(function: Any, *operands: Any, out: Any) -> None:
    *values, dtype = operands
    if dtype.kind == "b":
        function = _OF_BOOL.get(function, function)
    with np.errstate(all="ignore"):
        if function in COMPARE:
            function(*values, out=out)
        else:
            function(*values, out=out, dtype=dtype, casting="unsafe")


def _reduced(function: Any, value: Any, axes: tuple[int, ...], keep: bool, *, out: Any) -> None:
    # A type only where NumPy takes one: all() and max() keep their own.
    typed = {"dtype": out.dtype} if function in (np.sum, np.prod, np.mean) else {}
    with np.errstate(all="ignore"):
        np.copyto(out, function(value, axis=axes, keepdims=keep, **typed), casting="unsafe")
