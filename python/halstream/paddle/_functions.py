"""Functions of paddle 3.3 that make tensors, and those on two of them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .._dialects._compute import check_room
from .._dialects._tensor import copy_into, fill
from ._dtype import get_default_dtype, to_numpy
from ._names import device_to_place, expected_place
from ._random import generator, get_rng_state, seed, set_rng_state
from ._tensor import Tensor, check_tensor, made, on_cpu

__all__ = [
    "add",
    "divide",
    "empty",
    "full",
    "get_rng_state",
    "is_tensor",
    "matmul",
    "multiply",
    "ones",
    "rand",
    "randn",
    "seed",
    "set_rng_state",
    "subtract",
    "to_tensor",
    "zeros",
]


def to_tensor(data: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True) -> Tensor:
    """`paddle.to_tensor` of 3.3: the contents are there when the call returns."""
    return made(data, dtype, place, stop_gradient)


def is_tensor(x: Any) -> bool:
    """`paddle.is_tensor` of 3.3."""
    return isinstance(x, Tensor)


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    lengths = shape if isinstance(shape, (list, tuple)) else (shape,)
    try:
        wanted = tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise TypeError(
            f"(InvalidType) {name}(): argument (position 1) must be list, tuple, int, or Tensor, "
            f"but got {type(shape).__name__}"
        ) from None
    for n in wanted:
        if n < 0:
            raise ValueError(
                f"(InvalidArgument) Each value of attribute 'shape' is expected to be no less than 0, but received {n}."
            )
    return wanted


def _created(shape: tuple[int, ...], kind: Any, device: Any, function: Callable[..., Any], value: Any) -> Tensor:
    """Return a tensor that the current stream of its place fills."""
    made: Tensor = object.__new__(Tensor)
    made._make_at(expected_place() if device is None else device_to_place(device), function, shape, kind, value)
    return made


def _drawn(name: str, draw: Callable[..., Any], shape: Any, dtype: Any, device: Any) -> Tensor:
    """Return a tensor of random numbers."""
    wanted, kind = _shape(name, shape), _kind(dtype)
    place = expected_place() if device is None else device_to_place(device)
    if not on_cpu(place):
        check_room(wanted, kind, place._index)
    return _created(wanted, kind, place, copy_into, draw(wanted))


def _kind(dtype: Any) -> Any:
    return to_numpy(dtype or get_default_dtype())


def full(shape: Any, fill_value: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.full` of 3.3 without `out`; the default type of integers is the default float."""
    if dtype is None and isinstance(fill_value, bool):
        dtype = "bool"
    elif dtype is None and isinstance(fill_value, complex):
        dtype = "complex128"
    return _created(_shape("full", shape), _kind(dtype), device, fill, fill_value)


def ones(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.ones` of 3.3 without `out`."""
    return full(shape, 1, dtype, device=device)


def zeros(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.zeros` of 3.3 without `out`."""
    return full(shape, 0, dtype, device=device)


def empty(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.empty` of 3.3 without `out`; zeros here."""
    return zeros(shape, dtype, device=device)


def randn(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.randn` of 3.3 without `out`; the numbers are NumPy's."""
    return _drawn("gaussian", generator.normal, shape, dtype, device)


def rand(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.rand` of 3.3 without `out`; the numbers are NumPy's."""
    return _drawn("uniform", generator.uniform, shape, dtype, device)


def _of_tensor(name: str) -> Callable[..., Any]:
    def operate(x: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the tensor's method of this name."""
        check_tensor(name, "x", 0, x)
        return getattr(x, name)(*args, **kwargs)

    operate.__name__ = operate.__qualname__ = name
    return operate


add: Callable[..., Any] = _of_tensor("add")
subtract: Callable[..., Any] = _of_tensor("subtract")
multiply: Callable[..., Any] = _of_tensor("multiply")
divide: Callable[..., Any] = _of_tensor("divide")
matmul: Callable[..., Any] = _of_tensor("matmul")
