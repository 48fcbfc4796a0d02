"""Arrays: typed memory of a device, and NumPy arrays in pinned memory."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .. import _native
from .._core import _hostfunc, _lookup
from .._core._base import repr_after_fork
from .._core._declared import account, pieces_of_array
from .._core._device import Device, ordinal
from .._core._lookup import PINNED
from .._core._stream import Stream
from .._errors import InvalidValueError, NotSupportedError
from . import _copies
from ._blocks import DeviceMemory, Memory, PooledMemory
from ._exchange import Exchange
from ._pinned import pinned_empty
from ._values import element_bytes, shape_of, view

__all__ = ["Array", "asarray", "empty", "pinned_empty", "zeros"]


class Array(Exchange):
    """A block of device memory with a shape and a dtype, contiguous in C order.

    Made by `empty`, `zeros` and `asarray`. It is no tensor: it can be filled,
    copied, sliced, and handed to functions and kernels on streams.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    ptr : int
        Address on the device.
    """

    __slots__ = ("__weakref__", "_host", "_memory", "_seen", "dtype", "ptr", "shape")

    def __init__(self, memory: Memory, ptr: int, shape: tuple[int, ...], dtype: Any) -> None:
        if not isinstance(memory, Memory) or not isinstance(shape, tuple):
            raise TypeError("an Array is made by halstream.empty, zeros or asarray")
        self._memory: Memory = memory
        self.ptr: int = ptr
        self.shape: tuple[int, ...] = shape
        self.dtype: Any = dtype
        self._host: Any = None
        self._seen: Any = None

    # -- description ------------------------------------------------------

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return Device(self._memory.device)

    @property
    def readonly(self) -> bool:
        """True for memory of another library that may not be written."""
        return self._memory.readonly

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * int(self.dtype.itemsize)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next in each dimension, in C order."""
        out, step = [], int(self.dtype.itemsize)
        for length in reversed(self.shape):
            out.append(step)
            step *= length
        return tuple(reversed(out))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without dimensions")
        return self.shape[0]

    @repr_after_fork
    def __repr__(self) -> str:
        return f"<halstream.Array {self.shape} {self.dtype} on {_native.backend()}:{self.device.ordinal}>"

    def __getitem__(self, index: Any) -> Array:
        """Return a view of rows: an int, or a slice with step 1, of the first dimension."""
        if not self.shape:
            raise IndexError("an array without dimensions has no rows")
        row = self.nbytes // self.shape[0] if self.shape[0] else 0
        if isinstance(index, slice):
            start, stop, step = index.indices(self.shape[0])
            if step != 1:
                raise NotSupportedError(
                    "a view has its rows in one piece: slice with step 1, or copy to NumPy first",
                    operation="slice",
                )
            rows = max(0, stop - start)
            return Array(self._memory, self.ptr + start * row, (rows, *self.shape[1:]), self.dtype)
        number = operator.index(index)
        if not -self.shape[0] <= number < self.shape[0]:
            raise IndexError(f"there is no row {number}: the array has {self.shape[0]}")
        number %= self.shape[0]
        return Array(self._memory, self.ptr + number * row, self.shape[1:], self.dtype)

    def reshape(self, *shape: Any) -> Array:
        """Return a view of another shape with as many elements.

        Raises
        ------
        InvalidValueError
            If the new shape has another number of elements.
        """
        wanted = shape_of(shape[0] if len(shape) == 1 else shape)
        if math.prod(wanted) != self.size:
            raise InvalidValueError(f"{self.size} elements do not make an array of shape {wanted}")
        return Array(self._memory, self.ptr, wanted, self.dtype)

    # -- contents ---------------------------------------------------------

    def copy_from(self, source: Any, stream: Stream | None = None) -> None:
        """Enqueue a copy of as many bytes from an Array, a NumPy array or a buffer.

        Parameters
        ----------
        source : buffer
            Contiguous. A pinned one must stay unchanged until the copy has run.
        stream : Stream or None
            None is the current stream of the array's device.

        Raises
        ------
        InvalidValueError
            If the sizes or the dtypes differ, or the array is read-only.
        """
        self._check_writable()
        self._check(source, "source")
        address, _ = _lookup.address_of(source)
        where = self._used(self._stream(stream), source)
        _copies.copy(where, self.ptr, address, self.nbytes, source)

    def copy_to(self, target: Any, stream: Stream | None = None) -> None:
        """Enqueue a copy of all bytes to an Array, a NumPy array or a writable buffer.

        Into pageable memory it returns when the copy is done.
        """
        self._check(target, "target")
        address, _ = _lookup.address_of(target, writable=True)
        where = self._used(self._stream(stream), target)
        _copies.copy(where, address, self.ptr, self.nbytes, target)

    def fill(self, value: Any, stream: Stream | None = None) -> None:
        """Enqueue a fill of every element with a value of the array's dtype."""
        self._check_writable()
        element = element_bytes(value, self.dtype)
        stream = self._used(self._stream(stream))
        if len(set(element)) == 1:
            _copies.fill(stream, self.ptr, element[0], 1, self.nbytes)
        elif (size := len(element)) in (2, 4):
            _copies.fill(stream, self.ptr, int.from_bytes(element, "little"), size, self.size)
        else:
            with _copies.relaxed():  # the memory is for this operation only
                host = pinned_empty(self.shape, self.dtype)
            host[...] = value
            # Not a copy of the program's: between pinned blocks that would wait (M5).
            _copies.copy_as(_copies.FILLING, stream, self.ptr, host.ctypes.data, self.nbytes)

    def free(self, stream: Stream | None = None) -> None:
        """Free the memory of the array, and of all arrays that are parts of it, instead of with the last of them.

        Memory in the order of a stream is freed on `stream`; None is its own.

        Raises
        ------
        InvalidValueError
            If `stream` is on another device, or given for other memory.
        """
        if isinstance(self._memory, PooledMemory):
            self._memory.free(stream)
        elif stream is not None:
            raise InvalidValueError("only memory that was allocated in the order of a stream is freed on one")
        else:
            self._memory.free()

    def __copy__(self) -> Array:
        """Return a copy in memory of its own, made on the device's current stream."""
        new = empty(self.shape, self.dtype, self._memory.device)
        new.copy_from(self, self._after_pending())
        return new

    def __deepcopy__(self, memo: Any) -> Array:
        return self.__copy__()

    def __reduce__(self) -> Any:
        """Pickle the contents; unpickling makes an array of the current device."""
        return asarray, (self.numpy(self._after_pending()),)

    def _after_pending(self) -> Stream:
        """Return the current stream, which now waits for the work pending on the memory."""
        stream = Stream._current(self._memory.device)
        _native.stream_wait_mem(stream._id, self.ptr)
        return stream

    def numpy(self, stream: Stream | None = None) -> Any:
        """Return the contents as a new NumPy array; waits for the stream's work so far."""
        out = np.empty(self.shape, self.dtype)
        if self.nbytes:
            self.copy_to(out, stream)
        return out

    def _stream(self, stream: Stream | None) -> Stream:
        if stream is None:
            return Stream._current(self._memory.device)
        return _copies.current(stream)

    def _used(self, stream: Stream, other: Any = None) -> Stream:
        """Note for another library's memory, here or in `other`, that work of a stream is on it."""
        for array in (self, other):
            if isinstance(array, Array) and array._memory.foreign:
                if not array._memory.ptr:
                    raise InvalidValueError("the array's memory was given back to its owner")
                array._memory.record_stream(stream)
        return stream

    def record_stream(self, stream: Stream) -> None:
        """Declare that a stream uses the memory; see `Memory.record_stream`. Views share it."""
        self._memory.record_stream(stream)

    def _exposed(self) -> tuple[Memory, int, tuple[int, ...], Any]:
        return self._memory, self.ptr, self.shape, self.dtype

    def _check_writable(self) -> None:
        if self._memory.readonly:
            raise InvalidValueError("the array is read-only: its memory belongs to another library")

    def _check(self, other: Any, role: str) -> None:
        dtype = getattr(other, "dtype", None)
        if dtype is not None and np.dtype(dtype) != self.dtype:
            raise InvalidValueError(f"the {role} has dtype {dtype}, the array {self.dtype}")
        nbytes = getattr(other, "nbytes", None)
        if nbytes is None:
            nbytes = memoryview(other).nbytes
        if nbytes != self.nbytes:
            raise InvalidValueError(f"the {role} has {nbytes} bytes, the array {self.nbytes}")

    def _as_host(self) -> Any:
        """Return the memory as NumPy sees it; on a vendor device the host cannot see it."""
        if self._host is None:
            if self.nbytes and _native.backend() != "host":
                raise NotSupportedError(
                    "a Python function cannot see a device's memory: launch a kernel, or copy to pinned memory first",
                    operation="call",
                )
            self._host = view(self._memory._for_functions(), self.ptr, self.shape, self.dtype)
            if self._memory.readonly:
                self._host.flags.writeable = False
        return self._host

    def _borrowed(self, stream: Stream) -> Any:
        """Return the memory as NumPy sees it, for a function on a stream that keeps nothing of it.

        The view does not keep the memory where that waits for the function by itself.
        """
        if not self.nbytes or not self._memory._waits_for(stream):
            return self._as_host()
        if self._seen is None:
            self._seen = view(None, self.ptr, self.shape, self.dtype)
        return self._seen


def empty(shape: Any, dtype: Any = float, device: Any = None, stream: Stream | None = None) -> Array:
    """Return an array of a device with any contents.

    Parameters
    ----------
    shape : int or tuple of int
    dtype : dtype-like
    device : Device, int, str or None
        None is the stream's device, or the current one.
    stream : Stream or None
        If given, the memory is allocated and freed in its order (contract M7).

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    wanted, kind = shape_of(shape), np.dtype(dtype)
    if kind.hasobject:
        raise InvalidValueError("device memory cannot hold Python objects; choose another dtype")
    nbytes = max(1, math.prod(wanted) * kind.itemsize)
    if stream is None:
        memory: Memory = DeviceMemory(nbytes, device)
    else:
        stream = _copies.current(stream)
        if device is not None and ordinal(device) != stream._ordinal:
            raise InvalidValueError("the stream belongs to another device than the one asked for")
        memory = PooledMemory(nbytes, stream)
    return Array(memory, memory.ptr, wanted, kind)


def zeros(shape: Any, dtype: Any = float, device: Any = None, stream: Stream | None = None) -> Array:
    """Return an array of zeros; the fill is enqueued on the stream (None: the current one)."""
    array = empty(shape, dtype, device, stream)
    if array.nbytes:
        stream = array._stream(stream)
        _copies.fill(stream, array.ptr, 0, 1, array.nbytes)
    return array


def asarray(source: Any, dtype: Any = None, device: Any = None, stream: Stream | None = None) -> Array:
    """Return `source` as an array of a device: itself if it is one there, else a copy of it.

    The copy is enqueued on the stream (None: the device's current one), and
    the source may be changed when the call returns.
    """
    if isinstance(source, Array):
        here = source.device.ordinal
        wanted = here if device is None and stream is None else _place(device, stream)
        if wanted == here and (dtype is None or np.dtype(dtype) == source.dtype):
            return source
        # Through the stream on which its contents are made.
        source = source.numpy(stream if stream is not None and stream._ordinal == here else None)
    host = np.asarray(source, dtype, order="C")
    array = empty(host.shape, host.dtype, device, stream)
    if array.nbytes:
        if stream is None:
            stream = Stream._current(array._memory.device)
        if _lookup.kind_of(host.__array_interface__["data"][0]) == PINNED:
            host = host.copy()  # pinned memory would be read when the copy runs, not now
        array.copy_from(host, stream)
    return array


def _place(device: Any, stream: Stream | None) -> int:
    return stream._ordinal if device is None and stream is not None else ordinal(device)


def _arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """Return the arguments as a function receives them, and the memory that it reads through them."""
    ranges: list[str] = []
    given = tuple(_argument(value, ranges) for value in args)
    if kwargs:
        kwargs = {name: _argument(value, ranges) for name, value in kwargs.items()}
    return given, kwargs, " ".join(ranges)


def _argument(value: Any, ranges: list[str]) -> Any:
    if isinstance(value, Array):
        ranges.append(f"r:{value.ptr}:{value.nbytes}")
        return value._as_host()
    if isinstance(value, np.ndarray):
        if value.size:
            ranges.append(account((value,), ()))
            if _hostfunc.keep is not None:
                _hostfunc.keep(value)
    elif pieces_of_array(value) is not None:
        ranges.append(account((value,), ()))
    return value


_hostfunc.set_arguments(_arguments)
