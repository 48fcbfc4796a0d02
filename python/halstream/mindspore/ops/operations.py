"""`mindspore.ops.operations` of 2.10: the same functions as objects that are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from ..common.tensor import Tensor
from . import _functions

__all__ = ["Abs", "Add", "MatMul", "Mul", "Sin", "Sub"]


class _Operation:
    """An operation without settings; called, it does what the function of its name does."""

    _function: Callable[..., Tensor]

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Enqueue the operation."""
        return type(self)._function(*inputs)


class Abs(_Operation):
    """`mindspore.ops.operations.Abs` of 2.10."""

    _function = staticmethod(_functions.abs)


class Add(_Operation):
    """`mindspore.ops.operations.Add` of 2.10."""

    _function = staticmethod(_functions.add)


class MatMul(_Operation):
    """`mindspore.ops.operations.MatMul` of 2.10 without its settings."""

    _function = staticmethod(_functions.matmul)


class Mul(_Operation):
    """`mindspore.ops.operations.Mul` of 2.10."""

    _function = staticmethod(_functions.mul)


class Sin(_Operation):
    """`mindspore.ops.operations.Sin` of 2.10."""

    _function = staticmethod(_functions.sin)


class Sub(_Operation):
    """`mindspore.ops.operations.Sub` of 2.10."""

    _function = staticmethod(_functions.sub)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
