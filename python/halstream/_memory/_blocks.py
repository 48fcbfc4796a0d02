"""Blocks of memory, of devices and of the host, that the runtime knows."""

from __future__ import annotations

import operator
from typing import Any

from .. import _native
from .._core._base import _hold, drain, held, lent, reap_memory
from .._core._device import ordinal
from .._core._stream import Stream
from .._errors import OutOfMemoryError
from ._exchange import Exchange, check_not_lent
from ._held import retry

_mem_alloc_async = _native.raw("mem_alloc_async")
_mem_free_async = _native.raw("mem_free_async")

PAGEABLE, PINNED, DEVICE = 0, 1, 2

# Larger numbers do not fit the extension's, and no machine has so many bytes.
_MOST = 2**63 - 1


def _size(nbytes: int) -> int:
    size = operator.index(nbytes)
    if size > _MOST:
        raise OutOfMemoryError(f"{size} bytes are more than any memory has")
    return size


class Memory(Exchange):
    """A block of bytes; given back when the last reference is gone.

    Work that is pending on it completes first: giving it back never disturbs
    an operation that was enqueued before.

    Attributes
    ----------
    ptr : int
        Address of the first byte, a multiple of 256.
    nbytes : int
        Size in bytes.
    """

    __slots__ = ("__weakref__", "_others", "nbytes", "ptr")
    kind = DEVICE

    ptr: int
    nbytes: int
    device: int  # of its own in the subclasses for memory of devices
    readonly = False
    foreign = False  #: True for memory of a device that another library gives back
    _others: tuple[Stream, ...]  # set by record_stream

    def free(self) -> None:
        """Give it back now. No later call may name it; again does nothing."""
        if lent:
            check_not_lent(self)
        if self.ptr:
            ptr, self.ptr = self.ptr, 0
            try:
                self._free(ptr)
            except BaseException:
                self.ptr = ptr  # refused: it is still to be given back
                raise

    def _free(self, ptr: int) -> None:
        if hasattr(self, "_others"):
            _hold(self._gone(ptr))
        else:
            _native.mem_free(ptr)

    def record_stream(self, stream: Stream) -> None:
        """Say that a stream uses it: once freed, it waits for what is on the stream by then.

        For work that does not say what it reads and writes, on another stream
        than the memory's own.

        Notes
        -----
        Source: torch.Tensor.record_stream.
        """
        if not isinstance(stream, Stream):
            raise TypeError(f"record_stream() takes a Stream, not {type(stream).__name__}")
        others = getattr(self, "_others", ())
        mine = getattr(self, "stream", None)
        if stream._id not in [s._id for s in (*others, *([mine] if mine else ()))]:
            self._others = (*others, stream)

    def _exposed(self) -> tuple[Memory, int, tuple[int, ...], Any]:
        return self, self.ptr, (self.nbytes,), None

    def _gone(self, ptr: int) -> tuple[Any, ...]:
        owner = getattr(self, "stream", None)
        return ptr, self.nbytes, getattr(self, "device", -1), owner, self._others

    def __del__(self) -> None:
        ptr = getattr(self, "ptr", 0)
        if ptr and reap_memory is not None:
            reap_memory.append(self._gone(ptr) if hasattr(self, "_others") else ptr)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"cannot pickle or copy a {type(self).__name__}: it owns live memory of this "
            "process; copy its contents into a new one"
        )

    def __repr__(self) -> str:
        state = f"{self.nbytes} bytes at {self.ptr:#x}" if self.ptr else "freed"
        return f"<halstream.{type(self).__name__} {state}>"


class DeviceMemory(Memory):
    """Memory of a device.

    Parameters
    ----------
    nbytes : int
        One or more.
    device : Device, int, str or None
        None is the current device.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.

    Notes
    -----
    Contract M1, M2.
    """

    __slots__ = ("device",)

    def __init__(self, nbytes: int, device: Any = None) -> None:
        self.ptr = 0
        if reap_memory or held or lent:
            drain()
        self.device = ordinal(device)
        self.nbytes = _size(nbytes)
        try:
            self.ptr = _native.mem_alloc(self.device, self.nbytes)
        except OutOfMemoryError as exc:
            self.ptr = retry(exc, self.device, _native.mem_alloc, self.device, self.nbytes)


class PooledMemory(Memory):
    """Memory of a device in the order of a stream: work enqueued there later may use it.

    Given back at the point that the stream has reached when it is freed. Work
    on other streams must be ordered with the stream by events.

    Notes
    -----
    Contract M7.
    """

    __slots__ = ("device", "stream")

    def __init__(self, nbytes: int, stream: Stream) -> None:
        self.ptr = 0
        if reap_memory or held or lent:
            drain()
        self.stream = stream
        self.device = stream._ordinal
        self.nbytes = _size(nbytes)
        try:
            self.ptr = _mem_alloc_async(stream._id, self.nbytes)
        except RuntimeError as exc:
            try:
                self.ptr = retry(exc, self.device, _mem_alloc_async, stream._id, self.nbytes)
            except RuntimeError as failed:
                raise stream._fail(failed, "allocate") from None

    def free(self, stream: Stream | None = None) -> None:
        """Give it back at the point that a stream (None: its own) has reached."""
        if lent:
            check_not_lent(self)
        if self.ptr:
            ptr, self.ptr = self.ptr, 0
            where = self.stream if stream is None else stream
            if hasattr(self, "_others"):
                self.stream = where
                _hold(self._gone(ptr))
                return
            try:
                _mem_free_async(where._id, ptr)
            except RuntimeError as exc:
                self.ptr = ptr
                raise where._fail(exc, "free") from None


class PinnedMemory(Memory):
    """Host memory that copies read when the stream gets there, not at the call.

    `free` fails with `NotReadyError` while a pending operation works on it.

    Notes
    -----
    Contract M4, M10.
    """

    __slots__ = ()
    kind = PINNED

    def __init__(self, nbytes: int) -> None:
        self.ptr = 0
        if reap_memory or held or lent:
            drain()
        self.nbytes = _size(nbytes)
        self.ptr = _native.host_alloc(self.nbytes)

    def free(self) -> None:
        """Give it back; `NotReadyError` while a pending operation works on it."""
        if lent:
            check_not_lent(self)
        if hasattr(self, "_others"):
            super().free()
        elif self.ptr:
            _native.host_free(self.ptr)
            self.ptr = 0
