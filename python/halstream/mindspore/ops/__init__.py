"""`mindspore.ops` of 2.10: the functions that stream programs use; each is enqueued."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..._errors import NotSupportedError
from ..common import _rules
from ..common._operate import binary, product, unary
from ..common.dtype import Type, float32, to_numpy
from ..common.tensor import Tensor
from . import operations

__all__ = [
    "abs",
    "add",
    "bmm",
    "conv2d",
    "div",
    "matmul",
    "mm",
    "mul",
    "ones",
    "operations",
    "sin",
    "sub",
    "sum",
    "zeros",
]


def _both(name: str, function: Any, a: Any, b: Any) -> Tensor:
    result = binary(name, function, a, b)
    if result is NotImplemented:
        raise TypeError(
            f"For '{name}', the operands must be a Tensor and a Tensor or a number, but got "
            f"{type(a)} and {type(b)}."
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
    return unary("Sin", np.sin, input)


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


def sum(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Type | None = None
) -> Tensor:
    """`mindspore.ops.sum` of 2.10."""
    if not isinstance(input, Tensor):
        raise TypeError(f"For 'sum', the input must be a Tensor, but got {type(input)}.")
    axes = range(input.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    if any(not -input.ndim <= axis < input.ndim for axis in axes):
        raise ValueError(f"For 'sum', the dim {dim} is no dimension of shape {input.shape}.")
    gone = {axis % input.ndim for axis in axes}
    shape = [1 if i in gone else n for i, n in enumerate(input.shape) if keepdim or i not in gone]
    own = input._dtype
    kind = to_numpy(dtype) if dtype else own if own.kind in "fc" else np.dtype(np.int64)
    return Tensor._result(_sum, shape, kind, input, tuple(gone), keepdim)


def _sum(value: Any, axes: tuple[int, ...], keep: bool, *, out: Any) -> None:
    np.sum(value, axis=axes, keepdims=keep, dtype=out.dtype, out=out)


def ones(shape: Any, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.ones` of 2.10; Float32 by default."""
    return _filled(shape, dtype, 1)


def zeros(size: Any, dtype: Type | None = None) -> Tensor:
    """`mindspore.ops.zeros` of 2.10; Float32 by default."""
    return _filled(size, dtype, 0)


def _filled(shape: Any, dtype: Type | None, value: int) -> Tensor:
    lengths = shape if isinstance(shape, (tuple, list)) else (shape,)
    wanted = tuple(operator.index(n) for n in lengths)
    if any(n < 0 for n in wanted):
        raise ValueError(f"For 'ones', a shape has no negative lengths, but got {wanted}.")
    return Tensor._result(_fill, wanted, to_numpy(dtype or float32), value)


def _fill(value: int, *, out: Any) -> None:
    out[...] = value


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
    return Tensor._result(
        _convolve, (input.shape[0], weight.shape[0], *size), kind, input, weight
    )


def _convolve(value: Any, weight: Any, *, out: Any) -> None:
    windows = np.lib.stride_tricks.sliding_window_view(value, weight.shape[2:], axis=(2, 3))
    # Batch, rows, columns, output channel: the last one moves to its place.
    product = np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3)))
    np.copyto(out, np.moveaxis(product, -1, 1), casting="unsafe")
