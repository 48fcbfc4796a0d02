"""Functions of paddle 3.3 on tensors, and those that make them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dialects import _rules
from .._dialects._compute import check_room
from .._dialects._random import Random
from .._runtime import runtime
from ._dtype import get_default_dtype, to_numpy
from ._methods import check_tensor
from ._names import device_to_place
from ._tensor import Tensor, computing_place, made, on_cpu

__all__ = [
    "abs",
    "add",
    "allclose",
    "arange",
    "assign",
    "cast",
    "concat",
    "cos",
    "divide",
    "empty",
    "equal",
    "exp",
    "full",
    "get_rng_state",
    "is_tensor",
    "log",
    "matmul",
    "max",
    "maximum",
    "mean",
    "minimum",
    "mm",
    "multiply",
    "ones",
    "ones_like",
    "rand",
    "randn",
    "reshape",
    "seed",
    "set_rng_state",
    "sin",
    "sqrt",
    "square",
    "stack",
    "subtract",
    "sum",
    "tanh",
    "to_tensor",
    "transpose",
    "zeros",
    "zeros_like",
]

#: What `paddle.seed` seeds; its state is what `paddle.device.get_rng_state` returns.
generator = runtime.add("random numbers of paddle", Random())


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


def _created(name: str, function: Callable[..., Any], shape: Any, kind: Any, device: Any, *args: Any) -> Tensor:
    """Return a tensor that the current stream of its place fills."""
    wanted = _shape(name, shape)
    place = computing_place() if device is None else device_to_place(device)
    if on_cpu(place):
        host = np.empty(wanted, kind)
        function(*args, out=host)
        return Tensor._at(host, place)
    result: Tensor = object.__new__(Tensor)
    result._make_at(place, function, wanted, kind, *args)
    return result


def _drawn(name: str, draw: Callable[..., Any], shape: Any, kind: Any, device: Any) -> Tensor:
    """Return a tensor of random numbers."""
    wanted = _shape(name, shape)
    place = computing_place() if device is None else device_to_place(device)
    if not on_cpu(place):
        check_room(wanted, kind, place._index)
    return _created(name, _copy, shape, kind, device, draw(wanted))


def _kind(dtype: Any) -> Any:
    return to_numpy(dtype or get_default_dtype())


def full(shape: Any, fill_value: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.full` of 3.3 without `out`; the default type of integers is the default float."""
    if dtype is None and isinstance(fill_value, bool):
        kind: Any = np.dtype(np.bool_)
    elif dtype is None and isinstance(fill_value, complex):
        kind = np.dtype(np.complex128)
    else:
        kind = _kind(dtype)
    return _created("full", _fill, shape, kind, device, fill_value)


def ones(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.ones` of 3.3 without `out`."""
    return _created("full", _fill, shape, _kind(dtype), device, 1)


def zeros(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.zeros` of 3.3 without `out`."""
    return _created("full", _fill, shape, _kind(dtype), device, 0)


def empty(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.empty` of 3.3 without `out`; zeros here."""
    return zeros(shape, dtype, device=device)


def ones_like(x: Tensor, dtype: Any = None, name: str | None = None) -> Tensor:
    """`paddle.ones_like` of 3.3."""
    return ones(list(x.shape), dtype or x.dtype, device=x.place)


def zeros_like(x: Tensor, dtype: Any = None, name: str | None = None) -> Tensor:
    """`paddle.zeros_like` of 3.3."""
    return zeros(list(x.shape), dtype or x.dtype, device=x.place)


def arange(start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """`paddle.arange` of 3.3."""
    host = np.arange(start, step=step) if end is None else np.arange(start, end, step)
    kind = to_numpy(dtype) if dtype else _kind(None) if host.dtype.kind == "f" else np.int64
    return _created("arange", _copy, host.shape, kind, None, host)


def randn(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.randn` of 3.3 without `out`; the numbers are NumPy's."""
    return _drawn("gaussian", generator.normal, shape, _kind(dtype), device)


def rand(shape: Any, dtype: Any = None, name: str | None = None, *, device: Any = None) -> Tensor:
    """`paddle.rand` of 3.3 without `out`; the numbers are NumPy's."""
    return _drawn("uniform", generator.uniform, shape, _kind(dtype), device)


def _fill(value: Any, *, out: Any) -> None:
    out[...] = value


def _copy(source: Any, *, out: Any) -> None:
    np.copyto(out, source, casting="unsafe")


class GeneratorState:
    """`paddle.base.core.GeneratorState` of 3.3: what the next random numbers depend on."""

    def __init__(self, state: dict[str, Any], seed: int) -> None:
        self._state = state
        self._seed = seed

    def current_seed(self) -> int:
        """Return the seed that the numbers began with."""
        return self._seed

    @classmethod
    def _now(cls) -> GeneratorState:
        return cls(generator.state, generator.seed or 0)

    def _restore(self) -> None:
        generator.state, generator.seed = self._state, self._seed


def get_rng_state(device: str | None = None) -> list[GeneratorState]:
    """`paddle.get_rng_state` of 3.3: a list of one state, for all devices."""
    if device is not None and not isinstance(device, str):
        raise ValueError(f"get_rng_state is not implemented for current device: {device}")
    return [GeneratorState._now()]


def set_rng_state(state_list: Any, device: str | None = None) -> None:
    """`paddle.set_rng_state` of 3.3."""
    for state in state_list:
        state._restore()


class Generator:
    """`paddle.base.core.Generator` of 3.3: the one generator there is here."""

    def manual_seed(self, seed: int) -> Generator:
        """Seed it."""
        generator.reseed(int(seed))
        return self

    def initial_seed(self) -> int:
        """Return the seed it began with."""
        return generator.seed or 0


def seed(seed: int) -> Generator:
    """`paddle.seed` of 3.3; the numbers that follow are NumPy's, not paddle's."""
    number = int(seed)
    if number < 0:
        raise TypeError(f"manual_seed(): incompatible function arguments: {number}")
    return Generator().manual_seed(number)


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
maximum: Callable[..., Any] = _of_tensor("maximum")
minimum: Callable[..., Any] = _of_tensor("minimum")
equal: Callable[..., Any] = _of_tensor("equal")
matmul: Callable[..., Any] = _of_tensor("matmul")
mm: Callable[..., Any] = _of_tensor("matmul")
exp: Callable[..., Any] = _of_tensor("exp")
sqrt: Callable[..., Any] = _of_tensor("sqrt")
sin: Callable[..., Any] = _of_tensor("sin")
abs: Callable[..., Any] = _of_tensor("abs")
cos: Callable[..., Any] = _of_tensor("cos")
tanh: Callable[..., Any] = _of_tensor("tanh")
log: Callable[..., Any] = _of_tensor("log")
square: Callable[..., Any] = _of_tensor("square")
sum: Callable[..., Any] = _of_tensor("sum")
mean: Callable[..., Any] = _of_tensor("mean")
reshape: Callable[..., Any] = _of_tensor("reshape")
transpose: Callable[..., Any] = _of_tensor("transpose")
cast: Callable[..., Any] = _of_tensor("cast")
max: Callable[..., Any] = _of_tensor("max")


def assign(x: Any, output: Tensor | None = None) -> Tensor:
    """`paddle.assign` of 3.3: a copy, or a change of `output`."""
    source = x if isinstance(x, Tensor) else to_tensor(x)
    if output is None:
        return source.clone()
    output._set(..., source)
    return output


def concat(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """`paddle.concat` of 3.3."""
    parts = list(x)
    for part in parts:
        check_tensor("concat", "x", 0, part)
    empties = [np.broadcast_to(np.int8(0), tuple(part.shape)) for part in parts]
    try:
        shape = np.concatenate(empties, axis).shape
    except ValueError as exc:
        raise ValueError(f"(InvalidArgument) {exc}") from None
    kind = functools.reduce(_rules.promote, [part._dtype for part in parts])
    return Tensor._result(_concatenate, shape, kind, axis, *parts)


def stack(x: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """`paddle.stack` of 3.3."""
    return concat([part.unsqueeze(axis) for part in x], axis)


def _concatenate(axis: int, *parts: Any, out: Any) -> None:
    np.copyto(out, np.concatenate(parts, axis), casting="unsafe")


def allclose(
    x: Tensor,
    y: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
    name: str | None = None,
) -> Tensor:
    """`paddle.allclose` of 3.3."""
    return Tensor._result(_close, (), np.bool_, x, y, rtol, atol, equal_nan)


def _close(x: Any, y: Any, rtol: float, atol: float, equal_nan: bool, *, out: Any) -> None:
    out[...] = np.allclose(x, y, rtol, atol, equal_nan)
