"""`mindspore.ops.operations` of 2.10: the same functions as objects that are called."""

from __future__ import annotations

from ..common.tensor import Tensor

__all__ = ["Abs", "Add", "MatMul", "Mul", "Sin", "Sub"]


class _Operation:
    """An operation without settings; called, it does what the function of its name does."""

    _function = ""

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Enqueue the operation."""
        from .. import ops

        return getattr(ops, self._function)(*inputs)  # type: ignore[no-any-return]


class Abs(_Operation):
    """`mindspore.ops.operations.Abs` of 2.10."""

    _function = "abs"


class Add(_Operation):
    """`mindspore.ops.operations.Add` of 2.10."""

    _function = "add"


class MatMul(_Operation):
    """`mindspore.ops.operations.MatMul` of 2.10 without its settings."""

    _function = "matmul"


class Mul(_Operation):
    """`mindspore.ops.operations.Mul` of 2.10."""

    _function = "mul"


class Sin(_Operation):
    """`mindspore.ops.operations.Sin` of 2.10."""

    _function = "sin"


class Sub(_Operation):
    """`mindspore.ops.operations.Sub` of 2.10."""

    _function = "sub"
