"""acl.util (pyACL of CANN 8.5): threads for callbacks, and addresses of Python's buffers.

Difference: `start_thread` leaves SIGINT as it is.
"""

from __future__ import annotations

import ctypes
import errno
import math
import operator
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native
from .._core._interop import backend_name
from .._dialects._not_built import not_built
from .._memory import DEVICE, kind_of
from . import _table
from ._call import command as _command
from ._session import JoinableThread

__all__ = [
    "bytes_to_ptr",
    "numpy_contiguous_to_ptr",
    "numpy_to_ptr",
    "ptr_to_bytes",
    "ptr_to_numpy",
    "start_thread",
    "stop_thread",
]

# NumPy's numbers of element types.
_TYPES = "?bBhHiIlLqQfdgFDG"
# No address of a process is above it.
_LAST = 2**63 - 1


@_command("fo", (0,), home="acl.util")
def start_thread(function: Callable[..., object], args: Any, /) -> tuple[int, int]:
    """start_thread: (thread, ret); calls ``function(args)``, or ``function()`` for None."""
    thread = JoinableThread(function, *(() if args is None else (args,)))
    _table.threads[thread.ident] = thread
    return thread.ident, 0


@_command("h", home="acl.util")
def stop_thread(thread_id: int, /) -> int:
    """stop_thread: wait for the thread's function to end.

    An exception in it is raised here as `RuntimeError`. Returns ``ESRCH`` for a
    number that `start_thread` did not give, or that was joined already.
    """
    thread = _table.threads.pop(thread_id, None)
    if thread is None:
        return errno.ESRCH
    try:
        thread.join()
    except KeyboardInterrupt:
        _table.threads[thread_id] = thread
        raise
    return 0


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"{name}() is going to be removed; use {instead}()", Warning, stacklevel=3)


def _array(array: object) -> np.ndarray[Any, Any]:
    if not isinstance(array, np.ndarray):
        raise ValueError(f"expected a numpy array, not {type(array).__name__}")
    return array


def numpy_to_ptr(array: Any, /) -> int:
    """numpy_to_ptr: address of the data; the array must live as long as it is used."""
    data = _array(array)
    _deprecated("numpy_to_ptr", "bytes_to_ptr")
    if not data.flags["C_CONTIGUOUS"]:
        warnings.warn("the array is not contiguous", Warning, stacklevel=2)
    return data.ctypes.data


def numpy_contiguous_to_ptr(array: Any, /) -> tuple[int, Any]:
    """numpy_contiguous_to_ptr: (address, the array or a contiguous copy to keep)."""
    data = np.ascontiguousarray(_array(array))
    _deprecated("numpy_contiguous_to_ptr", "bytes_to_ptr")
    return data.ctypes.data, data


def ptr_to_numpy(pointer: int, shape: tuple[int, ...], npy_type: int, /) -> Any:
    """ptr_to_numpy: a writable view of memory, without ownership."""
    _deprecated("ptr_to_numpy", "ptr_to_bytes")
    try:
        pointer, lengths = operator.index(pointer), tuple(map(operator.index, shape))
        kind = operator.index(npy_type)
    except TypeError:
        raise TypeError("acl.util.ptr_to_numpy args parse failed") from None
    if not 0 <= kind < len(_TYPES):
        raise ValueError(f"there is no element type {kind}")
    if min(lengths, default=0) < 0:
        raise ValueError(f"a shape has no negative lengths: {lengths}")
    element = np.dtype(_TYPES[kind])
    size = math.prod(lengths) * element.itemsize
    if not size:
        return np.empty(lengths, element)
    _check_visible(pointer, size)
    memory = (ctypes.c_char * size).from_address(pointer)
    return np.frombuffer(memoryview(memory).cast("B"), dtype=element).reshape(lengths)


def _check_visible(pointer: int, size: int) -> None:
    """Refuse memory that the host cannot read; reading it would end the process."""
    if not 0 < pointer <= _LAST or size > _LAST - pointer:
        raise ValueError(f"{size} bytes at {pointer:#x} are not memory of this process")
    if _native.loaded() and backend_name() != "host" and kind_of(pointer) == DEVICE:
        raise ValueError(f"{pointer:#x} is a device's memory; copy it to the host first")
    try:
        _native.mem_check(pointer, size)
    except RuntimeError as exc:
        raise ValueError(str(_native.error(exc))) from None


def bytes_to_ptr(data: bytes, /) -> int:
    """bytes_to_ptr: address of the bytes; keep them, and write nothing there."""
    if not isinstance(data, bytes):
        raise ValueError(f"expected bytes, not {type(data).__name__}")
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def ptr_to_bytes(pointer: int, size: int, /) -> bytes:
    """ptr_to_bytes: a copy of the memory; ValueError where the process has none."""
    try:
        pointer, size = operator.index(pointer), operator.index(size)
    except TypeError:
        raise TypeError("acl.util.ptr_to_bytes args parse failed") from None
    if size < 0:
        raise ValueError(f"the size is 0 or more bytes, not {size}")
    if not size:
        return b""
    _check_visible(pointer, size)
    return ctypes.string_at(pointer, size)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
