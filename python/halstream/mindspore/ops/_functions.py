"""The functions of `mindspore.ops`; each enqueues its operation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._core._current import current_device
from ..._dialects import _rules
from ..._dialects._compute import check_room
from ..._dialects._operate import binary, product, unary
from ..._dialects._random import Random
from ..._errors import NotSupportedError
from ..common._created import checked_shape, copy_host, created, fill, generator
from ..common.dtype import Type, float32, to_numpy
from ..common.tensor import Tensor

__all__ = [
    "abs",
    "add",
    "arange",
    "assign",
    "bmm",
    "cast",
    "cat",
    "concat",
    "conv2d",
    "cos",
    "depend",
    "div",
    "equal",
    "exp",
    "full",
    "greater",
    "less",
    "log",
    "matmul",
    "maximum",
    "mean",
    "minimum",
    "mm",
    "mul",
    "neg",
    "ones",
    "ones_like",
    "pow",
    "rand",
    "randn",
    "relu",
    "reshape",
    "sin",
    "sqrt",
    "square",
    "stack",
    "sub",
    "sum",
    "tanh",
    "transpose",
    "zeros",
    "zeros_like",
]


def _both(name: str, function: Any, a: Any, b: Any) -> Tensor:
    result = binary(name, function, a, b)
    if result is NotImplemented:
        raise TypeError(
            f"For '{name}', the operands must be a Tensor and a Tensor or a number, but got {type(a)} and {type(b)}."
        )
    return result  # type: ignore[no-any-return]


def add(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.add` of 2.10."""
    return _both("Add", np.add, input, other)


def sub(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.sub` of 2.10."""
    return _both("Sub", np.subtract, input, other)


def mul(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.mul` of 2.10."""
    return _both("Mul", np.multiply, input, other)


def div(input: Any, other: Any) -> Tensor:
    """`mindspore.ops.div` of 2.10 without rounding modes."""
    return _both("Div", np.true_divide, input, other)


def abs(input: Tensor) -> Tensor:
    """`mindspore.ops.abs` of 2.10; not of complex numbers."""
    return unary("Abs", np.absolute, input)


def sin(input: Tensor) -> Tensor:
    """`mindspore.ops.sin` of 2.10."""
    return unary("Sin", np.sin, input, inexact=True)


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """`mindspore.ops.matmul` of 2.10."""
    for value in (input, other):
        if not isinstance(value, Tensor):
            raise TypeError(f"For 'MatMul', the operands must be Tensors, but got {type(value)}.")
    return product(input, other)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """`mindspore.ops.mm` of 2.10."""
    return matmul(input, mat2)


def bmm(input_x: Tensor, mat2: Tensor) -> Tensor:
    """`mindspore.ops.bmm` of 2.10; any number of dimensions."""
    return matmul(input_x, mat2)


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.sum` of 2.10."""
    return _tensor("sum", input).sum(dim, dtype, keepdim)  # type: ignore[no-any-return]


def mean(x: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """`mindspore.ops.mean` of 2.10."""
    return _tensor("mean", x).mean(axis, keep_dims)  # type: ignore[no-any-return]


def reshape(input: Tensor, shape: Any) -> Tensor:
    """`mindspore.ops.reshape` of 2.10."""
    return _tensor("reshape", input).reshape(shape)  # type: ignore[no-any-return]


def transpose(input: Tensor, input_perm: Any) -> Tensor:
    """`mindspore.ops.transpose` of 2.10."""
    return _tensor("transpose", input).transpose(input_perm)  # type: ignore[no-any-return]


def cast(input: Tensor, dtype: Type) -> Tensor:
    """`mindspore.ops.cast` of 2.10."""
    return _tensor("cast", input).astype(dtype)


def depend(value: Tensor, expr: Any) -> Tensor:
    """`mindspore.ops.depend` of 2.10: streams keep the order of the calls anyway."""
    return value


def assign(variable: Tensor, value: Any) -> Tensor:
    """`mindspore.ops.assign` of 2.10: change a parameter in place."""
    _tensor("assign", variable)[...] = value
    return variable


def concat(tensors: Any, axis: int = 0) -> Tensor:
    """`mindspore.ops.concat` of 2.10."""
    parts = [_tensor("concat", x) for x in tensors]
    host = np.concatenate([np.broadcast_to(np.int8(0), x.shape) for x in parts], axis)
    kind = functools.reduce(_rules.promote, [x._dtype for x in parts])
    return Tensor._result(_concatenate, host.shape, kind, axis, *parts)


cat = concat


def stack(tensors: Any, axis: int = 0) -> Tensor:
    """`mindspore.ops.stack` of 2.10."""
    return concat([_tensor("stack", x).expand_dims(axis) for x in tensors], axis)


def _concatenate(axis: int, *parts: Any, out: Any) -> None:
    np.copyto(out, np.concatenate(parts, axis), casting="unsafe")


def _tensor(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"For '{name}', the input must be a Tensor, but got {type(value)}.")
    return value


def ones(shape: Any, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.ones` of 2.10; Float32 by default."""
    return created("Ones", fill, shape, _kind("Ones", dtype), 1)


def zeros(size: Any, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.zeros` of 2.10; Float32 by default."""
    return created("Zeros", fill, size, _kind("Zeros", dtype), 0)


def _kind(name: str, dtype: Any) -> Any:
    if dtype is not None and not isinstance(dtype, Type):
        raise TypeError(f"For '{name}', the input 'dtype' should be mindspore dtype, but got {dtype}.")
    return to_numpy(dtype or float32)


def ones_like(input: Tensor, *, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.ones_like` of 2.10."""
    return ones(_tensor("ones_like", input).shape, dtype or input.dtype)


def zeros_like(input: Tensor, *, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.zeros_like` of 2.10."""
    return zeros(_tensor("zeros_like", input).shape, dtype or input.dtype)


def full(size: Any, fill_value: Any, *, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.full` of 2.10; Int64 by default, of a float as well."""
    return created("FillV2", fill, size, to_numpy(dtype) if dtype else np.int64, fill_value)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.arange` of 2.10."""
    host = np.arange(start, step=step) if end is None else np.arange(start, end, step)
    kind = to_numpy(dtype) if dtype else np.float32 if host.dtype.kind == "f" else np.int64
    return created("Range", copy_host, host.shape, kind, host)


def randn(*size: Any, dtype: Type | None = None, seed: int | None = None) -> Tensor:
    """`mindspore.ops.randn` of 2.10; the numbers are NumPy's."""
    return _random("randn", _generator(seed).normal, size, dtype)


def rand(*size: Any, dtype: Type | None = None, seed: int | None = None) -> Tensor:
    """`mindspore.ops.rand` of 2.10; the numbers are NumPy's."""
    return _random("rand", _generator(seed).uniform, size, dtype)


def _generator(seed: int | None) -> Random:
    if seed is None:
        return generator
    made = Random()  # of this call alone
    made.reseed(seed)
    return made


def _random(name: str, draw: Any, size: Any, dtype: Any) -> Tensor:
    lengths = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    shape, kind = checked_shape(name, lengths), _kind(name, dtype)
    check_room(shape, kind, current_device())
    return created(name, copy_host, shape, kind, draw(shape))


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int = 1,
    pad_mode: str = "valid",
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor:
    """`mindspore.ops.conv2d` of 2.10 for input and weight alone, in layout NCHW."""
    if (bias, stride, pad_mode, padding, dilation, groups) != (None, 1, "valid", 0, 1, 1):
        raise NotSupportedError("conv2d: only the input and the weight can be chosen here")
    if input.ndim != 4 or weight.ndim != 4 or input.shape[1] != weight.shape[1]:
        raise ValueError(f"For 'conv2d', the shapes {input.shape} and {weight.shape} do not fit.")
    size = [a - b + 1 for a, b in zip(input.shape[2:], weight.shape[2:], strict=True)]
    if min(size) < 1:
        raise ValueError("For 'conv2d', the weight is larger than the input.")
    kind = _rules.promote(input._dtype, weight._dtype)
    return Tensor._result(_convolve, (input.shape[0], weight.shape[0], *size), kind, input, weight)


def _convolve(value: Any, weight: Any, *, out: Any) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(value, weight.shape[2:], axis=(2, 3))
    # Batch, rows, columns, output channel: the last one moves to its place.
    product = np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3)))
    np.copyto(out, np.moveaxis(product, -1, 1), casting="unsafe")


def _maker(name: str, function: Any) -> Any:
    def operate(input: Any, other: Any) -> Tensor:
        """Enqueue the operation of this name."""
        return _both(name, function, input, other)

    return operate


def _of_one(name: str, function: Any, inexact: bool = False) -> Any:
    def operate(input: Tensor) -> Tensor:
        """Enqueue the operation of this name."""
        return unary(name, function, input, inexact=inexact)

    return operate


maximum: Callable[..., Any] = _maker("Maximum", np.maximum)
minimum: Callable[..., Any] = _maker("Minimum", np.minimum)
pow: Callable[..., Any] = _maker("Pow", np.power)
equal: Callable[..., Any] = _maker("Equal", np.equal)
greater: Callable[..., Any] = _maker("Greater", np.greater)
less: Callable[..., Any] = _maker("Less", np.less)
neg: Callable[..., Any] = _of_one("Neg", np.negative)
square: Callable[..., Any] = _of_one("Square", np.square)
exp: Callable[..., Any] = _of_one("Exp", np.exp, inexact=True)
sqrt: Callable[..., Any] = _of_one("Sqrt", np.sqrt, inexact=True)
cos: Callable[..., Any] = _of_one("Cos", np.cos, inexact=True)
tanh: Callable[..., Any] = _of_one("Tanh", np.tanh, inexact=True)
log: Callable[..., Any] = _of_one("Log", np.log, inexact=True)


def relu(input: Tensor) -> Tensor:
    """`mindspore.ops.relu` of 2.10."""
    return _both("ReLU", np.maximum, _tensor("ReLU", input), 0)
