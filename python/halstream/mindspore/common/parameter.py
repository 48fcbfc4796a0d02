"""`mindspore.Parameter` of 2.10: a tensor with a name that a cell finds."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._dialects._not_built import not_built
from .tensor import Tensor

__all__ = ["Parameter"]

_numbers = itertools.count(1)


class Parameter(Tensor):
    """`mindspore.Parameter` of 2.10; nothing trains it here.

    Results of operations on it are tensors. Differences: `layerwise_parallel`,
    `parallel_optimizer`, `storage_format` and `device` are kept and choose nothing.
    """

    _mirrored = "Parameter"

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
        storage_format: str = "",
        device: str | None = None,
    ) -> None:
        if isinstance(default_input, int) and not isinstance(default_input, bool):
            default_input = np.int32(default_input)
        super().__init__(default_input)
        self._name = f"Parameter#{next(_numbers)}"
        if name is not None:
            self.name = name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer

    @property
    def name(self) -> str:
        """The parameter's name in cells and files."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        if not isinstance(value, str):
            raise ValueError(f"The type of the Parameter's name should be 'string' or 'None', but got {type(value)}.")
        self._name = value

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """`mindspore.Parameter.set_data` of 2.10: take over the data's contents and shape."""
        if not isinstance(data, (Tensor, int, float)):
            raise TypeError(
                "Parameter data must be [`Tensor`, `int`, `float`] or a kind of `Tensor` "
                f"(like `Tensor`). But with type {type(data)}."
            )
        copied = data if isinstance(data, Tensor) else Tensor(data)
        if copied._dtype != self._dtype:
            if not np.can_cast(copied._dtype, self._dtype, "same_kind"):
                raise TypeError(f"Parameter data of {copied.dtype} does not become {self.dtype} by itself.")
            copied = copied._class._result(_copy, copied.shape, self._dtype, copied)
        else:
            copied = copied.copy()
        self._own(copied._storage, copied._layout, copied._dtype)
        return self

    def clone(self, init: Any = "same") -> Parameter:
        """`mindspore.Parameter.clone` of 2.10; only ``init='same'``."""
        new = Parameter(self.value(), self._name, self.requires_grad)
        new.layerwise_parallel = self.layerwise_parallel
        new.parallel_optimizer = self.parallel_optimizer
        return new

    def copy(self) -> Parameter:
        """`mindspore.Parameter.copy` of 2.10: `clone`."""
        return self.clone()

    def __repr__(self) -> str:
        return (
            f"Parameter (name={self._name}, shape={self.shape}, dtype={self.dtype}, requires_grad={self.requires_grad})"
        )

    __str__ = __repr__

    def __reduce__(self) -> Any:
        return Parameter, (self.value(), self._name, self.requires_grad)


def _copy(source: Any, *, out: Any) -> None:
    np.copyto(out, source, casting="unsafe")


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
