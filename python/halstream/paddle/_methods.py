"""Methods of `paddle.Tensor` of 3.3: operators, reductions, and other shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .._dialects import _rules
from .._dialects._operate import SCALARS, binary, change, product, reduce, unary
from .._dialects._tensor import Contents
from ._dtype import to_numpy

_OPERANDS = (*SCALARS, np.ndarray, Contents)


def check_types(a: Any, b: Any) -> None:
    """Refuse two tensors whose types paddle does not promote.

    Only floats, and complex and real numbers, are; a tensor without dimensions
    counts as a number.
    """
    if not (isinstance(a, Contents) and isinstance(b, Contents)) or a._dtype == b._dtype:
        return
    if not (a.ndim and b.ndim):
        return
    kinds = {a._dtype.kind, b._dtype.kind}
    if kinds != {"f"} and "c" not in kinds:
        raise TypeError(
            "(InvalidType) Type promotion only support calculations between floating-point numbers "
            "and between complex and real numbers. But got different data type "
            f"x: {a._dtype.name}, y: {b._dtype.name}."
        )


def _binary(name: str, function: Any, reverse: bool = False) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if not isinstance(other, _OPERANDS):
            raise TypeError(
                f"(InvalidType) {name}(): argument (position 1) must be int, float, bool or "
                f"Tensor, but got {type(other).__name__}"
            )
        check_types(self, other)
        return binary(name, function, other, self) if reverse else binary(name, function, self, other)

    return operate


def _compare(name: str, function: Any) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if other is None or not isinstance(other, _OPERANDS):
            if name in ("__eq__", "__ne__"):
                return name == "__ne__"
            raise TypeError(
                f"(InvalidType) {name}(): argument (position 1) must be int, float, bool or "
                f"Tensor, but got {type(other).__name__}"
            )
        check_types(self, other)
        return binary(name, function, self, other)

    return operate


def _unary(name: str, function: Any, inexact: bool = False) -> Callable[..., Any]:
    def operate(self: Any, name: str | None = None) -> Any:
        """Enqueue the operation of this name."""
        return unary(title, function, self, inexact=inexact)

    title = name
    return operate


def _tensors(name: str, function: Any, enqueue: Callable[..., Any] = binary) -> Callable[..., Any]:
    def operate(self: Any, y: Any, name: str | None = None) -> Any:
        """Enqueue the operation of this name on two tensors."""
        check_tensor(title, "y", 1, y)
        check_types(self, y)
        return enqueue(title, function, self, y)

    title = name
    return operate


def check_tensor(name: str, argument: str, position: int, value: Any) -> None:
    """Raise paddle's error for an operand that is no tensor."""
    if not isinstance(value, Contents):
        raise ValueError(
            f"(InvalidArgument) {name}(): argument '{argument}' (position {position}) must be "
            f"Tensor, but got {type(value).__name__}"
        )


class Methods(Contents):
    """Operators, reductions and shapes; each operation is enqueued on the current stream."""

    __add__: Callable[[Any, Any], Any] = _binary("__add__", np.add)
    __radd__: Callable[[Any, Any], Any] = _binary("__radd__", np.add, reverse=True)
    __sub__: Callable[[Any, Any], Any] = _binary("__sub__", np.subtract)
    __rsub__: Callable[[Any, Any], Any] = _binary("__rsub__", np.subtract, reverse=True)
    __mul__: Callable[[Any, Any], Any] = _binary("__mul__", np.multiply)
    __rmul__: Callable[[Any, Any], Any] = _binary("__rmul__", np.multiply, reverse=True)
    __truediv__: Callable[[Any, Any], Any] = _binary("__truediv__", np.true_divide)
    __rtruediv__: Callable[[Any, Any], Any] = _binary("__rtruediv__", np.true_divide, reverse=True)
    __floordiv__: Callable[[Any, Any], Any] = _binary("__floordiv__", np.floor_divide)
    __rfloordiv__: Callable[[Any, Any], Any] = _binary("__rfloordiv__", np.floor_divide, reverse=True)
    __mod__: Callable[[Any, Any], Any] = _binary("__mod__", np.remainder)
    __rmod__: Callable[[Any, Any], Any] = _binary("__rmod__", np.remainder, reverse=True)
    __pow__: Callable[[Any, Any], Any] = _binary("__pow__", np.power)
    __rpow__: Callable[[Any, Any], Any] = _binary("__rpow__", np.power, reverse=True)
    __and__: Callable[[Any, Any], Any] = _binary("__and__", np.bitwise_and)
    __or__: Callable[[Any, Any], Any] = _binary("__or__", np.bitwise_or)
    __xor__: Callable[[Any, Any], Any] = _binary("__xor__", np.bitwise_xor)
    __lt__: Callable[[Any, Any], Any] = _compare("__lt__", np.less)
    __le__: Callable[[Any, Any], Any] = _compare("__le__", np.less_equal)
    __gt__: Callable[[Any, Any], Any] = _compare("__gt__", np.greater)
    __ge__: Callable[[Any, Any], Any] = _compare("__ge__", np.greater_equal)
    __eq__: Callable[[Any, Any], Any] = _compare("__eq__", np.equal)
    __ne__: Callable[[Any, Any], Any] = _compare("__ne__", np.not_equal)
    __hash__: Callable[[], int] = object.__hash__  # type: ignore[assignment]
    __neg__: Callable[..., Any] = _unary("scale", np.negative)
    __abs__: Callable[..., Any] = _unary("abs", np.absolute)
    __invert__: Callable[..., Any] = _unary("bitwise_not", np.invert)
    abs: Callable[..., Any] = _unary("abs", np.absolute)
    exp: Callable[..., Any] = _unary("exp", np.exp, inexact=True)
    sqrt: Callable[..., Any] = _unary("sqrt", np.sqrt, inexact=True)
    sin: Callable[..., Any] = _unary("sin", np.sin, inexact=True)
    cos: Callable[..., Any] = _unary("cos", np.cos, inexact=True)
    tanh: Callable[..., Any] = _unary("tanh", np.tanh, inexact=True)
    log: Callable[..., Any] = _unary("log", np.log, inexact=True)
    square: Callable[..., Any] = _unary("square", np.square)
    add: Callable[..., Any] = _tensors("add", np.add)
    subtract: Callable[..., Any] = _tensors("subtract", np.subtract)
    multiply: Callable[..., Any] = _tensors("multiply", np.multiply)
    divide: Callable[..., Any] = _tensors("divide", np.true_divide)
    maximum: Callable[..., Any] = _tensors("maximum", np.maximum)
    minimum: Callable[..., Any] = _tensors("minimum", np.minimum)
    equal: Callable[..., Any] = _tensors("equal", np.equal)
    add_: Callable[..., Any] = _tensors("add_", np.add, change)
    subtract_: Callable[..., Any] = _tensors("subtract_", np.subtract, change)
    multiply_: Callable[..., Any] = _tensors("multiply_", np.multiply, change)
    divide_: Callable[..., Any] = _tensors("divide_", np.true_divide, change)

    def matmul(self, y: Any, transpose_x: bool = False, transpose_y: bool = False, name: str | None = None) -> Any:
        """`paddle.matmul` of 3.3."""
        check_tensor("matmul", "y", 1, y)
        a = self._last_two() if transpose_x else self
        b = y._last_two() if transpose_y else y
        try:
            return product(a, b)
        except (RuntimeError, ValueError):
            raise ValueError(
                "(InvalidArgument) Input(Y) has error dim. Y'dims[0] must be equal to the last "
                f"dimension of X, but the shapes are {list(a.shape)} and {list(b.shape)}."
            ) from None

    mm = matmul

    def __matmul__(self, other: Any) -> Any:
        return self.matmul(other)

    def _last_two(self) -> Any:
        if self.ndim < 2:
            return self
        order = [*range(self.ndim - 2), self.ndim - 1, self.ndim - 2]
        return self._transpose(tuple(order))

    def fill_(self, value: Any) -> Any:
        """`paddle.Tensor.fill_` of 3.3."""
        self._change(_fill, value)
        return self

    def zero_(self) -> Any:
        """`paddle.Tensor.zero_` of 3.3."""
        return self.fill_(0)

    # -- reductions ---------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
        """`paddle.sum` of 3.3; of bools and integers an int64."""
        own = self._dtype
        kind = to_numpy(dtype) if dtype else own if own.kind in "fc" else np.dtype(np.int64)
        return reduce("sum", np.sum, self, axis, keepdim, kind)

    def mean(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
        """`paddle.mean` of 3.3."""
        return reduce("mean", np.mean, self, axis, keepdim, self._dtype)

    def max(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
        """`paddle.max` of 3.3."""
        return reduce("max", np.max, self, axis, keepdim, self._dtype)

    def min(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
        """`paddle.min` of 3.3."""
        return reduce("min", np.min, self, axis, keepdim, self._dtype)

    def all(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
        """`paddle.all` of 3.3."""
        return reduce("all", np.all, self, axis, keepdim, np.bool_)

    def any(self, axis: Any = None, keepdim: bool = False, name: str | None = None) -> Any:
        """`paddle.any` of 3.3."""
        return reduce("any", np.any, self, axis, keepdim, np.bool_)

    # -- shapes: views where the memory allows it -----------------------------------

    def reshape(self, *shape: Any, name: str | None = None) -> Any:
        """`paddle.reshape` of 3.3: a view, or a copy of what is not contiguous."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        wanted = tuple(operator.index(n) for n in lengths)
        wanted = tuple(self.shape[i] if n == 0 else n for i, n in enumerate(wanted))
        try:
            return self._reshape(wanted)
        except ValueError:
            raise ValueError(
                "(InvalidArgument) The 'shape' in ReshapeOp is invalid. The input tensor X'size "
                f"must be equal to the capacity of 'shape'. But received X's shape = "
                f"{list(self.shape)}, X's size = {self.size}, 'shape' is {list(wanted)}."
            ) from None

    def flatten(self) -> Any:
        """`paddle.flatten` of 3.3 without axes."""
        return self._reshape((-1,))

    @property
    def T(self) -> Any:
        """`paddle.Tensor.T` of 3.3: a view with the dimensions in reverse order."""
        return self._transpose()

    def transpose(self, perm: Any, name: str | None = None) -> Any:
        """`paddle.transpose` of 3.3: a view."""
        order = tuple(perm)
        if sorted(n % max(self.ndim, 1) for n in order) != list(range(self.ndim)):
            raise ValueError(
                "(InvalidArgument) The dimension of perm must equal to the dimension of x: "
                f"{self.ndim}, but received {list(order)}."
            )
        return self._transpose(order)

    def squeeze(self, axis: Any = None, name: str | None = None) -> Any:
        """`paddle.squeeze` of 3.3: a view without dimensions of length 1."""
        asked = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        picked = {n % self.ndim for n in asked}
        key = (0 if n == 1 and i in picked else slice(None) for i, n in enumerate(self.shape))
        return self._get((*key, ...))

    def unsqueeze(self, axis: int, name: str | None = None) -> Any:
        """`paddle.unsqueeze` of 3.3: a view."""
        at = axis if axis >= 0 else axis + self.ndim + 1
        if not 0 <= at <= self.ndim:
            raise ValueError(f"(OutOfRange) there is no place {axis} for a new dimension.")
        return self._get((*(slice(None),) * at, None, ...))

    def expand(self, shape: Any, name: str | None = None) -> Any:
        """`paddle.expand` of 3.3: a view."""
        own = (1,) * (len(shape) - self.ndim) + tuple(self.shape)
        wanted = tuple(m if n == -1 else n for n, m in zip(shape, own, strict=True))
        if _rules.broadcast("expand", tuple(self.shape), wanted) != wanted:
            raise ValueError(f"(InvalidArgument) {list(self.shape)} does not fit {list(wanted)}.")
        return self._seen(self._layout.broadcast(wanted))

    def contiguous(self) -> Any:
        """`paddle.Tensor.contiguous` of 3.3."""
        return self if self.is_contiguous() else self.clone()  # type: ignore[attr-defined]

    def is_contiguous(self) -> bool:
        """`paddle.Tensor.is_contiguous` of 3.3."""
        return self._layout.contiguous

    @property
    def strides(self) -> list[int]:
        """Elements from one to the next in each dimension."""
        return [n // self.itemsize for n in self._layout.strides]

    def element_size(self) -> int:
        """`paddle.Tensor.element_size` of 3.3: bytes of an element."""
        return self.itemsize

    def dim(self) -> int:
        """`paddle.Tensor.dim` of 3.3."""
        return self.ndim


def _fill(value: Any, *, out: Any) -> None:
    out[...] = value
