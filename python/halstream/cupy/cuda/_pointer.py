"""MemoryPointer: a place in a block of device memory."""

from __future__ import annotations

import operator
from functools import partial
from typing import Any

from ... import _memory
from ..._core import _current
from ..._dialects._adapt import raising
from . import _copies as runtime
from ._blocks import BaseMemory, concrete, stream_of
from ._captured import keep_captured, refuse_captured
from ._errors import ERRORS, intptr, size_t
from ._handles import PER_THREAD_DEFAULT, default_id
from .device import Device

_copy_blocking = raising(ERRORS)(_memory.copy_blocking)
copy_bytes = raising(ERRORS)(partial(_memory.copy_as, _memory.ASYNC))
_fill = raising(ERRORS)(_memory.fill)


def _host(mem: Any) -> int:
    """Return the address in an int or a ``ctypes.c_void_p``."""
    try:
        return operator.index(mem)
    except TypeError:
        return intptr(mem.value)


def _is_pointer(mem: Any, name: str) -> MemoryPointer:
    if not isinstance(mem, MemoryPointer):
        raise TypeError(
            f"Argument '{name}' has incorrect type (expected cupy.cuda.memory.MemoryPointer, got {type(mem).__name__})"
        )
    return mem


class MemoryPointer:
    """cupy.cuda.MemoryPointer (14.2.0).

    The copies without "async" belong to the legacy default stream and wait;
    the others are enqueued on a stream, None being the current one.
    """

    __slots__ = ("_device_id", "_mem", "_ptr")

    def __init__(self, mem: BaseMemory, offset: int) -> None:
        if not isinstance(mem, BaseMemory):
            raise TypeError(
                f"Argument 'mem' has incorrect type (expected cupy.cuda.memory.BaseMemory, got {type(mem).__name__})"
            )
        self._mem = mem
        self._ptr = mem.ptr + intptr(offset)
        self._device_id = mem.device_id

    @property
    def ptr(self) -> int:
        """Address."""
        return self._ptr

    @property
    def mem(self) -> BaseMemory:
        """The block it points into; kept alive."""
        return self._mem

    @property
    def device_id(self) -> int:
        """Number of the device."""
        return self._device_id

    @property
    def device(self) -> Device:
        """The device that the memory belongs to."""
        return self._mem.device

    def _waits_for(self, stream: Any) -> bool:
        return self._mem._waits_for(stream)

    # -- arithmetic -------------------------------------------------------

    def _at(self, ptr: int) -> MemoryPointer:
        new = MemoryPointer.__new__(MemoryPointer)
        new._mem, new._ptr, new._device_id = self._mem, ptr, self._device_id
        return new

    def __add__(self, y: int) -> MemoryPointer:
        return self._at(self._ptr + intptr(y))

    __radd__ = __add__

    def __iadd__(self, offset: int) -> MemoryPointer:
        self._ptr += intptr(offset)
        return self

    def __sub__(self, offset: int) -> MemoryPointer:
        return self._at(self._ptr - intptr(offset))

    def __isub__(self, offset: int) -> MemoryPointer:
        self._ptr -= intptr(offset)
        return self

    def __rsub__(self, value: Any, /) -> Any:
        raise TypeError("bad operand type for unary -: 'cupy.cuda.memory.MemoryPointer'")

    def __int__(self) -> int:
        return self._ptr

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._ptr:#x} device={self._device_id} mem={self._mem!r}>"

    # -- copies that wait -------------------------------------------------

    def copy_from_device(self, src: MemoryPointer, size: int) -> None:
        """Copy bytes from another place in device memory."""
        source, nbytes = _is_pointer(src, "src")._ptr, size_t(size)
        refuse_captured("a copy that waits")
        _copy_blocking(self._ptr, source, nbytes)

    def copy_from_host(self, mem: Any, size: int) -> None:
        """Copy bytes from an address of the host: an int or a ``ctypes.c_void_p``."""
        source, nbytes = _host(mem), size_t(size)
        refuse_captured("a copy that waits")
        _copy_blocking(self._ptr, source, nbytes)

    def copy_from(self, mem: Any, size: int) -> None:
        """Copy bytes from a MemoryPointer or an address of the host."""
        if isinstance(mem, MemoryPointer):
            self.copy_from_device(mem, size)
        else:
            self.copy_from_host(mem, size)

    def copy_to_host(self, mem: Any, size: int) -> None:
        """Copy bytes to an address of the host."""
        target, nbytes = _host(mem), size_t(size)
        refuse_captured("a copy that waits")
        _copy_blocking(target, self._ptr, nbytes)

    def memset(self, value: int, size: int) -> None:
        """Set every byte; on the legacy default stream of the current device."""
        refuse_captured("a memset that waits")
        runtime.memset(self._ptr, value, size)

    # -- copies in stream order -------------------------------------------

    def copy_from_device_async(self, src: MemoryPointer, size: int, stream: Any = None) -> None:
        """Copy bytes from another place in device memory, in stream order."""
        where = stream_of(stream)
        copy_bytes(where, self._ptr, _is_pointer(src, "src")._ptr, size_t(size))
        keep_captured(where, self._mem, src._mem)

    def copy_from_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from the host in stream order; pinned memory is read only then."""
        nbytes, source = size_t(size), _host(mem)
        refuse_captured("a copy from the host", stream)
        copy_bytes(stream_of(stream), self._ptr, source, nbytes, mem)

    def copy_from_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes from a MemoryPointer or an address of the host, in stream order."""
        if isinstance(mem, MemoryPointer):
            self.copy_from_device_async(mem, size, stream)
        else:
            self.copy_from_host_async(mem, size, stream)

    def copy_to_host_async(self, mem: Any, size: int, stream: Any = None) -> None:
        """Copy bytes to the host in stream order; to pageable memory it waits."""
        nbytes, where, target = size_t(size), stream_of(stream), _host(mem)
        refuse_captured("a copy to the host", where)
        copy_bytes(where, target, self._ptr, nbytes, mem)

    def memset_async(self, value: int, size: int, stream: Any = None) -> None:
        """Set every byte in stream order."""
        where = stream_of(stream)
        _fill(where, self._ptr, intptr(value) & 0xFF, 1, size_t(size))
        keep_captured(where, self._mem)


MemoryPointer.__module__ = "halstream.cupy.cuda.memory"


def here() -> tuple[int, int]:
    """Return the current device and the number of the stream that is current there."""
    device = _current.current_device()
    stream = _current.current_stream(device)
    if stream is None:
        if PER_THREAD_DEFAULT:
            return device, concrete(stream_of(None))._id
        return device, default_id(False)
    if getattr(stream, "ptr", 2) == 2:
        stream = concrete(stream_of(None))
    return device, stream._id
