"""The table of NumPy's functions behind the operators of tensors and arrays, with their names in each dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Operation", "Operators"]

Method = Callable[[Any, Any], Any]


class Operation(NamedTuple):
    """A function of NumPy, and what it is called; a name that nothing needs is empty. cupy's names are NumPy's.

    Attributes
    ----------
    numpy : callable
        The function that is enqueued.
    symbol : str
        Python's special method, without underscores.
    paddle : str
        The method of `paddle.Tensor`, or the name in paddle's errors.
    mindspore : str
        The name in mindspore's errors.
    """

    numpy: Any
    symbol: str
    paddle: str
    mindspore: str


ADD = Operation(np.add, "add", "add", "Add")
SUBTRACT = Operation(np.subtract, "sub", "subtract", "Sub")
MULTIPLY = Operation(np.multiply, "mul", "multiply", "Mul")
DIVIDE = Operation(np.true_divide, "truediv", "divide", "Div")
FLOOR_DIVIDE = Operation(np.floor_divide, "floordiv", "", "FloorDiv")
REMAINDER = Operation(np.remainder, "mod", "", "FloorMod")
POWER = Operation(np.power, "pow", "", "Pow")
MATMUL = Operation(np.matmul, "matmul", "matmul", "MatMul")
AND = Operation(np.bitwise_and, "and", "", "BitwiseAnd")
OR = Operation(np.bitwise_or, "or", "", "BitwiseOr")
XOR = Operation(np.bitwise_xor, "xor", "", "BitwiseXor")
LEFT_SHIFT = Operation(np.left_shift, "lshift", "", "BitwiseLeftShift")
RIGHT_SHIFT = Operation(np.right_shift, "rshift", "", "BitwiseRightShift")
LESS = Operation(np.less, "lt", "", "Less")
LESS_EQUAL = Operation(np.less_equal, "le", "", "LessEqual")
GREATER = Operation(np.greater, "gt", "", "Greater")
GREATER_EQUAL = Operation(np.greater_equal, "ge", "", "GreaterEqual")
EQUAL = Operation(np.equal, "eq", "", "Equal")
NOT_EQUAL = Operation(np.not_equal, "ne", "", "NotEqual")
NEGATIVE = Operation(np.negative, "neg", "scale", "Neg")
POSITIVE = Operation(np.positive, "pos", "", "Pos")
ABSOLUTE = Operation(np.absolute, "abs", "abs", "Abs")
INVERT = Operation(np.invert, "invert", "bitwise_not", "Invert")
SIN = Operation(np.sin, "", "", "Sin")

#: What compares; results are bools.
COMPARISONS = frozenset((LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL))


def _forward(operation: Operation) -> Method:
    """Return the method of ``a + b``."""
    return lambda self, other: self._operate(operation, self, other)


def _backward(operation: Operation) -> Method:
    """Return the method of ``a + b`` that is asked of `b`."""
    return lambda self, other: self._operate(operation, other, self)


def _in_place(operation: Operation) -> Method:
    """Return the method of ``a += b``."""
    return lambda self, other: self._operate_in_place(operation, other)


def _comparison(operation: Operation) -> Method:
    """Return the method of ``a < b``."""
    return lambda self, other: self._compare(operation, other)


def _unary(operation: Operation) -> Callable[[Any], Any]:
    """Return the method of ``-a``."""
    return lambda self: self._apply(operation)


class Operators:
    """Python's operators; the class of a dialect says what each operation does and what it refuses."""

    def _operate(self, operation: Operation, a: Any, b: Any) -> Any:
        """Enqueue an operation on two operands, one of which is this object; NotImplemented for no operands."""
        raise NotImplementedError

    def _operate_in_place(self, operation: Operation, other: Any) -> Any:
        """Return what ``a += b`` makes of `a`: a new object, if the dialect does not say otherwise."""
        return self._operate(operation, self, other)

    def _compare(self, operation: Operation, other: Any) -> Any:
        """Enqueue a comparison with another operand."""
        raise NotImplementedError

    def _apply(self, operation: Operation) -> Any:
        """Enqueue an operation on this object alone."""
        raise NotImplementedError

    __add__: Method = _forward(ADD)
    __radd__: Method = _backward(ADD)
    __iadd__: Method = _in_place(ADD)
    __sub__: Method = _forward(SUBTRACT)
    __rsub__: Method = _backward(SUBTRACT)
    __isub__: Method = _in_place(SUBTRACT)
    __mul__: Method = _forward(MULTIPLY)
    __rmul__: Method = _backward(MULTIPLY)
    __imul__: Method = _in_place(MULTIPLY)
    __truediv__: Method = _forward(DIVIDE)
    __rtruediv__: Method = _backward(DIVIDE)
    __itruediv__: Method = _in_place(DIVIDE)
    __floordiv__: Method = _forward(FLOOR_DIVIDE)
    __rfloordiv__: Method = _backward(FLOOR_DIVIDE)
    __ifloordiv__: Method = _in_place(FLOOR_DIVIDE)
    __mod__: Method = _forward(REMAINDER)
    __rmod__: Method = _backward(REMAINDER)
    __imod__: Method = _in_place(REMAINDER)
    __pow__: Method = _forward(POWER)
    __rpow__: Method = _backward(POWER)
    __ipow__: Method = _in_place(POWER)
    __and__: Method = _forward(AND)
    __rand__: Method = _backward(AND)
    __iand__: Method = _in_place(AND)
    __or__: Method = _forward(OR)
    __ror__: Method = _backward(OR)
    __ior__: Method = _in_place(OR)
    __xor__: Method = _forward(XOR)
    __rxor__: Method = _backward(XOR)
    __ixor__: Method = _in_place(XOR)
    __lshift__: Method = _forward(LEFT_SHIFT)
    __rlshift__: Method = _backward(LEFT_SHIFT)
    __ilshift__: Method = _in_place(LEFT_SHIFT)
    __rshift__: Method = _forward(RIGHT_SHIFT)
    __rrshift__: Method = _backward(RIGHT_SHIFT)
    __irshift__: Method = _in_place(RIGHT_SHIFT)
    __matmul__: Method = _forward(MATMUL)
    __rmatmul__: Method = _backward(MATMUL)  # a @= b makes a new object in each dialect
    __lt__: Method = _comparison(LESS)
    __le__: Method = _comparison(LESS_EQUAL)
    __gt__: Method = _comparison(GREATER)
    __ge__: Method = _comparison(GREATER_EQUAL)
    __eq__: Method = _comparison(EQUAL)
    __ne__: Method = _comparison(NOT_EQUAL)
    __neg__: Callable[[Any], Any] = _unary(NEGATIVE)
    __pos__: Callable[[Any], Any] = _unary(POSITIVE)
    __abs__: Callable[[Any], Any] = _unary(ABSOLUTE)
    __invert__: Callable[[Any], Any] = _unary(INVERT)

    def __hash__(self) -> int:
        return object.__hash__(self)
