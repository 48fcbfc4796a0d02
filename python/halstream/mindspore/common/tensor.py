"""`mindspore.Tensor` of 2.10, the part that stream programs use: NumPy on the current stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..._dialects import _operators
from ..._dialects._not_built import attribute_error, not_built
from ..._dialects._operators import Operation
from ..._dialects._tensor import SCALARS, BaseTensor, binary, change, copy_into, product, total, unary
from ..._errors import NotSupportedError
from .._target import TARGETS, target
from ._text import initial, text
from .dtype import Type, of, to_numpy


class Tensor(BaseTensor):
    """`mindspore.Tensor` of 2.10: the few operations that stream programs use.

    Every operation is enqueued on the current stream and returns at once;
    ``print``, `asnumpy` and `item` wait for the stream that made the contents.
    Differences: no bfloat16 and no initializers; `const_arg` and `device`
    choose nothing; the array of `asnumpy` is a copy; NumPy arrays and scalars
    are operands, too.
    """

    _tracked = True  # by the allocator itself: the memory waits for the streams that used it

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
            host = input_data._storage.host
            if host is None or not input_data._layout.contiguous:
                self._make(copy_into, input_data.shape, wanted or input_data._dtype, input_data)
                return
            input_data = input_data.asnumpy()
        elif input_data is None and shape is not None and wanted is not None:
            input_data = np.zeros(shape, wanted)
        self._hold(initial(input_data, wanted))

    @classmethod
    def _initial(cls, host: Any) -> Any:
        return initial(host, None)

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error("mindspore.Tensor", name)

    @property
    def dtype(self) -> Type:
        """The element type."""
        return of(self._dtype)

    # -- operations --------------------------------------------------------

    def _operate(self, operation: Operation, a: Any, b: Any) -> Any:
        if operation is _operators.MATMUL:
            return product(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else NotImplemented
        result = binary(operation.mindspore, operation, a, b)
        if result is NotImplemented and a is self:
            name = operation.mindspore
            raise TypeError(f'Failed calling {name} with "{name}()(input=Tensor, other={type(b).__name__})".')
        return result

    def _operate_in_place(self, operation: Operation, other: Any) -> Any:
        # As in mindspore: elsewhere than on Ascend other names of the tensor keep the old contents.
        if target() == "Ascend":
            return change(operation.mindspore, operation, self, other)
        return self._operate(operation, self, other)

    def _compare(self, operation: Operation, other: Any) -> Any:
        if operation in (_operators.EQUAL, _operators.NOT_EQUAL) and not isinstance(other, (Tensor, *SCALARS)):
            return operation is _operators.NOT_EQUAL
        return self._operate(operation, self, other)

    def _apply(self, operation: Operation) -> Any:
        return unary(operation.mindspore, operation, self)

    def matmul(self, other: Any) -> Any:
        """`mindspore.Tensor.matmul` of 2.10."""
        return self @ other

    def abs(self) -> Any:
        """`mindspore.Tensor.abs` of 2.10."""
        return self._apply(_operators.ABSOLUTE)

    def sum(self, axis: Any = None, dtype: Type | None = None, keepdims: bool = False) -> Any:
        """`mindspore.Tensor.sum` of 2.10; of bools and integers an Int64."""
        return total(self, axis, keepdims, to_numpy(dtype) if dtype else None)

    # -- contents: these wait ----------------------------------------------

    def asnumpy(self) -> Any:
        """`mindspore.Tensor.asnumpy` of 2.10; a copy. Raises what the stream's work raised."""
        return super().asnumpy()

    numpy = asnumpy

    def item(self, index: Any = None) -> Any:
        """`mindspore.Tensor.item` of 2.10: a Python scalar; an `index`, too, as before 2.10."""
        if index is None and self.size != 1:
            raise ValueError(
                f"The tensor should have only one element, but got {self.size}, more than one element is ambiguous."
            )
        return self.asnumpy().item(*(() if index is None else (index,)))

    def __bool__(self) -> bool:
        return bool(self.item())

    def _one(self) -> Any:
        if self.size != 1:
            raise ValueError("Only one element tensors can be converted to Python scalars")
        return self.item()

    def __int__(self) -> int:
        return int(self._one())

    def __float__(self) -> float:
        return float(self._one())

    def __str__(self) -> str:
        return str(self.asnumpy())

    def __repr__(self) -> str:
        return text(self.asnumpy(), str(self.dtype))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Not support len of a 0-D tensor")
        return int(self.shape[0])

    # -- copies and types: these are enqueued --------------------------------

    def astype(self, dtype: Type, copy: bool = True) -> Tensor:
        """`mindspore.Tensor.astype` of 2.10."""
        wanted = to_numpy(dtype)
        if wanted == self._dtype and not copy:
            return self
        if self._dtype.kind == "c" != wanted.kind:
            raise NotSupportedError("astype: the imaginary part would be lost")
        return Tensor._result(copy_into, self.shape, wanted, self)

    def copy(self) -> Tensor:
        """`mindspore.Tensor.copy` of 2.10."""
        return self.astype(self.dtype)

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """`mindspore.Tensor.to` of 2.10: ``to(dtype)``, ``to(device, dtype)`` or ``to(other)``.

        Difference: the contents stay on the process's device; a `device` of
        another target is refused.
        """
        dtype: Any = kwargs.get("dtype")
        for value in (*args[:2], kwargs.get("device"), kwargs.get("other")):
            if isinstance(value, Tensor):
                dtype = value.dtype
            elif isinstance(value, Type):
                dtype = value
            elif isinstance(value, str):
                if value not in TARGETS:
                    raise ValueError(f"Failed to convert the value \"{value}\" of input 'device' of 'to' to enum.")
                _check_target("to", value)
            elif value is not None and not isinstance(value, bool):
                raise TypeError(f'Failed calling to with "to({type(value).__name__})".')
        return self.astype(dtype or self.dtype)

    def move_to(self, to: str, blocking: bool = True) -> Tensor:
        """`mindspore.Tensor.move_to` of 2.10: a copy made on the current stream.

        With `blocking` the host waits for it. Difference: 'CPU' gives a tensor of
        the same device, whose memory is what `asnumpy` copies to the host.
        """
        if to not in ("Ascend", "GPU", "CPU"):
            raise ValueError(f"The value of 'to' must be one of ['Ascend', 'GPU', 'CPU'], but got {to}")
        if not isinstance(blocking, bool):
            raise ValueError(f"The type of 'blocking' must be bool, but got {type(blocking).__name__}")
        _check_target("move_to", to)
        moved = self.copy()
        if blocking and moved._storage.stream is not None:
            moved._storage.stream.synchronize()
        return moved

    # -- parts ---------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        if index is Ellipsis:
            return self
        try:
            return self._get(index)
        except IndexError as exc:
            raise _index_error(exc, self) from None

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, (Tensor, np.ndarray, list, tuple, *SCALARS)):
            raise IndexError(f"Unsupported Python object type received: {type(value)}. Received value: {value!r}")
        try:
            self._set(index, value)
        except IndexError as exc:
            raise _index_error(exc, self) from None


def _check_target(caller: str, name: str) -> None:
    if name not in ("CPU", target()):
        raise RuntimeError(
            f"The value of arg 'to' of method '{caller}' should be same with device target, "
            f"but got to:{name}, device target: {target()}"
        )


def _index_error(exc: IndexError, x: Tensor) -> IndexError:
    text = str(exc)
    if text.startswith("too many indices"):
        return IndexError(f"too many indices for tensor of dimension{x.ndim}")
    return IndexError(text.replace("axis 0 with size", "dimension with size"))


def tensor(
    input_data: Any = None,
    dtype: Type | None = None,
    shape: Any = None,
    init: Any = None,
    const_arg: bool = False,
) -> Tensor:
    """`mindspore.tensor` of 2.10."""
    return Tensor(input_data, dtype, shape, init, const_arg)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
