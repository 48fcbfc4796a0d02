"""`mindspore.jit` and `mindspore.grad` of 2.10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._errors import NotSupportedError
from .common.tensor import Tensor

# Far below what a sum of doubles can see, and far above the least double.
_STEP = 1e-20


def jit(function: Callable[..., Any] | None = None, **settings: Any) -> Any:
    """`mindspore.jit` of 2.10: nothing is compiled, the function stays what it is."""
    return function if function is not None else lambda decorated: decorated


def grad(
    fn: Callable[..., Any],
    grad_position: int | tuple[int, ...] = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """`mindspore.grad` of 2.10 for functions of ``+ - * / @``, sin, sum and conv2d.

    Differences: derivatives are taken by a complex step, one call of `fn` for
    each element, on the stream that is current then; parameters (`weights`)
    do not exist.
    """
    if weights is not None or has_aux or return_ids or grad_position is None:
        raise NotSupportedError("grad: only derivatives by the arguments can be had here")
    positions = grad_position if isinstance(grad_position, tuple) else (grad_position,)

    def gradient(*args: Any) -> Any:
        found = tuple(_by(fn, args, position) for position in positions)
        return found if isinstance(grad_position, tuple) else found[0]

    return gradient


def _by(fn: Callable[..., Any], args: tuple[Any, ...], position: int) -> Tensor:
    """Return the derivative of the sum of all results by one argument."""
    x = args[position]
    if not isinstance(x, Tensor) or x._dtype.kind != "f":
        raise TypeError("For 'grad', the argument to derive by must be a Tensor of floats.")
    result = Tensor._result(_nothing, x.shape, x._dtype)
    dual = np.dtype(np.complex128)
    for k in range(x.size):
        point = Tensor._result(_moved, x.shape, dual, x, k)
        value = fn(*args[:position], point, *args[position + 1 :])
        if not isinstance(value, Tensor):
            raise TypeError(f"For 'grad', the function must return a Tensor, not {type(value)}.")
        result._change(_store, value, k)
    return result


def _nothing(*, out: Any) -> None:
    out[...] = 0


def _moved(x: Any, k: int, *, out: Any) -> None:
    out[...] = x
    out.flat[k] += 1j * _STEP


def _store(value: Any, k: int, *, out: Any) -> None:
    out.flat[k] = value.imag.sum() / _STEP
