"""Methods of `mindspore.Tensor` of 2.10: operators, reductions, and other shapes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dialects import _rules
from ..._dialects._operate import SCALARS, binary, change, reduce, unary
from ..._dialects._tensor import Contents
from .._target import target
from .dtype import Type, to_numpy


def _in_place(name: str, function: Any) -> Callable[[Any, Any], Any]:
    """Return an operator that changes the contents on Ascend, and makes a new tensor elsewhere.

    So does mindspore: on a CPU or a GPU other names of the tensor keep the old contents.
    """

    def operate(self: Any, other: Any) -> Any:
        if target() == "Ascend":
            return change(name, function, self, other)
        return binary(name, function, self, other)

    return operate


def _left(name: str, function: Any) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        """Enqueue the operation of this name on the tensor and `other`."""
        result = binary(name, function, self, other)
        if result is NotImplemented:
            raise TypeError(f'Failed calling {name} with "{name}()(input=Tensor, other={type(other).__name__})".')
        return result

    return operate


def _right(name: str, function: Any) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        return binary(name, function, other, self)

    return operate


def _unary(name: str, function: Any, inexact: bool = False) -> Callable[[Any], Any]:
    def operate(self: Any) -> Any:
        """Enqueue the operation of this name."""
        return unary(name, function, self, inexact=inexact)

    return operate


class Methods(Contents):
    """Operators, reductions and shapes; each operation is enqueued on the current stream."""

    __add__: Callable[[Any, Any], Any] = _left("Add", np.add)
    __radd__: Callable[[Any, Any], Any] = _right("Add", np.add)
    __iadd__: Callable[[Any, Any], Any] = _in_place("Add", np.add)
    __sub__: Callable[[Any, Any], Any] = _left("Sub", np.subtract)
    __rsub__: Callable[[Any, Any], Any] = _right("Sub", np.subtract)
    __isub__: Callable[[Any, Any], Any] = _in_place("Sub", np.subtract)
    __mul__: Callable[[Any, Any], Any] = _left("Mul", np.multiply)
    __rmul__: Callable[[Any, Any], Any] = _right("Mul", np.multiply)
    __imul__: Callable[[Any, Any], Any] = _in_place("Mul", np.multiply)
    __truediv__: Callable[[Any, Any], Any] = _left("Div", np.true_divide)
    __rtruediv__: Callable[[Any, Any], Any] = _right("Div", np.true_divide)
    __itruediv__: Callable[[Any, Any], Any] = _in_place("Div", np.true_divide)
    __floordiv__: Callable[[Any, Any], Any] = _left("FloorDiv", np.floor_divide)
    __rfloordiv__: Callable[[Any, Any], Any] = _right("FloorDiv", np.floor_divide)
    __ifloordiv__: Callable[[Any, Any], Any] = _in_place("FloorDiv", np.floor_divide)
    __mod__: Callable[[Any, Any], Any] = _left("FloorMod", np.remainder)
    __rmod__: Callable[[Any, Any], Any] = _right("FloorMod", np.remainder)
    __imod__: Callable[[Any, Any], Any] = _in_place("FloorMod", np.remainder)
    __pow__: Callable[[Any, Any], Any] = _left("Pow", np.power)
    __rpow__: Callable[[Any, Any], Any] = _right("Pow", np.power)
    __and__: Callable[[Any, Any], Any] = _left("BitwiseAnd", np.bitwise_and)
    __or__: Callable[[Any, Any], Any] = _left("BitwiseOr", np.bitwise_or)
    __xor__: Callable[[Any, Any], Any] = _left("BitwiseXor", np.bitwise_xor)
    __lt__: Callable[[Any, Any], Any] = _left("Less", np.less)
    __le__: Callable[[Any, Any], Any] = _left("LessEqual", np.less_equal)
    __gt__: Callable[[Any, Any], Any] = _left("Greater", np.greater)
    __ge__: Callable[[Any, Any], Any] = _left("GreaterEqual", np.greater_equal)
    __neg__: Callable[[Any], Any] = _unary("Neg", np.negative)
    __abs__: Callable[[Any], Any] = _unary("Abs", np.absolute)
    abs: Callable[[Any], Any] = _unary("Abs", np.absolute)
    neg: Callable[[Any], Any] = _unary("Neg", np.negative)
    exp: Callable[[Any], Any] = _unary("Exp", np.exp, inexact=True)
    sqrt: Callable[[Any], Any] = _unary("Sqrt", np.sqrt, inexact=True)
    sin: Callable[[Any], Any] = _unary("Sin", np.sin, inexact=True)
    cos: Callable[[Any], Any] = _unary("Cos", np.cos, inexact=True)
    tanh: Callable[[Any], Any] = _unary("Tanh", np.tanh, inexact=True)
    add: Callable[[Any, Any], Any] = _left("Add", np.add)
    sub: Callable[[Any, Any], Any] = _left("Sub", np.subtract)
    mul: Callable[[Any, Any], Any] = _left("Mul", np.multiply)
    div: Callable[[Any, Any], Any] = _left("Div", np.true_divide)
    pow: Callable[[Any, Any], Any] = _left("Pow", np.power)
    eq: Callable[[Any, Any], Any] = _left("Equal", np.equal)
    equal: Callable[[Any, Any], Any] = _left("Equal", np.equal)
    lt: Callable[[Any, Any], Any] = _left("Less", np.less)
    gt: Callable[[Any, Any], Any] = _left("Greater", np.greater)

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        if self._dtype.kind not in "biu":
            raise TypeError(f"For 'LogicalNot', tensors of {self._dtype} are not supported.")
        return unary("Invert", np.invert, self)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (Methods, *SCALARS)):
            return False
        return binary("Equal", np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, (Methods, *SCALARS)):
            return True
        return binary("NotEqual", np.not_equal, self, other)

    def __hash__(self) -> int:
        return object.__hash__(self)

    def matmul(self, other: Any) -> Any:
        """`mindspore.Tensor.matmul` of 2.10."""
        return self @ other

    mm = matmul

    # -- reductions ------------------------------------------------------------

    def sum(self, axis: Any = None, dtype: Type | None = None, keepdims: bool = False) -> Any:
        """`mindspore.Tensor.sum` of 2.10; of bools and integers an Int64."""
        own = self._dtype
        kind = to_numpy(dtype) if dtype else own if own.kind in "fc" else np.dtype(np.int64)
        return reduce("sum", np.sum, self, axis, keepdims, kind)

    def prod(self, axis: Any = None, keep_dims: bool = False) -> Any:
        """`mindspore.Tensor.prod` of 2.10."""
        return reduce("prod", np.prod, self, axis, keep_dims, self._dtype)

    def mean(self, axis: Any = None, keep_dims: bool = False) -> Any:
        """`mindspore.Tensor.mean` of 2.10; of integers an integer."""
        return reduce("mean", np.mean, self, axis, keep_dims, self._dtype)

    def max(self, axis: Any = None, keepdims: bool = False) -> Any:
        """`mindspore.Tensor.max` of 2.10; no index of it."""
        return reduce("max", np.max, self, axis, keepdims, self._dtype)

    def min(self, axis: Any = None, keepdims: bool = False) -> Any:
        """`mindspore.Tensor.min` of 2.10; no index of it."""
        return reduce("min", np.min, self, axis, keepdims, self._dtype)

    def all(self, axis: Any = None, keep_dims: bool = False) -> Any:
        """`mindspore.Tensor.all` of 2.10."""
        return reduce("all", np.all, self, axis, keep_dims, np.bool_)

    def any(self, axis: Any = None, keep_dims: bool = False) -> Any:
        """`mindspore.Tensor.any` of 2.10."""
        return reduce("any", np.any, self, axis, keep_dims, np.bool_)

    # -- shapes: views where the memory allows it --------------------------------

    def reshape(self, *shape: Any) -> Any:
        """`mindspore.Tensor.reshape` of 2.10: a view, or a copy of what is not contiguous."""
        lengths = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        try:
            wanted = tuple(operator.index(n) for n in lengths)
        except TypeError:
            raise TypeError(
                "reshape(): argument 'shape' (position 1) must be tuple of int but found type of "
                f"{type(lengths[0]).__name__} at pos 0."
            ) from None
        try:
            return self._reshape(wanted)
        except ValueError:
            raise ValueError(f"proposed_shape '{wanted}' is invalid for input of size {self.size}") from None

    view = reshape

    def flatten(self) -> Any:
        """`mindspore.Tensor.flatten` of 2.10."""
        return self._reshape((-1,))

    @property
    def T(self) -> Any:
        """`mindspore.Tensor.T` of 2.10: a view with the dimensions in reverse order."""
        return self._transpose()

    def transpose(self, *axes: Any) -> Any:
        """`mindspore.Tensor.transpose` of 2.10: a view."""
        order = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        if order and len(order) != self.ndim:
            raise ValueError(
                "For Tensor.transpose, the number of axes must be equal to the dimension of "
                f"Tensor, but got {len(order)} in the number of axes."
            )
        return self._transpose(tuple(order) or None)

    permute = transpose

    def swapaxes(self, axis0: int, axis1: int) -> Any:
        """`mindspore.Tensor.swapaxes` of 2.10: a view."""
        order = list(range(self.ndim))
        order[axis0], order[axis1] = order[axis1], order[axis0]
        return self._transpose(tuple(order))

    def squeeze(self, axis: Any = None) -> Any:
        """`mindspore.Tensor.squeeze` of 2.10: a view without dimensions of length 1."""
        asked = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        picked = {n % self.ndim for n in asked}
        key = tuple(0 if n == 1 and i in picked else slice(None) for i, n in enumerate(self.shape))
        return self._get((*key, ...))

    def expand_dims(self, axis: int) -> Any:
        """`mindspore.Tensor.expand_dims` of 2.10: a view."""
        at = axis if axis >= 0 else axis + self.ndim + 1
        if not 0 <= at <= self.ndim:
            raise ValueError(f"For 'ExpandDims', the axis must be in [{-self.ndim - 1},{self.ndim}], but got {axis}.")
        return self._get((*(slice(None),) * at, None, ...))

    unsqueeze = expand_dims

    def broadcast_to(self, shape: Any) -> Any:
        """`mindspore.Tensor.broadcast_to` of 2.10: a view."""
        wanted = tuple(shape)
        if _rules.broadcast("BroadcastTo", tuple(self.shape), wanted) != wanted:
            raise ValueError(f"For 'BroadcastTo', {self.shape} does not fit {wanted}.")
        return self._seen(self._layout.broadcast(wanted))

    def contiguous(self) -> Any:
        """`mindspore.Tensor.contiguous` of 2.10."""
        return self if self.is_contiguous() else self.copy()  # type: ignore[attr-defined]

    def is_contiguous(self) -> bool:
        """`mindspore.Tensor.is_contiguous` of 2.10."""
        return self._layout.contiguous

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next in each dimension."""
        return self._layout.strides

    def dim(self) -> int:
        """`mindspore.Tensor.dim` of 2.10."""
        return self.ndim

    def numel(self) -> int:
        """`mindspore.Tensor.numel` of 2.10."""
        return self.size

    @property
    def device(self) -> str:
        """Name of the target, with the device's number but on a CPU."""
        name = target()
        return name if name == "CPU" else f"{name}:{self._block()._memory.device}"

    def value(self) -> Any:
        """`mindspore.Tensor.value` of 2.10: the same contents."""
        return self._seen(self._layout)

    @property
    def data(self) -> Any:
        """The same contents, without a parameter's name."""
        return self.value()
