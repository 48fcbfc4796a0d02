"""ndarray: typed device memory, as much of it as programs about streams use.

Arithmetic is enqueued on the current stream and done by NumPy on every backend;
the memory of vendors' devices is copied for it, in the stream's order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from .._errors import NotSupportedError
from .._memory._array import Array
from ._arithmetic import Operator, binary, comparison, compute, enqueue, unary
from ._base_array import BaseArray
from .cuda._blocks import stream_of
from .cuda._captured import keep_captured
from .cuda._errors import attribute_error, unsupported

__all__ = ["ndarray"]


class ndarray(BaseArray):
    """cupy.ndarray (14.2.0): contiguous in C order, arithmetic without the rest of NumPy."""

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    @classmethod
    def _of(cls, data: Any, array: Array) -> ndarray:
        return cls(array.shape, array.dtype, data + (array.ptr - data.ptr))

    def fill(self, value: Any) -> None:
        """Set every element, on the current stream."""
        if isinstance(value, (ndarray, np.ndarray)) and value.ndim:
            kind = "cupy" if isinstance(value, ndarray) else "numpy"
            raise ValueError(f"non-scalar {kind}.ndarray cannot be used for fill")
        if isinstance(value, ndarray):
            self._assign(value)
            return
        element = np.asarray(value).astype(self.dtype)  # any kind becomes any other, as there
        if self.nbytes:
            where = stream_of(None)
            self._array.fill(element, where)
            keep_captured(where, self._array)

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
        return compute(ndarray, lambda a: np.asarray(a).astype(kind), self)

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
        return compute(ndarray, np.sum, self)

    def item(self) -> Any:
        """Return the only element; waits."""
        return self.get().item()

    def tolist(self) -> Any:
        """Return the elements as lists; waits."""
        return self.get().tolist()

    def __getitem__(self, index: Any) -> ndarray:
        if index is Ellipsis:
            return self
        if isinstance(index, tuple):
            return self._row(index)
        if index is None or isinstance(index, (float, str, list, np.ndarray, ndarray)):
            raise _cannot_index(index)
        return self._part(index, 0)

    def _part(self, index: Any, axis: int) -> ndarray:
        """Return the view of one index; `axis` is the one that errors name."""
        if not self.shape:
            raise IndexError("too many indices for array: array is 0-dimensional, but 1 were indexed")
        if isinstance(index, (int, np.integer)):
            length = self.shape[0]
            if not -length <= index < length:
                raise IndexError(f"Index {index} is out of bounds for axis {axis} with size {length}")
        try:
            return ndarray._of(self.data, self._array[index])
        except NotSupportedError as exc:
            raise unsupported(str(exc)) from None

    def _row(self, index: tuple[Any, ...]) -> ndarray:
        """Return the view that several integers, and last perhaps a slice, name."""
        if len(index) > self.ndim:
            raise IndexError(
                f"too many indices for array: array is {self.ndim}-dimensional, but {len(index)} were indexed"
            )
        found = self
        for number, part in enumerate(index):
            whole = isinstance(part, slice) and part == slice(None)
            last = number == len(index) - 1 or all(i == slice(None) for i in index[number + 1 :])
            if whole and last:
                break  # the rest is taken as it is
            if isinstance(part, slice) and not last:
                raise unsupported("a slice is followed by an index: such views are not built yet")
            if not isinstance(part, (int, np.integer, slice)):
                raise _cannot_index(part)
            found = found._part(part, number)
            if isinstance(part, slice):
                break
        return found

    def __setitem__(self, index: Any, value: Any) -> None:
        target = self[index]
        if isinstance(value, ndarray):
            target._assign(value)
        elif isinstance(value, np.ndarray):
            if (value.shape, value.dtype) != (target.shape, target.dtype):
                raise ValueError(
                    "copying a numpy.ndarray to a cupy.ndarray by empty slice assignment must "
                    "ensure arrays have same shape and dtype"
                )
            target.set(value)
        else:
            target.fill(value)

    def _assign(self, value: ndarray) -> None:
        """Enqueue a copy of an array's elements, converted and broadcast."""
        if (value.shape, value.dtype) == (self.shape, self.dtype):
            # x[1:] += 1 assigns the view that it changed.
            if self.nbytes and value.data.ptr != self.data.ptr:
                self.data.copy_from_device_async(value.data, value.nbytes)
            return
        try:
            fits = np.broadcast_shapes(value.shape, self.shape) == self.shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(f"operands could not be broadcast together with shapes {self.shape} {value.shape}")
        enqueue(np.positive if value.dtype != bool else np.array, self, (value,))

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __reduce__(self) -> Any:
        return _unpickled, (self.get(),)

    def __iter__(self) -> Iterator[ndarray]:
        if not self.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[number] for number in range(self.shape[0]))

    def __getattr__(self, name: str) -> Any:
        raise attribute_error("cupy.ndarray", name)

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

    # What the functions of _arithmetic make; each takes the operands and gives an array.
    __add__: Operator
    __radd__: Operator
    __iadd__: Operator
    __sub__: Operator
    __rsub__: Operator
    __isub__: Operator
    __mul__: Operator
    __rmul__: Operator
    __imul__: Operator
    __truediv__: Operator
    __rtruediv__: Operator
    __itruediv__: Operator
    __floordiv__: Operator
    __rfloordiv__: Operator
    __ifloordiv__: Operator
    __mod__: Operator
    __rmod__: Operator
    __imod__: Operator
    __pow__: Operator
    __rpow__: Operator
    __ipow__: Operator
    __and__: Operator
    __rand__: Operator
    __iand__: Operator
    __or__: Operator
    __ror__: Operator
    __ior__: Operator
    __xor__: Operator
    __rxor__: Operator
    __ixor__: Operator
    __lshift__: Operator
    __rlshift__: Operator
    __ilshift__: Operator
    __rshift__: Operator
    __rrshift__: Operator
    __irshift__: Operator
    __matmul__: Operator
    __rmatmul__: Operator
    __neg__: Callable[[Any], Any]
    __pos__: Callable[[Any], Any]
    __abs__: Callable[[Any], Any]
    __invert__: Callable[[Any], Any]
    __eq__: Operator
    __ne__: Operator
    __lt__: Operator
    __le__: Operator
    __gt__: Operator
    __ge__: Operator

    __add__, __radd__, __iadd__ = binary(np.add)
    __sub__, __rsub__, __isub__ = binary(np.subtract)
    __mul__, __rmul__, __imul__ = binary(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = binary(np.true_divide)
    __floordiv__, __rfloordiv__, __ifloordiv__ = binary(np.floor_divide)
    __mod__, __rmod__, __imod__ = binary(np.remainder)
    __pow__, __rpow__, __ipow__ = binary(np.power)
    __and__, __rand__, __iand__ = binary(np.bitwise_and)
    __or__, __ror__, __ior__ = binary(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = binary(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = binary(np.left_shift)
    __rshift__, __rrshift__, __irshift__ = binary(np.right_shift)
    __matmul__, __rmatmul__ = binary(np.matmul)[:2]  # a @= b makes a new array there, too
    __neg__ = unary(np.negative)
    __pos__ = unary(np.positive)
    __abs__ = unary(np.absolute)
    __invert__ = unary(np.invert)
    __eq__ = comparison(np.equal)
    __ne__ = comparison(np.not_equal)
    __lt__ = comparison(np.less)
    __le__ = comparison(np.less_equal)
    __gt__ = comparison(np.greater)
    __ge__ = comparison(np.greater_equal)


def _unpickled(host: Any) -> ndarray:
    """Return an array of the current device with the contents of one of the host."""
    new = ndarray(host.shape, host.dtype)
    new.set(host)
    stream_of(None).synchronize()  # the source is given up
    return new


def _cannot_index(index: Any) -> Exception:
    if index is None or isinstance(index, (list, np.ndarray, ndarray)) or index is Ellipsis:
        return unsupported("indexing by None, Ellipsis and arrays is not built yet")
    return IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
        "boolean arrays are valid indices"
    )


ndarray.__module__ = "halstream.cupy"
