"""ndarray: typed device memory, as much of it as programs about streams use.

Arithmetic is enqueued on the current stream and done by NumPy on every backend;
the memory of vendors' devices is copied for it, in the stream's order.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._core import _declared
from .._core._graph import name_of
from .._dialects import _compute
from .._dialects._operators import Operation, Operators
from .._errors import NotSupportedError
from .._memory._array import Array
from .._memory._rawmem import Part
from .._memory._values import shape_of
from .cuda import memory
from .cuda._blocks import stream_of
from .cuda._captured import keep_captured, refuse_captured, refuse_library
from .cuda._errors import attribute_error, check_may_wait, unsupported
from .cuda._handles import Handle
from .cuda._pointer import copy_bytes
from .cuda.device import Device
from .cuda.stream import Stream

__all__ = ["accepts", "check_order", "compute", "ndarray"]

# What an operand may be beside an array.
_SCALARS = (int, float, complex, np.generic)


def consumer(stream: Any) -> Any:
    """Return the stream that a consumer names by its handle."""
    if stream is None:
        return None
    if not isinstance(stream, int) or stream < -1:
        raise ValueError(f"On CUDA stream must be -1 or a handle, not {stream!r}")
    if stream == 0:
        warnings.warn("Stream 0 is ambiguous in DLPack; say 1 for the default stream.", stacklevel=3)
    # A new stream without work stands for no order.
    return Stream(non_blocking=True) if stream == -1 else Handle.find(stream)


def check_order(order: Any) -> None:
    """Refuse what names no order of elements, by its first letter; None is the usual one."""
    if order is not None and not (isinstance(order, str) and order[:1] in ("", *"CFAKcfak")):
        raise TypeError("order not understood")


class ndarray(Operators):
    """cupy.ndarray (14.2.0): contiguous in C order, arithmetic without the rest of NumPy."""

    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C"
    ) -> None:
        check_order(order)
        lengths, kind = shape_of(shape), np.dtype(dtype)
        if kind.hasobject:
            raise ValueError(f"Unsupported dtype {kind}")
        if strides is not None or (order not in ("C", None) and len(lengths) > 1):
            raise unsupported("arrays that are not contiguous in C order are not built yet")
        self.data: Any = memory.alloc(math.prod(lengths) * kind.itemsize) if memptr is None else memptr
        nbytes = max(1, math.prod(lengths) * kind.itemsize)
        part = Part(self.data, self.data.ptr, nbytes, self.data.device_id)
        self._array = Array(part, self.data.ptr, lengths, kind)

    # -- description ------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy has it."""
        return self._array.shape

    @property
    def dtype(self) -> Any:
        """As NumPy has it."""
        return self._array.dtype

    @property
    def ndim(self) -> int:
        """As NumPy has it."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """As NumPy has it."""
        return self._array.size

    @property
    def nbytes(self) -> int:
        """As NumPy has it."""
        return self._array.nbytes

    @property
    def strides(self) -> tuple[int, ...]:
        """As NumPy has it."""
        return self._array.strides

    @property
    def itemsize(self) -> int:
        """As NumPy has it."""
        return int(self._array.dtype.itemsize)

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return Device(self.data.device_id)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self._array.__cuda_array_interface__

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Return a capsule of the memory; `stream` is the handle of the consumer's, -1 no order."""
        return self._array.__dlpack__(stream=consumer(stream), max_version=max_version, dl_device=dl_device, copy=copy)

    # -- contents ---------------------------------------------------------

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        """Return a copy on the host, made in stream order; waits for it if `blocking`."""
        check_may_wait()
        if order not in ("C", "F", "A"):
            raise ValueError(f"unsupported order: {order}")
        target = np.empty(self.shape, self.dtype) if out is None else out
        if not isinstance(target, np.ndarray):
            raise TypeError("Only numpy.ndarray can be obtained from cupy.ndarray")
        if target.dtype != self.dtype:
            raise TypeError(f"{target.dtype} array cannot be obtained from {self.dtype} array")
        if target.shape != self.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {target.shape}")
        if not target.flags.c_contiguous:
            raise RuntimeError("`out` cannot be specified when copying to non-contiguous ndarray")
        with self.device:
            where = stream_of(stream)
            refuse_captured("a copy to the host", where)
            if self.nbytes:
                address = target.__array_interface__["data"][0]
                copy_bytes(where, address, self.data.ptr, self.nbytes, target)
            if blocking:
                where.synchronize()
        return np.asfortranarray(target) if out is None and order == "F" else target

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy an array of the host here in stream order; a pinned one is read when the copy runs."""
        if not isinstance(arr, np.ndarray):
            raise TypeError("Only numpy.ndarray can be set to cupy.ndarray")
        if self.dtype != arr.dtype:
            raise TypeError(f"{arr.dtype} array cannot be set to {self.dtype} array")
        if self.shape != arr.shape:
            raise ValueError(f"Shape mismatch. Expected shape: {self.shape}, actual shape: {arr.shape}")
        with self.device:
            where = stream_of(stream)
            refuse_captured("a copy from the host", where)
            if self.nbytes:
                whole = np.ascontiguousarray(arr)
                address = whole.__array_interface__["data"][0]
                copy_bytes(where, self.data.ptr, address, self.nbytes, whole)

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
        _enqueue(np.positive if value.dtype != bool else np.array, self, (value,))

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

    # -- operations -------------------------------------------------------

    def _operate(self, operation: Operation, a: Any, b: Any) -> Any:
        return compute(operation.numpy, a, b) if accepts(b if a is self else a) else NotImplemented

    def _operate_in_place(self, operation: Operation, other: Any) -> Any:
        if not accepts(other):
            return NotImplemented
        _compute_in_place(operation.numpy, self, other)
        return self

    def _compare(self, operation: Operation, other: Any) -> Any:
        return compute(operation.numpy, self, other) if isinstance(other, (ndarray, *_SCALARS)) else NotImplemented

    def _apply(self, operation: Operation) -> Any:
        return compute(operation.numpy, self)


def _enqueue(function: Callable[..., Any], out: ndarray, operands: tuple[Any, ...]) -> None:
    """Enqueue ``out[...] = function(*operands)`` on the current stream."""
    given = [o._array if isinstance(o, ndarray) else o for o in operands]
    _compute.compute(stream_of(None), _run, out._array, function, *given, checked=False)


def _run(function: Any, *args: Any, out: Any) -> None:
    with np.errstate(all="ignore"):
        out[...] = function(*args)


# As the kernels of cupy are called.
setattr(_run, "_halstream_name", lambda function, *args: f"cupy_{name_of(function)}")  # noqa: B010


def _result_like(function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """Return a NumPy array with the shape and dtype of ``function(*operands)``."""
    stand_ins = [np.broadcast_to(np.ones((), o.dtype), o.shape) if isinstance(o, ndarray) else o for o in operands]
    with np.errstate(all="ignore"):
        return function(*stand_ins)


def compute(function: Callable[..., Any], *operands: Any) -> ndarray:
    """Enqueue a NumPy function of arrays and scalars; return the new array that it fills."""
    if function is np.matmul:
        refuse_library("cuBLAS")
    like = _result_like(function, operands)
    out = ndarray(np.shape(like), like.dtype)
    _enqueue(function, out, operands)
    return out


def _compute_in_place(function: Callable[..., Any], target: ndarray, other: Any) -> None:
    """Enqueue ``target[...] = function(target, other)``.

    Raises
    ------
    TypeError
        The result's dtype does not cast to the target's by the rule 'same_kind'.
    ValueError
        The result has another shape than the target.
    """
    like = _result_like(function, (target, other))
    if not np.can_cast(like.dtype, target.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast output operand from {like.dtype!r} to {target.dtype!r} according to the rule 'same_kind'"
        )
    if np.shape(like) != target.shape:
        raise ValueError("Out shape is mismatched")
    _enqueue(function, target, (target, other))


def accepts(other: Any) -> bool:
    """Return whether `other` is an operand; False leaves the operation to its class.

    Raises
    ------
    TypeError
        No operand supports it: NumPy arrays, lists, texts.
    """
    if isinstance(other, (ndarray, *_SCALARS)):
        return True
    if isinstance(other, np.ndarray) or not hasattr(other, "__array_priority__"):
        raise TypeError(f"Unsupported type {type(other)}")
    return False


_declared.add_arrays(ndarray, lambda array: _declared.pieces(array._array))


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
