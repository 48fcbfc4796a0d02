"""What a tensor holds: contents on the host until their first use, then memory of a device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ... import _core as core
from ..._core import _current
from ..._dialects._compute import compute, new, read, upload
from ..._memory._array import Array
from ._text import initial
from .dtype import Type, of

T = TypeVar("T", bound="Contents")


class Contents:
    """Shape, element type and contents; how operations are enqueued on them."""

    # What comes from the host goes to a device at its first use there, as
    # mindspore does: until then the choice of device is open.
    _host: Any = None
    _array: Array | None = None
    _stream: core.Stream
    _dtype: Any
    shape: tuple[int, ...]

    def _hold(self, host: Any) -> None:
        self._host = host
        self._dtype = host.dtype
        self.shape = host.shape

    @classmethod
    def _of(cls: type[T], host: Any) -> T:
        """Return a tensor that starts with a copy of a NumPy array."""
        made = object.__new__(cls)
        made._hold(initial(host, None))
        return made

    def _make(self, function: Callable[..., Any], shape: Any, dtype: Any, *inputs: Any) -> None:
        """Become the result of a function that the current stream runs."""
        stream: core.Stream = core.Stream._current(_current.current_device())
        given = [value._block() if isinstance(value, Contents) else value for value in inputs]
        array = new(tuple(shape), np.dtype(dtype), stream)
        self._own(array, stream)
        compute(stream, function, array, *given)

    def _own(self, array: Array, stream: core.Stream) -> None:
        self._array, self._stream = array, stream
        self.shape, self._dtype = array.shape, array.dtype

    @classmethod
    def _result(
        cls: type[T], function: Callable[..., Any], shape: Any, dtype: Any, *inputs: Any
    ) -> T:
        made = object.__new__(cls)
        made._make(function, shape, dtype, *inputs)
        return made

    @classmethod
    def _view(cls: type[T], array: Array, stream: core.Stream) -> T:
        """Return a tensor of memory that `stream` filled."""
        made = object.__new__(cls)
        made._own(array, stream)
        return made

    def _block(self) -> Array:
        """Return the memory on the device, where the contents are brought now if need be."""
        host = self._host
        if host is not None:
            self._own(*upload(host, _current.current_device()))
            self._host = None
        assert self._array is not None
        return self._array

    def _change(self, function: Callable[..., Any], *inputs: Any) -> None:
        """Let the current stream write the contents anew."""
        stream: core.Stream = core.Stream._current(_current.current_device())
        block = self._block()
        given = [value._block() if isinstance(value, Contents) else value for value in inputs]
        self._stream = stream
        compute(stream, function, block, *given)

    def asnumpy(self) -> Any:
        """`mindspore.Tensor.asnumpy` of 2.10; a copy. Raises what the stream's work raised."""
        host = self._host
        return read(self._block(), self._stream) if host is None else host.copy()

    numpy = asnumpy

    @property
    def dtype(self) -> Type:
        """The element type."""
        return of(self._dtype)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(self._dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize
