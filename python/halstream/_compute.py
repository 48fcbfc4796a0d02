"""Functions of NumPy over device memory: what a dialect's few tensor operations stand on.

An operation is one function on a stream. It reads and writes blocks of the
stream-ordered pool, which stay as they are until no stream works on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _current, _memory, _numbered
from ._array import Array, empty
from ._errors import OutOfMemoryError
from ._stream import Stream

__all__ = ["compute", "new", "read", "upload"]


def new(shape: tuple[int, ...], dtype: Any, stream: Stream) -> Array:
    """Return memory for a result that work on `stream` makes.

    Raises
    ------
    OutOfMemoryError
        Also where the process has chosen a limit and this would pass it.
    """
    limit = _current.memory_limit()
    if limit:
        used = _memory.pool_stats(stream._ordinal)["used"]
        asked = math.prod(shape) * np.dtype(dtype).itemsize
        if used + asked > limit:
            raise OutOfMemoryError(
                f"{asked} bytes asked for, and {used} of the {limit} that the process allows "
                "itself are in use",
                operation="allocate",
            )
    return empty(shape, dtype, stream=stream)


def upload(host: Any, device: int) -> tuple[Array, Stream]:
    """Copy a NumPy array to a device; return it and the stream that did it.

    The contents are there when the call returns, whatever the program's
    streams wait for: work on any stream may use them.
    """
    stream = _numbered.transfer(device)
    array = new(host.shape, host.dtype, stream)
    if array.nbytes:
        array.copy_from(np.ascontiguousarray(host), stream)
        stream.synchronize()
    return array, stream


def compute(stream: Stream, function: Callable[..., Any], out: Array, *inputs: Any) -> None:
    """Enqueue ``function(*inputs, out=out)``; arrays arrive as NumPy arrays.

    An exception of the function is raised by the next synchronize of the stream.
    """
    if out.nbytes:
        reads = [value for value in inputs if isinstance(value, Array) and value.nbytes]
        stream.call_checked(_run, function, out, *inputs, reads=reads, writes=(out,))
        if _current.blocking():
            stream.synchronize()


def _run(function: Callable[..., Any], out: Any, *inputs: Any) -> None:
    function(*inputs, out=out)


def read(array: Array, stream: Stream) -> Any:
    """Return the contents as a NumPy array when the work of `stream` is done; raise its error."""
    host = np.empty(array.shape, array.dtype)
    if array.nbytes:
        array.copy_to(host, stream)
    stream.synchronize()
    return host
