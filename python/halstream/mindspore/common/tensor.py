"""`mindspore.Tensor` of 2.10, the part that stream programs use: NumPy on the current stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..._dialects._not_built import attribute_error, not_built
from ..._dialects._operate import SCALARS, copy_into, product
from ..._dialects._tensor import Contents
from ..._errors import NotSupportedError
from .._target import TARGETS, target
from ._methods import Methods
from ._text import initial, text
from .dtype import Type, of, to_numpy


class Tensor(Methods, Contents):
    """`mindspore.Tensor` of 2.10: the few operations that stream programs use.

    Every operation is enqueued on the current stream and returns at once;
    ``print``, `asnumpy` and `item` wait for the stream that made the contents.
    Differences: no bfloat16 and no initializers; `const_arg` and `device`
    choose nothing; the array of `asnumpy` is a copy; NumPy arrays and scalars
    are operands, too.
    """

    _mirrored = "Tensor"
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
        elif isinstance(input_data, (list, tuple)):
            input_data = _numbers(input_data)
        self._hold(initial(input_data, wanted))

    @classmethod
    def _initial(cls, host: Any) -> Any:
        return initial(host, None)

    @property
    def _class(self) -> Any:
        return Tensor

    def __getattr__(self, name: str) -> NoReturn:
        raise attribute_error(f"mindspore.{type(self)._mirrored}", name)

    # -- contents: these wait ---------------------------------------------

    def asnumpy(self) -> Any:
        """`mindspore.Tensor.asnumpy` of 2.10; a copy. Raises what the stream's work raised."""
        return super().asnumpy()

    numpy = asnumpy

    @property
    def dtype(self) -> Type:
        """The element type."""
        return of(self._dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

    def item(self, index: Any = None) -> Any:
        """`mindspore.Tensor.item` of 2.10: a Python scalar; an `index`, too, as before 2.10."""
        if index is None and self.size != 1:
            raise ValueError(
                f"The tensor should have only one element, but got {self.size}, more than one element is ambiguous."
            )
        value = self.asnumpy()
        return value.item() if index is None else value.item(index)

    def tolist(self) -> Any:
        """`mindspore.Tensor.tolist` of 2.10."""
        return self.asnumpy().tolist()

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

    def __complex__(self) -> complex:
        return complex(self._one())

    def __index__(self) -> int:
        if self.size != 1 or self._dtype.kind not in "biu":
            raise ValueError("Only integer tensors of a single element can be converted to an index.")
        return int(self.item())

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __round__(self, ndigits: int | None = None) -> Tensor:
        return self._class._result(_round, self.shape, self._dtype, self, ndigits or 0)  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return str(self.asnumpy())

    def __repr__(self) -> str:
        return text(self.asnumpy(), str(self.dtype))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("Not support len of a 0-D tensor")
        return int(self.shape[0])

    def __iter__(self) -> Any:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (self[i] for i in range(self.shape[0]))

    def __reduce__(self) -> Any:
        return _restored, (self.asnumpy(), str(self.dtype))

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tensor:
        return self.copy()

    # -- copies and types: these are enqueued --------------------------------

    def astype(self, dtype: Type, copy: bool = True) -> Tensor:
        """`mindspore.Tensor.astype` of 2.10."""
        wanted = to_numpy(dtype)
        if wanted == self._dtype and not copy:
            return self
        if self._dtype.kind == "c" != wanted.kind:
            raise NotSupportedError("astype: the imaginary part would be lost")
        return self._class._result(copy_into, self.shape, wanted, self)  # type: ignore[no-any-return]

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
        _check_index(index)
        try:
            return self._get(index)
        except IndexError as exc:
            raise _index_error(exc, self) from None

    def __setitem__(self, index: Any, value: Any) -> None:
        _check_index(index)
        if not isinstance(value, (Tensor, np.ndarray, list, tuple, *SCALARS)):
            raise IndexError(f"Unsupported Python object type received: {type(value)}. Received value: {value!r}")
        try:
            self._set(index, value)
        except IndexError as exc:
            raise _index_error(exc, self) from None

    def __matmul__(self, other: Any) -> Any:
        return product(self, other) if isinstance(other, Tensor) else NotImplemented


def _check_target(caller: str, name: str) -> None:
    if name not in ("CPU", target()):
        raise RuntimeError(
            f"The value of arg 'to' of method '{caller}' should be same with device target, "
            f"but got to:{name}, device target: {target()}"
        )


def _check_index(index: Any) -> None:
    for part in index if isinstance(index, tuple) else (index,):
        whole = isinstance(part, (int, slice, list, tuple, np.integer, np.ndarray, Tensor))
        if not whole and part is not None and part is not Ellipsis:
            raise IndexError(
                "Only support integers, slices(`:`), ellipsis(`...`), None, bool, tensor, int, "
                f"list and tuple as index, but got {part!r} with type {type(part)}"
            )


def _index_error(exc: IndexError, x: Tensor) -> IndexError:
    text = str(exc)
    if text.startswith("too many indices"):
        return IndexError(f"too many indices for tensor of dimension{x.ndim}")
    return IndexError(text.replace("axis 0 with size", "dimension with size"))


def _numbers(data: Any) -> Any:
    """Return nested lists with tensors in them replaced by what they hold."""
    if isinstance(data, Tensor):
        return data.asnumpy()
    return type(data)(map(_numbers, data)) if type(data) in (list, tuple) else data


def _round(value: Any, digits: int, *, out: Any) -> None:
    np.round(value, digits, out=out)


def _restored(host: Any, name: str) -> Tensor:
    return Tensor(host)


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
