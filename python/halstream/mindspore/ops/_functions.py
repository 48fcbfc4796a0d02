"""The functions of `mindspore.ops`; each enqueues its operation."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..._core import _current
from ..._dialects import _operators
from ..._dialects._compute import check_room, upload
from ..._dialects._operators import Operation
from ..._dialects._tensor import binary, fill, product, unary
from .._target import target
from ..common.dtype import Type, float32, to_numpy
from ..common.tensor import Tensor

__all__ = ["abs", "add", "bmm", "div", "matmul", "mm", "mul", "ones", "sin", "sub", "sum", "zeros"]


def _both(operation: Operation, a: Any, b: Any) -> Tensor:
    result = binary(operation.mindspore, operation, a, b)
    if result is NotImplemented:
        raise TypeError(
            f"For '{operation.mindspore}', the operands must be a Tensor and a Tensor or a number, "
            f"but got {type(a)} and {type(b)}."
        )
    return result  # type: ignore[no-any-return]


def _tensor(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"For '{name}', the input must be a Tensor, but got {type(value)}.")
    return value


def add(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.add` of 2.10."""
    return _both(_operators.ADD, input, other)


def sub(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.sub` of 2.10."""
    return _both(_operators.SUBTRACT, input, other)


def mul(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.mul` of 2.10."""
    return _both(_operators.MULTIPLY, input, other)


def div(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.div` of 2.10 without rounding modes."""
    return _both(_operators.DIVIDE, input, other)


def abs(input: Tensor) -> Tensor:
    """`mindspore.ops.abs` of 2.10; not of complex numbers."""
    return unary("Abs", _operators.ABSOLUTE, _tensor("Abs", input))


def sin(input: Tensor) -> Tensor:
    """`mindspore.ops.sin` of 2.10."""
    return unary("Sin", _operators.SIN, _tensor("Sin", input))


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.sum` of 2.10."""
    return _tensor("sum", input).sum(dim, dtype, keepdim)  # type: ignore[no-any-return]


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """`mindspore.ops.matmul` of 2.10."""
    return product(_tensor("MatMul", input), _tensor("MatMul", other))


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mindspore.ops.mm` of 2.10."""
    return matmul(input, mat2)


def bmm(input_x: Tensor, mat2: Tensor) -> Tensor:
    """`mindspore.ops.bmm` of 2.10; any number of dimensions."""
    return matmul(input_x, mat2)


def ones(shape: Any, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.ones` of 2.10; Float32 by default."""
    return _created("Ones", shape, dtype, 1)


def zeros(size: Any, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.zeros` of 2.10; Float32 by default."""
    return _created("Zeros", size, dtype, 0)


def _created(name: str, shape: Any, dtype: Any, value: Any) -> Tensor:
    """Return a tensor of one value.

    On the target CPU the contents are there when the call returns, as in
    mindspore, whose programs rely on it: they make tensors on the default
    stream and use them on another one without an event. On GPU and Ascend the
    current stream fills them.
    """
    if dtype is not None and not isinstance(dtype, Type):
        raise TypeError(f"For '{name}', the input 'dtype' should be mindspore dtype, but got {dtype}.")
    wanted, kind = _shape(name, shape), to_numpy(dtype or float32)
    if target() != "CPU":
        return Tensor._result(fill, wanted, kind, value)
    check_room(wanted, kind, _current.current_device())
    return Tensor._view(*upload(np.full(wanted, value, kind), _current.current_device()))


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; mindspore's errors for what is none."""
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        wanted = tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise TypeError(f'Failed calling {name} with "{name}()(shape={type(shape).__name__})".') from None
    for i, n in enumerate(wanted):
        if n < 0:
            raise ValueError(
                f"For primitive[{name}], the {i}th dimension of input shape must be greater than "
                f"or equal to 0, but got {n}."
            )
    return wanted
