"""NumPy functions on device memory, the basis of the dialects' tensor operations.

An operation is one function on a stream. It reads and writes blocks of the
stream-ordered pool, which stay as they are until no stream works on them. On a
vendor's backend, whose memory the host cannot see, it is the function and copies
through pinned memory around it, in stream order: NumPy does the arithmetic there,
too.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _memory
from .._core import _current, _hostfunc
from .._core._graph import name_of
from .._core._interop import backend_name
from .._core._stream import Stream
from .._errors import OutOfMemoryError
from .._memory._array import Array, empty, pinned_empty
from .._memory._blocks import TrackedMemory
from . import _numbered

__all__ = ["check_room", "compute", "new", "read", "upload"]

#: Bytes above which free memory is checked before the host makes a tensor's contents.
_LARGE = 16 << 20


def new(shape: tuple[int, ...], dtype: Any, stream: Stream, tracked: bool = False) -> Array:
    """Return memory for a result that work on `stream` makes; `tracked` waits for other streams when it is dropped.

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
                f"{asked} bytes asked for, and {used} of the {limit} that the process allows itself are in use",
                operation="allocate",
            )
    if not tracked:
        return empty(shape, dtype, stream=stream)
    kind = np.dtype(dtype)
    memory = TrackedMemory(max(1, math.prod(shape) * kind.itemsize), stream)
    return Array(memory, memory.ptr, shape, kind)


def check_room(shape: tuple[int, ...], dtype: Any, device: int) -> None:
    """Raise the out-of-memory error of a device without room for a tensor, before the host makes its contents."""
    if math.prod(shape) * np.dtype(dtype).itemsize > _LARGE:
        new(shape, dtype, _numbered.transfer(device))  # and dropped at once


def upload(host: Any, device: int) -> tuple[Array, Stream]:
    """Copy a NumPy array to a device; return it and the stream that did it.

    The contents are there when the call returns, whatever the program's
    streams wait for: work on any stream may use them. The memory is tracked, since
    that stream is none of the program's.
    """
    stream = _numbered.transfer(device)
    array = new(host.shape, host.dtype, stream, tracked=True)
    if array.nbytes:
        array.copy_from(np.ascontiguousarray(host), stream)
        stream.synchronize()
    return array, stream


def compute(stream: Stream, function: Callable[..., Any], out: Array, *inputs: Any, checked: bool = True) -> None:
    """Enqueue ``function(*inputs, out=out)``; arrays arrive as NumPy arrays.

    An exception of the function is raised by the next synchronize of the stream,
    or if it is not `checked` reported as those of `Stream.call` are.

    Notes
    -----
    Asynchronous on every backend, and on every one NumPy does the arithmetic. On a
    vendor's the contents of `out` and of the inputs are copied to pinned memory
    first, and those of `out` back afterwards. `function` must keep nothing of its
    arguments: what is dropped by the program meanwhile is used again after it.
    """
    if out.nbytes:
        enqueue = stream.call_checked if checked else stream.call
        if backend_name() == "host":
            reads = [value for value in inputs if isinstance(value, Array) and value.nbytes]
            given = [v._borrowed(stream) if isinstance(v, Array) else v for v in inputs]
            enqueue(_run, function, out._borrowed(stream), *given, reads=reads, writes=(out,))
        else:
            # The function may change a part of `out` only, so all of it is copied first.
            staged: dict[tuple[Any, ...], Any] = {}
            result = _staged(stream, out, staged)
            given = [_staged(stream, v, staged) if isinstance(v, Array) else v for v in inputs]
            reads = [value for value in staged.values() if value.nbytes]
            enqueue(_run, function, result, *given, reads=reads, writes=(result,))
            # Pinned memory stays allocated until the work on it has completed, also when it is dropped.
            out.copy_from(result, stream)
            kept = [v for v in (out, *inputs) if isinstance(v, Array) and not v._memory._waits_for(stream)]
            if kept:
                _hostfunc.hold(stream, *kept)
        if checked and _current.blocking():
            stream.synchronize()


def _staged(stream: Stream, array: Array, staged: dict[tuple[Any, ...], Any]) -> Any:
    """Return pinned memory into which a copy of an array is enqueued."""
    key = array.ptr, array.shape, array.dtype
    found = staged.get(key)
    if found is None:
        # A view of bytes, as the array interface cannot describe dtypes of extensions.
        found = staged[key] = pinned_empty(array.shape, array.dtype).view(array.dtype)
        if array.nbytes:
            array.copy_to(found, stream)
    return found


def _run(function: Callable[..., Any], out: Any, *inputs: Any) -> None:
    try:
        function(*inputs, out=out)
    except BaseException as exc:
        # The traceback must not keep the arrays reachable: their memory may be reused.
        traceback.clear_frames(exc.__traceback__)
        raise
    finally:
        del out, inputs


# What the nodes of graphs are called: as the function that is computed.
setattr(_run, "_halstream_name", lambda function, out, *inputs: name_of(function, inputs))  # noqa: B010


def read(array: Array, stream: Stream) -> Any:
    """Return the contents as a NumPy array when the work of `stream` is done; raise its error."""
    host = np.empty(array.shape, array.dtype)
    if array.nbytes:
        array.copy_to(host, stream)
    stream.synchronize()
    return host
