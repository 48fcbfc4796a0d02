"""Buffer, and MemoryResource, which gives them out."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from ..._core._base import uncopied
from ..._core._declared import add_arrays
from ..._core._strict import strict
from ..._dialects._adapt import raising
from ..._errors import NotSupportedError
from ..._memory import DEVICE, PAGEABLE, PINNED, copy, fill, kind_of, lookup
from ..._memory._array import Array
from ..._memory._blocks import Memory
from ..._memory._rawmem import Part
from ._arguments import checked, missing_method, missing_property, size_of
from ._errors import ERRORS, closed
from ._stream import Stream, default_stream, on_this_thread, stream_of

__all__ = ["Buffer", "MemoryResource"]

B = TypeVar("B", bound="Buffer")

_copy, _fill = raising(ERRORS)(copy), raising(ERRORS)(fill)
_lookup, _kind_of = raising(ERRORS)(lookup), raising(ERRORS)(kind_of)


class MemoryResource:
    """cuda.core.MemoryResource (1.2.2): the base class of what allocates buffers."""

    def allocate(self, size: int, *, stream: Any) -> Buffer:
        """Return a new buffer; a subclass says how."""
        raise TypeError("MemoryResource.allocate must be implemented by subclasses.")

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        """Give the memory of a buffer back; a subclass says how."""
        raise TypeError("MemoryResource.deallocate must be implemented by subclasses.")

    @property
    def device_id(self) -> int:
        """The number of the device; a subclass says it."""
        raise TypeError("MemoryResource.device_id must be implemented by subclasses.")

    @property
    def is_device_accessible(self) -> bool:
        """Whether devices can work on the memory; a subclass says it."""
        raise TypeError("MemoryResource.is_device_accessible must be implemented by subclasses.")

    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can work on the memory; a subclass says it."""
        raise TypeError("MemoryResource.is_host_accessible must be implemented by subclasses.")

    @property
    def is_managed(self) -> bool:
        """Whether the memory is managed."""
        return False

    def _give_back(self, block: Any, stream: Stream | None) -> None:
        """Give back memory of the runtime that a resource of this package has given out."""
        block.free(stream)


class HostPart(Part):
    """Memory of the host that belongs to another object."""

    __slots__ = ()
    kind = PINNED


class Buffer:
    """cuda.core.Buffer (1.2.2): memory that a resource has given out, or that another object owns.

    Differences: memory that is dropped without `close` goes back in the order of the stream that it
    was allocated on; DLPack's device is the CPU for all memory of host devices, and memory that
    another library uses through DLPack cannot be closed; `options` of copies and buffers of other
    processes are not built.
    """

    _block: Memory | None  # of the runtime
    _ptr: int
    _size: int
    _mr: MemoryResource | None
    _owner: object
    _stream: Stream | None  # that the memory goes back on

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Buffer objects cannot be instantiated directly. Please use MemoryResource APIs.")

    @classmethod
    def _of(cls: type[B], block: Memory | None, ptr: int, size: int, mr: Any, owner: object, stream: Any) -> B:
        new = object.__new__(cls)
        new._block, new._ptr, new._size, new._mr, new._owner, new._stream = block, ptr, size, mr, owner, stream
        return new

    @staticmethod
    def from_handle(
        ptr: int, size: int, mr: MemoryResource | None = None, owner: object = None, *, stream: Any = None
    ) -> Buffer:
        """Return a buffer of memory at an address: `mr` gives it back, or `owner` is kept alive."""
        if mr is not None and owner is not None:
            raise ValueError("owner and memory resource cannot be both specified together")
        where = None
        if mr is not None:
            where = default_stream() if stream is None else stream_of(stream)
        return Buffer._of(None, operator.index(ptr), size_of(size), mr, owner, where)

    from_ipc_descriptor = missing_method("cuda.core.Buffer.from_ipc_descriptor")
    ipc_descriptor = missing_property("cuda.core.Buffer.ipc_descriptor")
    _is_closed = False

    def _open(self) -> None:
        """Raise an error if the buffer was closed."""
        if self._is_closed:
            raise closed("Buffer")

    # -- what it is ---------------------------------------------------------

    @property
    def handle(self) -> int:
        """Address of the first byte; 0 after `close`."""
        return self._ptr

    @property
    def size(self) -> int:
        """Size in bytes; 0 after `close`."""
        return self._size

    @property
    def memory_resource(self) -> MemoryResource | None:
        """What has given it out; None for memory of another owner."""
        return self._mr

    @property
    def owner(self) -> object:
        """What is kept alive for it."""
        return self._owner

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._is_closed

    @property
    def device_id(self) -> int:
        """Number of the device; -1 for memory of the host."""
        self._open()
        return self._mr.device_id if self._mr is not None else int(_lookup(self._ptr)[3])

    @property
    def is_device_accessible(self) -> bool:
        """Whether devices can work on it."""
        self._open()
        return self._mr.is_device_accessible if self._mr is not None else _kind_of(self._ptr) != PAGEABLE

    @property
    def is_host_accessible(self) -> bool:
        """Whether the host can work on it."""
        self._open()
        return self._mr.is_host_accessible if self._mr is not None else _kind_of(self._ptr) != DEVICE

    @property
    def is_managed(self) -> bool:
        """Whether it is managed memory."""
        self._open()
        return self._mr is not None and self._mr.is_managed

    @property
    def is_mapped(self) -> bool:
        """False: memory of other processes is not built."""
        self._open()
        return False

    def __repr__(self) -> str:
        return f"<Buffer ptr={self._ptr:#x} size={self._size}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise uncopied(self)

    # -- work -----------------------------------------------------------------

    def copy_to(self, dst: Buffer | None = None, *, stream: Any, options: Any = None) -> Buffer:
        """Copy it in stream order to another buffer, by default a new one; return that."""
        where = stream_of(stream)
        self._open()
        if dst is None:
            if self._mr is None:
                raise ValueError("a destination buffer must be provided (this buffer does not have a memory_resource)")
            dst = self._mr.allocate(self._size, stream=stream)
        _copied(checked(dst, Buffer, "dst"), self, where, options)
        return dst

    def copy_from(self, src: Buffer, *, stream: Any, options: Any = None) -> None:
        """Copy another buffer to it, in stream order."""
        where = stream_of(stream)
        _copied(self, checked(src, Buffer, "src"), where, options)

    def fill(self, value: Any, *, stream: Any) -> None:
        """Fill it in stream order with a byte, or with the 1, 2 or 4 bytes of an object."""
        where = stream_of(stream)
        self._open()
        if isinstance(value, int):
            if not 0 <= value < 256:
                few = "can't convert negative value to uint8_t"
                raise OverflowError(few if value < 0 else "value too large to convert to uint8_t")
            pattern = bytes([value])
        else:
            pattern = memoryview(value).tobytes()
        if len(pattern) not in (1, 2, 4):
            raise ValueError(f"value must be 1, 2, or 4 bytes, got {len(pattern)}")
        if self._size % len(pattern):
            raise ValueError(f"buffer size ({self._size}) must be divisible by {len(pattern)}")
        if self._size:
            number = int.from_bytes(pattern, "little")
            _fill(on_this_thread(where), self._ptr, number, len(pattern), self._size // len(pattern))

    # -- end ------------------------------------------------------------------

    def close(self, stream: Any = None) -> None:
        """Give it back in the order of a stream, by default the one that it was allocated on."""
        where = self._stream if stream is None else stream_of(stream)
        if self._is_closed:
            return
        block, mr, ptr, size = self._block, self._mr, self._ptr, self._size
        if block is not None and mr is not None:
            mr._give_back(block, where)
        self._is_closed = True
        self._block, self._mr, self._owner, self._ptr, self._size = None, None, None, 0, 0
        if block is None and mr is not None:
            mr.deallocate(ptr, size, stream=where)

    def set_deallocation_stream(self, stream: Any) -> None:
        """Choose the stream that `close` without one gives it back on."""
        where = stream_of(stream)
        self._open()
        self._stream = where

    def __enter__(self: B) -> B:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()

    def __del__(self) -> None:
        # What the runtime gave out gives itself back; a program's own resource is told.
        if getattr(self, "_mr", None) is not None and self._block is None:
            self.close()

    # -- other libraries ------------------------------------------------------

    def _as_array(self) -> Array:
        self._open()
        memory = self._block
        if memory is None:
            ordinal = max(0, int(_lookup(self._ptr)[3]))
            kind = Part if _kind_of(self._ptr) == DEVICE else HostPart
            memory = kind(self, self._ptr, self._size, ordinal)
        return Array(memory, self._ptr, (self._size,), np.dtype(np.int8))

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        return self._as_array().__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._as_array().__dlpack_device__()

    def __buffer__(self, flags: int, /) -> memoryview:
        if not self.is_host_accessible:
            raise BufferError("the memory of a device is no buffer of the host: copy it to pinned memory first")
        return self._as_array().__buffer__(flags)


def _copied(dst: Buffer, src: Buffer, where: Stream, options: Any) -> None:
    """Enqueue a copy between two buffers of one size."""
    dst._open()
    src._open()
    if options is not None:
        raise NotSupportedError("options of copies are not built yet", operation="copy")
    if src._size != dst._size:
        raise ValueError(f"buffer sizes mismatch between src and dst (sizes are: src={src._size}, dst={dst._size})")
    if src._size:
        owners = [one for one in (dst._owner, src._owner) if one is not None]
        _copy(on_this_thread(where), dst._ptr, src._ptr, src._size, *owners)


def _memory_of(buffer: Buffer) -> Iterator[tuple[int, int, int, int]]:
    """Yield the memory of a buffer, as functions on streams declare it."""
    if buffer._size:
        yield buffer._ptr, buffer._size, buffer._size, 1


add_arrays(Buffer, _memory_of)
for _class in (Buffer, MemoryResource):
    _class.__module__ = "halstream.cuda.core"
    strict.add(_class)
