"""Operators of ndarray: NumPy functions enqueued on the current stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .._core._node import name_of
from .._dialects import _compute
from ._base_array import BaseArray
from .cuda._blocks import stream_of
from .cuda._captured import refuse_library

# What an operand may be beside an array of this package.
_SCALARS = (int, float, complex, np.generic)

A = TypeVar("A", bound=BaseArray)
Operator = Callable[[Any, Any], Any]


def enqueue(function: Callable[..., Any], out: BaseArray, operands: tuple[Any, ...]) -> None:
    """Enqueue ``out[...] = function(*operands)`` on the current stream."""
    given = [o._array if isinstance(o, BaseArray) else o for o in operands]
    _compute.compute(stream_of(None), _run, out._array, function, *given, checked=False)


def _run(function: Any, *args: Any, out: Any) -> None:
    with np.errstate(all="ignore"):
        out[...] = function(*args)


# As the kernels of cupy are called.
setattr(_run, "_halstream_name", lambda function, *args: f"cupy_{name_of(function)}")  # noqa: B010


def result_like(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Return a NumPy array with the shape and dtype of ``function(*operands)``."""
    stand_ins = [np.broadcast_to(np.ones((), o.dtype), o.shape) if isinstance(o, BaseArray) else o for o in operands]
    with np.errstate(all="ignore"):
        return function(*stand_ins)


def compute(array: type[A], function: Callable[..., Any], *operands: Any) -> A:
    """Enqueue a NumPy function of arrays and scalars; return the new array that it fills."""
    if function is np.matmul:
        refuse_library("cuBLAS")
    like = result_like(function, operands)
    out = array(np.shape(like), like.dtype)
    enqueue(function, out, operands)
    return out


def compute_in_place(function: Callable[..., Any], target: BaseArray, other: Any) -> None:
    """Enqueue ``target[...] = function(target, other)``.

    Raises
    ------
    TypeError
        The result's dtype does not cast to the target's by the rule 'same_kind'.
    ValueError
        The result has another shape than the target.
    """
    like = result_like(function, (target, other))
    if not np.can_cast(like.dtype, target.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast output operand from {like.dtype!r} to {target.dtype!r} according to the rule 'same_kind'"
        )
    if np.shape(like) != target.shape:
        raise ValueError("Out shape is mismatched")
    enqueue(function, target, (target, other))


def accepts(other: Any) -> bool:
    """Return whether `other` is an operand; False leaves the operation to its class.

    Raises
    ------
    TypeError
        No operand supports it: NumPy arrays, lists, texts.
    """
    if isinstance(other, (BaseArray, *_SCALARS)):
        return True
    if isinstance(other, np.ndarray) or not hasattr(other, "__array_priority__"):
        raise TypeError(f"Unsupported type {type(other)}")
    return False


def binary(function: Callable[..., Any]) -> tuple[Operator, Operator, Operator]:
    """Return the methods ``a + b``, ``b + a`` and ``a += b`` of a NumPy function."""

    def forward(self: BaseArray, other: Any) -> Any:
        return compute(type(self), function, self, other) if accepts(other) else NotImplemented

    def backward(self: BaseArray, other: Any) -> Any:
        return compute(type(self), function, other, self) if accepts(other) else NotImplemented

    def in_place(self: BaseArray, other: Any) -> Any:
        if not accepts(other):
            return NotImplemented
        compute_in_place(function, self, other)
        return self

    return forward, backward, in_place


def comparison(function: Callable[..., Any]) -> Operator:
    """Return the method ``a < b`` of a NumPy function."""

    def forward(self: BaseArray, other: Any) -> Any:
        known = isinstance(other, (BaseArray, *_SCALARS))
        return compute(type(self), function, self, other) if known else NotImplemented

    return forward


def unary(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return the method ``-a`` of a NumPy function."""

    def method(self: BaseArray) -> Any:
        return compute(type(self), function, self)

    return method
