"""The base of the tensors of several dialects: device memory, a layout, and work enqueued on it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .. import _core as core
from .._core import _current
from .._memory._array import Array
from ._compute import compute, new, read, upload
from ._layout import Layout, is_basic

T = TypeVar("T", bound="Contents")


class Storage:
    """The memory that a tensor and its views share, and the stream that wrote it last.

    Contents from the host stay there until their first use on a device, so that
    the device can be chosen until then.
    """

    __slots__ = ("array", "host", "stream")

    def __init__(self, host: Any = None, array: Array | None = None, stream: core.Stream | None = None) -> None:
        self.host = host
        self.array = array
        self.stream = stream

    def block(self, ordinal: int) -> Array:
        """Return the memory on a device; contents still on the host are copied there first."""
        if self.array is None:
            self.array, self.stream = upload(self.host, ordinal)
            self.host = None
        return self.array


class Contents:
    """Shape, element type and contents; how operations are enqueued on them."""

    _storage: Storage
    _layout: Layout
    _dtype: Any
    # Whether the mirrored system tracks the streams that use the memory, and waits for them by itself.
    _tracked = False

    # -- how tensors are made ---------------------------------------------

    def _hold(self, host: Any) -> None:
        """Initialize the tensor with a NumPy array, which it then owns."""
        self._own(Storage(host), Layout.whole(host.shape, host.dtype.itemsize), host.dtype)

    def _own(self, storage: Storage, layout: Layout, dtype: Any) -> None:
        self._storage, self._layout, self._dtype = storage, layout, np.dtype(dtype)

    @classmethod
    def _of(cls: type[T], host: Any) -> T:
        """Return a tensor with a copy of a NumPy array as its contents."""
        made = object.__new__(cls)
        made._hold(cls._initial(host))
        return made

    @classmethod
    def _initial(cls, host: Any) -> Any:
        """Return a tensor's first contents for a NumPy array: a copy, in a type it can have."""
        return np.array(host, order="C")

    def _make(self, function: Callable[..., Any], shape: Any, dtype: Any, *inputs: Any) -> None:
        """Initialize the tensor as the result of a function that the current stream runs."""
        stream = self._current_stream()
        array = new(tuple(shape), np.dtype(dtype), stream, self._tracked)
        self._own(
            Storage(None, array, stream),
            Layout.whole(array.shape, array.dtype.itemsize),
            array.dtype,
        )
        self._enqueue(function, inputs)

    @classmethod
    def _result(cls: type[T], function: Callable[..., Any], shape: Any, dtype: Any, *inputs: Any) -> T:
        """Return the result of ``function(*inputs, out=...)``, which the current stream runs."""
        made = object.__new__(cls)
        made._make(function, shape, dtype, *inputs)
        return made

    @classmethod
    def _view(cls: type[T], array: Array, stream: core.Stream) -> T:
        """Return a tensor of memory that `stream` filled."""
        made = object.__new__(cls)
        made._own(
            Storage(None, array, stream),
            Layout.whole(array.shape, array.dtype.itemsize),
            array.dtype,
        )
        return made

    def _seen(self: T, layout: Layout) -> T:
        """Return a view: a tensor of the same memory with another layout."""
        made: T = object.__new__(self._class)
        made._own(self._storage, layout, self._dtype)
        return made

    @property
    def _class(self) -> Any:
        """The class of the results of operations on this tensor."""
        return type(self)

    # -- work --------------------------------------------------------------

    def _ordinal(self) -> int:
        """Return the device that the contents are on, or will be copied to."""
        return _current.current_device()

    def _current_stream(self) -> core.Stream:
        stream: core.Stream = core.Stream._current(self._ordinal())
        return stream

    def _block(self) -> Array:
        """Return the contents as contiguous memory of the device; a copy if they are not."""
        whole, layout = self._storage.block(self._ordinal()), self._layout
        if not layout.contiguous:
            copied: Contents = self._class._result(copy_into, self.shape, self._dtype, self)
            return copied._block()
        if not layout.offset and layout.shape == whole.shape:
            return whole
        return Array(whole._memory, whole.ptr + layout.offset, layout.shape, self._dtype)

    def _operand(self) -> tuple[Array, tuple[Layout, int] | None]:
        """Return the memory that an operation accesses, and the layout of the elements in it."""
        layout = self._layout
        if layout.contiguous:
            return self._block(), None
        whole = self._storage.block(self._ordinal())
        start, stop = layout.span
        count = (stop - start) // layout.itemsize
        return Array(whole._memory, whole.ptr + start, (count,), self._dtype), (layout, start)

    def _change(self, function: Callable[..., Any], *inputs: Any) -> None:
        """Enqueue a function that rewrites the contents on the current stream."""
        self._enqueue(function, inputs)

    def _enqueue(self, function: Callable[..., Any], inputs: tuple[Any, ...]) -> None:
        out, how = self._operand()
        given: list[Any] = []
        views: list[Any] = []
        for value in inputs:
            block, view = value._operand() if isinstance(value, Contents) else (value, None)
            given.append(block)
            views.append(view)
        stream = self._current_stream()
        self._storage.stream = stream
        if how is None and not any(views):
            compute(stream, function, out, *given)
        else:
            compute(stream, _through_views, out, function, how, views, *given)

    # -- contents ----------------------------------------------------------

    def asnumpy(self) -> Any:
        """Return a copy of the contents; wait for the stream that made them, raise its error."""
        storage = self._storage
        if storage.host is None:
            if self._layout.contiguous:
                return read(self._block(), _last(storage))
            host, start = read(self._operand()[0], _last(storage)), self._layout.span[0]
        else:
            host, start = storage.host.reshape(-1), 0
        return np.array(self._layout.view(host.reshape(-1), start), order="C")

    @property
    def shape(self) -> Any:
        """Lengths of the dimensions."""
        return self._layout.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self._layout.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    # -- views and parts ----------------------------------------------------

    def _get(self: T, key: Any) -> T:
        """Return what an index selects: a view, or a copy where arrays are in the index.

        An index that is a tensor is read first, which waits for its stream.
        """
        if is_basic(key):
            return self._seen(self._layout.at(key))
        key = _read(key)
        shape = self._layout.shape_at(key)
        return self._class._result(_take, shape, self._dtype, self, key)  # type: ignore[no-any-return]

    def _set(self, key: Any, value: Any) -> None:
        """Enqueue the change of what an index selects."""
        if isinstance(value, (list, tuple, np.generic)):
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            value = self._class._of(value)
        if is_basic(key):
            part = self._seen(self._layout.at(key))
            _check_fits(part.shape, value)
            part._change(copy_into, value)
        else:
            key = _read(key)
            _check_fits(self._layout.shape_at(key), value)
            self._change(_put, key, value)

    def _reshape(self: T, shape: Any) -> T:
        """Return the elements in another shape with as many of them; -1 is what is left over."""
        wanted = tuple(shape)
        rest = -math.prod(wanted) if wanted.count(-1) == 1 else 0
        if rest:
            wanted = tuple(self.size // rest if n == -1 else n for n in wanted)
        if min(wanted, default=0) < 0 or math.prod(wanted) != self.size:
            raise ValueError(f"{self.size} elements do not make a tensor of shape {tuple(shape)}")
        if self._layout.contiguous:
            return self._seen(self._layout.reshaped(wanted))
        whole = self._class._result(copy_into, self.shape, self._dtype, self)
        return whole._seen(whole._layout.reshaped(wanted))  # type: ignore[no-any-return]

    def _transpose(self: T, axes: tuple[int, ...] | None = None) -> T:
        return self._seen(self._layout.transposed(axes))


def copy_into(source: Any, *, out: Any) -> None:
    """Copy between element types, on a stream."""
    np.copyto(out, source, casting="unsafe")


def _last(storage: Storage) -> core.Stream:
    assert storage.stream is not None
    return storage.stream


def _through_views(function: Any, how: tuple[Layout, int] | None, views: list[Any], *inputs: Any, out: Any) -> None:
    given = [v if how_one is None else how_one[0].view(v, how_one[1]) for v, how_one in zip(inputs, views, strict=True)]
    function(*given, out=out if how is None else how[0].view(out, how[1]))


def _read(key: Any) -> Any:
    """Return an index with tensors replaced by their contents."""
    if isinstance(key, tuple):
        return tuple(map(_read, key))
    return key.asnumpy() if isinstance(key, Contents) else key


def _check_fits(shape: tuple[int, ...], value: Any) -> None:
    other = value.shape if isinstance(value, Contents) else np.shape(value)
    try:
        fits = np.broadcast_shapes(shape, tuple(other)) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"a value of shape {tuple(other)} does not fit a part of shape {shape}")


def _take(value: Any, key: Any, *, out: Any) -> None:
    out[...] = value[key]


def _put(key: Any, value: Any, *, out: Any) -> None:
    out[key] = value
