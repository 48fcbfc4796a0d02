"""ndarray: typed device memory, as much of it as programs about streams use.

Arithmetic is enqueued on the current stream and done by NumPy on every backend;
the memory of vendors' devices is copied for it, in the stream's order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._dialects import _compute
from .._errors import NotSupportedError
from .._memory._array import Array
from ._base_array import BaseArray
from .cuda._blocks import stream_of
from .cuda._errors import unsupported

__all__ = ["compute", "ndarray"]


def _run(function: Any, *args: Any, out: Any) -> None:
    with np.errstate(all="ignore"):
        out[...] = function(*args)


def compute(function: Any, *operands: Any) -> ndarray:
    """Enqueue a NumPy function of arrays and scalars; return the array it fills."""
    empties = [
        np.broadcast_to(np.ones((), o.dtype), o.shape) if isinstance(o, ndarray) else o
        for o in operands
    ]
    with np.errstate(all="ignore"):
        like = function(*empties)
    out = ndarray(np.shape(like), like.dtype)
    given = [o._array if isinstance(o, ndarray) else o for o in operands]
    _compute.compute(stream_of(None), _run, out._array, function, *given, checked=False)
    return out


def _operator(function: Any) -> Any:
    def forward(self: ndarray, other: Any) -> Any:
        known = isinstance(other, (ndarray, int, float, complex, np.generic))
        return compute(function, self, other) if known else NotImplemented

    def backward(self: ndarray, other: Any) -> Any:
        known = isinstance(other, (int, float, complex, np.generic))
        return compute(function, other, self) if known else NotImplemented

    return forward, backward


class ndarray(BaseArray):
    """cupy.ndarray (14.2.0): contiguous in C order, arithmetic without the rest of NumPy."""

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def _of(cls, data: Any, array: Array) -> ndarray:
        return cls(array.shape, array.dtype, data + (array.ptr - data.ptr))

    def fill(self, value: Any) -> None:
        """Set every element, on the current stream."""
        if isinstance(value, ndarray):
            raise unsupported("filling with an array is not built yet")
        element = np.asarray(value).astype(self.dtype)  # any kind becomes any other, as there
        if self.nbytes:
            self._array.fill(element, stream_of(None))

    def copy(self, order: str = "C") -> ndarray:
        """Return a copy, made on the current stream."""
        new = ndarray(self.shape, self.dtype)
        if self.nbytes:
            new.data.copy_from_device_async(self.data, self.nbytes)
        return new

    def astype(self, dtype: Any, copy: bool = True) -> ndarray:
        """Return the elements as another dtype, converted on the current stream."""
        kind = np.dtype(dtype)
        if kind == self.dtype:
            return self.copy() if copy else self
        return compute(lambda a: np.asarray(a).astype(kind), self)

    def reshape(self, *shape: Any) -> ndarray:
        """Return a view of another shape; a length may be -1."""
        wanted = list(shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)
        if -1 in wanted:
            rest = math.prod(n for n in wanted if n != -1)
            wanted[wanted.index(-1)] = self.size // rest if rest else 0
        return ndarray._of(self.data, self._array.reshape(tuple(wanted)))

    def ravel(self) -> ndarray:
        """Return a view with one dimension."""
        return self.reshape(-1)

    def sum(self) -> ndarray:
        """Return the sum of all elements, computed on the current stream."""
        return compute(np.sum, self)

    def item(self) -> Any:
        """Return the only element; waits."""
        return self.get().item()

    def tolist(self) -> Any:
        """Return the elements as lists; waits."""
        return self.get().tolist()

    def __getitem__(self, index: Any) -> ndarray:
        if index is Ellipsis:
            return self
        try:
            return ndarray._of(self.data, self._array[index])
        except NotSupportedError as exc:
            raise unsupported(str(exc)) from None

    def __setitem__(self, index: Any, value: Any) -> None:
        target = self[index]
        if isinstance(value, ndarray):
            if (value.shape, value.dtype) != (target.shape, target.dtype):
                raise unsupported("assignment converts nothing yet; make shape and dtype the same")
            target.data.copy_from_device_async(value.data, value.nbytes)
        elif isinstance(value, np.ndarray):
            target.set(value)
        else:
            target.fill(value)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. "
            "Please use `.get()` to construct a NumPy array explicitly."
        )

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __bool__(self) -> bool:
        return bool(self.get())

    def __repr__(self) -> str:
        return repr(self.get())

    def __str__(self) -> str:
        return str(self.get())

    __add__, __radd__ = _operator(np.add)
    __sub__, __rsub__ = _operator(np.subtract)
    __mul__, __rmul__ = _operator(np.multiply)
    __truediv__, __rtruediv__ = _operator(np.true_divide)
    __pow__, __rpow__ = _operator(np.power)
    __matmul__, __rmatmul__ = _operator(np.matmul)
    __eq__, _ = _operator(np.equal)
    __ne__, _ = _operator(np.not_equal)
    __lt__, _ = _operator(np.less)
    __gt__, _ = _operator(np.greater)


ndarray.__module__ = "halstream.cupy"
