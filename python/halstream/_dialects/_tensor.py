"""The tensor of the dialects: device memory, the positions of its elements, and NumPy's work enqueued on it.

A dialect's class says how tensors are made and printed, which names its operations have, and
what they refuse. Types and shapes of results are determined at the call; the elements are
computed on the current stream.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .. import _core as core
from .._core import _current
from .._core._declared import add_arrays, strided
from .._errors import NotSupportedError
from .._memory._array import Array
from ._compute import compute, new, read, upload
from ._operators import ABSOLUTE, COMPARISONS, POSITIVE, Operation, Operators

__all__ = [
    "SCALARS",
    "BaseTensor",
    "Layout",
    "Storage",
    "binary",
    "change",
    "copy_into",
    "fill",
    "of_python",
    "product",
    "total",
    "unary",
]

TensorT = TypeVar("TensorT", bound="BaseTensor")

#: What an operand may be beside a tensor and a NumPy array.
SCALARS = (bool, int, float, complex, np.number, np.bool_)


# -- positions of elements ----------------------------------------------------


class Layout(NamedTuple):
    """Elements of a shape, `offset` bytes into the memory, `strides` bytes apart."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @classmethod
    def whole(cls, shape: tuple[int, ...], itemsize: int) -> Layout:
        """Return the layout of contiguous elements at the start of the memory."""
        return cls(0, shape, contiguous_strides(shape, itemsize), itemsize)

    @property
    def contiguous(self) -> bool:
        """True if the elements follow one another in C order."""
        return 0 in self.shape or all(
            length == 1 or mine == theirs
            for length, mine, theirs in zip(
                self.shape,
                self.strides,
                contiguous_strides(self.shape, self.itemsize),
                strict=True,
            )
        )

    @property
    def span(self) -> tuple[int, int]:
        """First byte of the memory that an element lies in, and the one after the last."""
        if 0 in self.shape:
            return self.offset, self.offset
        ends = [s * (n - 1) for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(end for end in ends if end < 0)
        return low, self.offset + sum(end for end in ends if end > 0) + self.itemsize

    def view(self, flat: Any, start: int) -> Any:
        """Return the elements as a NumPy array; `flat` holds the memory from byte `start` on."""
        first = flat[(self.offset - start) // self.itemsize :] if flat.size else flat
        return np.lib.stride_tricks.as_strided(first, self.shape, self.strides)

    def at(self, key: Any) -> Layout:
        """Return the layout of the elements at a basic index; IndexError as NumPy raises it."""
        # Nothing reads through the array: only its addresses, shapes and strides are used.
        one = np.zeros((), np.dtype((np.void, self.itemsize)))
        whole = np.lib.stride_tricks.as_strided(one, self.shape, self.strides, writeable=False)
        parts = _tuple(key)
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, ...)  # so that NumPy gives a view of one element, too
        part = whole[parts]
        moved = _address(part) - _address(whole) if part.size else 0
        return Layout(self.offset + moved, part.shape, part.strides, self.itemsize)

    def transposed(self) -> Layout:
        """Return the layout with its dimensions in reverse order."""
        return Layout(self.offset, self.shape[::-1], self.strides[::-1], self.itemsize)

    def reshaped(self, shape: tuple[int, ...]) -> Layout:
        """Return contiguous elements in another shape."""
        return Layout(self.offset, shape, contiguous_strides(shape, self.itemsize), self.itemsize)


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Return the bytes from one element to the next in each dimension, in C order."""
    return tuple(math.prod(shape[i + 1 :]) * itemsize for i in range(len(shape)))


def _memory_of(tensor: BaseTensor) -> Iterator[tuple[int, int, int, int]]:
    """Yield the memory of the elements, as functions on streams declare it; none while they are on the host only."""
    array, layout = tensor._storage.array, tensor._layout
    if array is not None and 0 not in layout.shape:
        yield from strided(array.ptr + layout.offset, layout.itemsize, layout.shape, layout.strides)


def _is_basic(part: Any) -> bool:
    """Return True for a part of an index that selects a view: an int, a slice, None or an Ellipsis."""
    number = isinstance(part, (int, np.integer)) and not isinstance(part, bool)
    return number or part is None or part is Ellipsis or isinstance(part, slice)


def _tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


# -- the tensor -----------------------------------------------------------------


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


class BaseTensor(Operators):
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

    def _adopt(self, array: Array, stream: core.Stream) -> None:
        """Initialize the tensor with memory of a device that `stream` fills."""
        self._own(Storage(None, array, stream), Layout.whole(array.shape, array.dtype.itemsize), array.dtype)

    @classmethod
    def _of(cls: type[TensorT], host: Any) -> TensorT:
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
        self._adopt(new(tuple(shape), np.dtype(dtype), stream, self._tracked), stream)
        self._enqueue(function, *inputs)

    @classmethod
    def _result(cls: type[TensorT], function: Callable[..., Any], shape: Any, dtype: Any, *inputs: Any) -> TensorT:
        """Return the result of ``function(*inputs, out=...)``, which the current stream runs."""
        made = object.__new__(cls)
        made._make(function, shape, dtype, *inputs)
        return made

    @classmethod
    def _view(cls: type[TensorT], array: Array, stream: core.Stream) -> TensorT:
        """Return a tensor of memory that `stream` filled."""
        made = object.__new__(cls)
        made._adopt(array, stream)
        return made

    def _seen(self: TensorT, layout: Layout) -> TensorT:
        """Return a view: a tensor of the same memory with another layout."""
        made = object.__new__(type(self))
        made._own(self._storage, layout, self._dtype)
        return made

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
            return type(self)._result(copy_into, self.shape, self._dtype, self)._block()
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

    def _enqueue(self, function: Callable[..., Any], *inputs: Any) -> None:
        """Enqueue ``function(*inputs, out=...)``, which writes the contents, on the current stream."""
        out, how = self._operand()
        given: list[Any] = []
        views: list[Any] = []
        for value in inputs:
            block, view = value._operand() if isinstance(value, BaseTensor) else (value, None)
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

    def tolist(self) -> Any:
        """Return the contents as lists; waits as `asnumpy` does."""
        return self.asnumpy().tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.asnumpy() if dtype is None else self.asnumpy().astype(dtype)

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
    def T(self) -> Any:
        """A view with the dimensions in reverse order."""
        return self._seen(self._layout.transposed())

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    # -- views and parts ----------------------------------------------------

    def _get(self: TensorT, key: Any) -> TensorT:
        """Return the view that an index selects, of ints, slices, None and an Ellipsis."""
        if not all(map(_is_basic, _tuple(key))):
            raise NotSupportedError(f"a part is selected by ints, slices, None and ..., not by {key!r}")
        return self._seen(self._layout.at(key))

    def _set(self, key: Any, value: Any) -> None:
        """Enqueue the change of what such an index selects."""
        if isinstance(value, (list, tuple, np.generic)):
            value = np.asarray(value)
        if isinstance(value, np.ndarray):
            value = type(self)._of(value)
        part = self._get(key)
        _check_fits(part.shape, value)
        part._enqueue(copy_into, value)

    def _reshape(self: TensorT, shape: Any) -> TensorT:
        """Return the elements in another shape with as many of them; -1 is what is left over."""
        wanted = tuple(shape)
        rest = -math.prod(wanted) if wanted.count(-1) == 1 else 0
        if rest:
            wanted = tuple(self.size // rest if n == -1 else n for n in wanted)
        if min(wanted, default=0) < 0 or math.prod(wanted) != self.size:
            raise ValueError(f"{self.size} elements do not make a tensor of shape {tuple(shape)}")
        if self._layout.contiguous:
            return self._seen(self._layout.reshaped(wanted))
        whole = type(self)._result(copy_into, self.shape, self._dtype, self)
        return whole._seen(whole._layout.reshaped(wanted))

    def __iter__(self) -> Iterator[Any]:
        return map(self._get, range(len(self)))

    def __len__(self) -> int:
        raise NotImplementedError

    def __reduce__(self) -> Any:
        # Also of copy.copy and copy.deepcopy.
        return type(self)._of, (self.asnumpy(),)

    def __contains__(self, value: Any) -> bool:
        return bool((self.asnumpy() == (value.asnumpy() if isinstance(value, BaseTensor) else value)).any())


add_arrays(BaseTensor, _memory_of)


def _last(storage: Storage) -> core.Stream:
    assert storage.stream is not None
    return storage.stream


def _check_fits(shape: tuple[int, ...], value: Any) -> None:
    other = value.shape if isinstance(value, BaseTensor) else np.shape(value)
    try:
        fits = np.broadcast_shapes(shape, tuple(other)) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"a value of shape {tuple(other)} does not fit a part of shape {shape}")


# -- types and shapes of results ------------------------------------------------

_RANKS = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
# Operations that NumPy refuses for bool, and those that give the same result.
_OF_BOOL = {np.subtract: np.logical_xor, np.floor_divide: np.logical_and}
_INEXACT = frozenset((np.true_divide, np.sin))
_NOT_OF_BOOL = frozenset((np.remainder, np.power, np.negative, np.left_shift, np.right_shift))
_OF_INTEGERS = frozenset((np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.invert))


def _rank(dtype: Any) -> int:
    """Return how high a kind of numbers stands above bool."""
    return _RANKS[dtype.kind]


def of_python(value: Any) -> Any:
    """Return the element type that a Python scalar gets in a tensor."""
    if isinstance(value, (bool, np.bool_)):
        return np.dtype(np.bool_)
    if isinstance(value, (int, np.integer)):
        return np.dtype(np.int64)
    if isinstance(value, (float, np.floating)):
        return np.dtype(np.float32)
    return np.dtype(np.complex64)


def promote(a: Any, b: Any) -> Any:
    """Return the type of two tensors' result: among kinds the higher one's own type wins.

    NumPy would make a Float64 of Int32 and Float32.
    """
    if _rank(a) == _rank(b):
        return np.promote_types(a, b)
    if {_rank(a), _rank(b)} == {2, 3}:
        return np.promote_types(a, b)
    return a if _rank(a) > _rank(b) else b


def _with_scalar(dtype: Any, value: Any) -> Any:
    """Return the type of a tensor's result with a scalar: its own, unless of a lower kind."""
    other = of_python(value)
    if _rank(other) <= _rank(dtype):
        return dtype
    return np.promote_types(dtype, other) if _rank(other) == 3 and _rank(dtype) == 2 else other


def broadcast(name: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common shape."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ValueError(f"For '{name}', the shapes {a} and {b} cannot be broadcast.") from None


def _product_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a matrix product by NumPy's rules."""
    if not a or not b:
        raise ValueError("For 'MatMul', both operands need one dimension or more.")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise RuntimeError(f"For 'MatMulExt' op, shape1[-1] must be equal to shape2[-2], but got {a[-1]} and {inner}.")
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return (*broadcast("MatMul", a[:-2], b[:-2]), *rows, *columns)


# -- operations ------------------------------------------------------------------


def binary(name: str, operation: Operation, a: Any, b: Any) -> Any:
    """Enqueue an operation on two tensors, or on one and a scalar; NotImplemented for what is no operand.

    `name` is what errors call it.
    """
    pair = _pair(a, b)
    if pair is None:
        return NotImplemented
    x, y, dtype = pair
    shape = broadcast(name, getattr(x, "shape", ()), getattr(y, "shape", ()))
    dtype = _settled(name, operation.numpy, dtype)
    kind = np.bool_ if operation in COMPARISONS else dtype
    cls = type(x if isinstance(x, BaseTensor) else y)
    typed = None if operation in COMPARISONS else dtype
    return cls._result(_typed, shape, kind, operation.numpy, _plain(x, dtype), _plain(y, dtype), typed)


def change(name: str, operation: Operation, a: BaseTensor, b: Any) -> Any:
    """Enqueue an operation whose result takes the place of the first operand's contents."""
    pair = _pair(a, b)
    if pair is None:
        return NotImplemented
    dtype = _settled(name, operation.numpy, pair[2])
    if not np.can_cast(dtype, a._dtype, "same_kind"):
        raise TypeError(f"For '{name}', a tensor of {a._dtype} cannot hold the result in place.")
    if broadcast(name, tuple(a.shape), getattr(pair[1], "shape", ())) != tuple(a.shape):
        raise ValueError(f"For '{name}', the result does not fit a tensor of shape {a.shape}.")
    a._enqueue(_typed, operation.numpy, a, _plain(pair[1], dtype), dtype)
    return a


def unary(name: str, operation: Operation, x: TensorT) -> TensorT:
    """Enqueue an operation on one tensor."""
    if operation is POSITIVE:
        return x
    if x._dtype.kind == "c" and operation is ABSOLUTE:
        raise TypeError(f"For '{name}', tensors of {x._dtype} are not supported.")
    dtype = _settled(name, operation.numpy, x._dtype)
    return type(x)._result(_typed, x.shape, dtype, operation.numpy, x, dtype)


def product(a: TensorT, b: TensorT) -> TensorT:
    """Enqueue a matrix product."""
    shape = _product_shape(tuple(a.shape), tuple(b.shape))
    dtype = promote(a._dtype, b._dtype)
    return type(a)._result(_typed, shape, dtype, np.matmul, a, b, dtype)


def total(x: TensorT, axis: Any, keep: bool, dtype: Any) -> TensorT:
    """Enqueue the sum along dimensions: one, several, or all for None; of bools and integers an int64."""
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
    if any(not isinstance(n, (int, np.integer)) for n in axes):
        raise TypeError(f"For 'sum', the axis must be an int or several, but got {axis!r}.")
    for n in axes:
        if not -x.ndim <= n < max(x.ndim, 1):
            raise ValueError(f"For 'sum', the axis value must be in [{-x.ndim},{x.ndim}), but got {n}.")
    summed = {n % x.ndim for n in axes} if x.ndim else set()
    shape = [1 if i in summed else n for i, n in enumerate(x.shape) if keep or i not in summed]
    if dtype is None:
        dtype = x._dtype if x._dtype.kind in "fc" else np.dtype(np.int64)
    return type(x)._result(_summed, shape, dtype, x, tuple(sorted(summed)), keep)


def _settled(name: str, function: Any, dtype: Any) -> Any:
    """Return the type an operation is done in; TypeError where it does not exist."""
    kind = dtype.kind
    if (kind == "b" and function in _NOT_OF_BOOL) or (kind in "fc" and function in _OF_INTEGERS):
        raise TypeError(f"For '{name}', tensors of {dtype} are not supported.")
    return dtype if function not in _INEXACT or _rank(dtype) >= 2 else np.dtype(np.float32)


def _pair(a: Any, b: Any) -> tuple[Any, Any, Any] | None:
    """Return both operands and the element type of the result; None for what is no operand."""
    if isinstance(a, np.ndarray) and isinstance(b, BaseTensor):
        a = type(b)._of(a)
    if isinstance(b, np.ndarray) and isinstance(a, BaseTensor):
        b = type(a)._of(b)
    if isinstance(a, BaseTensor) and isinstance(b, BaseTensor):
        return a, b, promote(a._dtype, b._dtype)
    if isinstance(a, BaseTensor) and isinstance(b, SCALARS):
        return a, b, _with_scalar(a._dtype, b)
    if isinstance(b, BaseTensor) and isinstance(a, SCALARS):
        return a, b, _with_scalar(b._dtype, a)
    return None


def _plain(value: Any, dtype: Any) -> Any:
    # Here and not on the stream: a number that does not fit wraps, as in a tensor.
    return value if isinstance(value, BaseTensor) else np.asarray(value).astype(dtype)[()]


# -- functions that run on the stream ----------------------------------------------


def copy_into(source: Any, *, out: Any) -> None:
    """Copy between element types."""
    np.copyto(out, source, casting="unsafe")


def fill(value: Any, *, out: Any) -> None:
    """Write one value to all elements."""
    out[...] = value


def _typed(function: Any, *operands: Any, out: Any) -> None:
    *values, dtype = operands
    with np.errstate(all="ignore"):
        if dtype is None:  # a comparison
            function(*values, out=out)
        else:
            function = _OF_BOOL.get(function, function) if dtype.kind == "b" else function
            function(*values, out=out, dtype=dtype, casting="unsafe")


def _summed(value: Any, axes: tuple[int, ...], keep: bool, *, out: Any) -> None:
    with np.errstate(all="ignore"):
        np.copyto(out, np.sum(value, axis=axes, keepdims=keep, dtype=out.dtype), casting="unsafe")


def _through_views(function: Any, how: tuple[Layout, int] | None, views: list[Any], *inputs: Any, out: Any) -> None:
    given = [v if how_one is None else how_one[0].view(v, how_one[1]) for v, how_one in zip(inputs, views, strict=True)]
    function(*given, out=out if how is None else how[0].view(out, how[1]))
