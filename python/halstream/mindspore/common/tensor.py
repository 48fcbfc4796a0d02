"""`mindspore.Tensor` of 2.10, as far as stream programs go: NumPy on the current stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._errors import NotSupportedError
from ._contents import Contents
from ._operate import SCALARS, binary, change, copy_into, product, unary
from ._text import initial, text
from .dtype import Type, to_numpy


class Tensor(Contents):
    """`mindspore.Tensor` of 2.10: the few operations that stream programs use.

    Every operation is enqueued on the current stream and returns at once;
    ``print``, `asnumpy` and `item` wait for the stream that made the contents.
    Differences: no bfloat16 and no initializers; `const_arg` and `device`
    choose nothing; the array of `asnumpy` is a copy.
    """

    __array_priority__ = 100.0
    __hash__ = object.__hash__

    def __init__(
        self,
        input_data: Any = None,
        dtype: Type | None = None,
        shape: Any = None,
        init: Any = None,
        const_arg: bool = False,
        device: str | None = None,
    ) -> None:
        if init is not None:
            raise NotSupportedError("Tensor: there are no initializers here; give the data itself")
        wanted = None if dtype is None else to_numpy(dtype)
        if isinstance(input_data, Tensor):
            if input_data._host is None:
                self._make(copy_into, input_data.shape, wanted or input_data._dtype, input_data)
                return
            input_data = input_data._host
        self._hold(initial(input_data, wanted))

    # -- contents: these wait ---------------------------------------------

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

    def item(self, index: Any = None) -> Any:
        """`mindspore.Tensor.item` of 2.10: a Python scalar."""
        value = self.asnumpy()
        if index is None and value.size != 1:
            raise ValueError("For 'Tensor.item', the tensor must have one element.")
        return value.item() if index is None else value.item(index)

    def tolist(self) -> Any:
        """`mindspore.Tensor.tolist` of 2.10."""
        return self.asnumpy().tolist()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("The truth value of a tensor with several elements is ambiguous.")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __str__(self) -> str:
        return str(self.asnumpy())

    def __repr__(self) -> str:
        return text(self.asnumpy(), str(self.dtype))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Not support len of a 0-D tensor")
        return self.shape[0]

    # -- operations: these are enqueued -----------------------------------

    def astype(self, dtype: Type, copy: bool = True) -> Tensor:
        """`mindspore.Tensor.astype` of 2.10."""
        wanted = to_numpy(dtype)
        if wanted == self._dtype and not copy:
            return self
        if self._dtype.kind == "c" != wanted.kind:
            raise NotSupportedError("astype: the imaginary part would be lost")
        return self._result(copy_into, self.shape, wanted, self)

    def __neg__(self) -> Tensor:
        return unary("Neg", np.negative, self)

    def __abs__(self) -> Tensor:
        return unary("Abs", np.absolute, self)

    def __add__(self, other: Any) -> Any:
        return binary("Add", np.add, self, other)

    def __radd__(self, other: Any) -> Any:
        return binary("Add", np.add, other, self)

    def __iadd__(self, other: Any) -> Any:
        return change("Add", np.add, self, other)

    def __sub__(self, other: Any) -> Any:
        return binary("Sub", np.subtract, self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary("Sub", np.subtract, other, self)

    def __isub__(self, other: Any) -> Any:
        return change("Sub", np.subtract, self, other)

    def __mul__(self, other: Any) -> Any:
        return binary("Mul", np.multiply, self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary("Mul", np.multiply, other, self)

    def __imul__(self, other: Any) -> Any:
        return change("Mul", np.multiply, self, other)

    def __truediv__(self, other: Any) -> Any:
        return binary("Div", np.true_divide, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return binary("Div", np.true_divide, other, self)

    def __itruediv__(self, other: Any) -> Any:
        return change("Div", np.true_divide, self, other)

    def __matmul__(self, other: Any) -> Any:
        return product(self, other) if isinstance(other, Tensor) else NotImplemented

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, (Tensor, *SCALARS)):
            return False
        return binary("Equal", np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        if not isinstance(other, (Tensor, *SCALARS)):
            return True
        return binary("NotEqual", np.not_equal, self, other)


def tensor(
    input_data: Any = None,
    dtype: Type | None = None,
    shape: Any = None,
    init: Any = None,
    const_arg: bool = False,
) -> Tensor:
    """`mindspore.tensor` of 2.10."""
    return Tensor(input_data, dtype, shape, init, const_arg)
