"""Blocks of memory of devices and of the host that the runtime allocated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .. import _native
from .._core import _handles, _hostfunc
from .._core._device import ordinal
from .._core._lookup import DEVICE, PINNED
from .._core._reap import drain, lent, reap
from .._core._stream import Stream
from .._errors import ClosedError, OutOfMemoryError
from .._native._constants import RELEASE_REUSABLE, RELEASE_TRACKED
from .._runtime import runtime
from ._copies import copy
from ._exchange import Exchange, check_not_lent

__all__ = ["DeviceMemory", "Memory", "PinnedMemory", "PooledMemory"]

_block_new = _native.raw("block_new")
_block_new_async = _native.raw("block_new_async")
_block_address = _native.raw("block_address")
_block_free = _native.raw("block_free")
_block_free_async = _native.raw("block_free_async")

# Larger numbers do not fit the extension's, and no machine has so many bytes.
_MOST = 2**63 - 1


def checked_size(nbytes: int) -> int:
    """Return a size as an int that the extension takes.

    Raises
    ------
    OutOfMemoryError
        If it is past 64 bits.
    TypeError
        If it is no whole number.
    """
    size = operator.index(nbytes)
    if size > _MOST:
        raise OutOfMemoryError(f"out of memory. Tried to allocate {size} bytes: no memory has so many")
    return size


def allocate(device: int, make: Callable[..., int], *args: Any) -> int:
    """Return what `make` returns for new memory: its id, or its address.

    Functions that are pending on streams keep their arguments alive. When memory is
    short, the call waits for them.

    Raises
    ------
    OutOfMemoryError
        With the bytes asked for and the bytes free.
    """
    if reap or lent:
        drain()
    try:
        return make(*args)
    except RuntimeError as exc:
        error = _native.error(exc)
        if not isinstance(error, OutOfMemoryError) or not _hostfunc.pending():
            raise error from None
        _native.mem_await_calls(device)
        drain()
    try:
        return make(*args)
    except RuntimeError as exc:
        raise _native.error(exc) from None


class Hold:
    """Keeps a block alive for the views of functions on streams after its owner was collected.

    The block counts as freed from then on, as the program refers to it no more, and is
    given back when the last view of a function is collected.
    """

    __slots__ = ("ident",)

    def __init__(self) -> None:
        self.ident = 0  # of the block, once its owner was collected

    def __del__(self) -> None:
        if self.ident and reap is not None:
            reap.append(self.ident)


#: The holds of live blocks that functions were given, by the blocks' ids.
_holds: dict[int, Hold] = runtime.keep("memory that functions on streams see", {})


def _collect(ident: int) -> None:
    """Leave a block whose owner was collected to the last view of a function, or to the next call."""
    if reap is None:  # the interpreter ends
        return
    hold = _holds.pop(ident, None)
    if hold is None:
        reap.append(ident)
    else:
        hold.ident = ident
        reap.append(-ident)


_handles.seen_by_functions(_holds, _collect)


class Memory(_handles.MemoryBase, Exchange):
    """A block of bytes; freed when it is collected.

    Work that is pending on it completes first: giving it back never disturbs
    an operation that was enqueued before.

    Attributes
    ----------
    ptr : int
        Address of the first byte, a multiple of 256; 0 after `free`.
    nbytes : int
        Size in bytes.
    """

    __slots__ = ()
    kind = DEVICE

    device: int  # of its own in the subclasses for memory of devices
    readonly = False
    foreign = False  #: True for memory of a device that another library gives back

    def _adopt(self, ident: int) -> None:
        self._id = ident
        self.ptr = _block_address(ident)

    def free(self) -> None:
        """Free it now. No later call may name it; a second call does nothing.

        Raises
        ------
        BufferError
            If another library uses the memory, which it got through DLPack.
        CallInHostFunctionError
            If a function on a stream calls this.
        """
        if lent:
            check_not_lent(self)
        if self.ptr:
            try:
                _block_free(self._id)
            except RuntimeError as exc:
                raise _native.error(exc) from None
            self.ptr = 0
            _holds.pop(self._id, None)

    def _for_functions(self) -> object:
        """Return the object that the views given to functions on streams must keep alive."""
        return self

    def _waits_for(self, stream: Stream) -> bool:
        """Return True if, once dropped, the memory stays valid until known work of a stream has completed."""
        return False

    def record_stream(self, stream: Stream) -> None:
        """Declare that a stream uses it: once freed, it is reused only after the work then on the stream.

        For work whose accesses are not declared, on another stream than the
        memory's own.

        Raises
        ------
        TypeError
            If `stream` is no stream.

        Notes
        -----
        Contract M17. Source: torch.Tensor.record_stream.
        """
        if not isinstance(stream, Stream):
            raise TypeError(f"record_stream() takes a Stream, not {type(stream).__name__}")
        _native.block_record(self._id, stream._id)

    def _exposed(self) -> tuple[Memory, int, tuple[int, ...], Any]:
        return self, self.ptr, (self.nbytes,), None

    def _duplicate(self, ptr: int, nbytes: int, to_host: bool) -> tuple[Any, int]:
        """Return a copy of bytes, on the host or on the memory's own device, and its address."""
        import numpy as np

        stream = Stream._current(self.device)
        _native.stream_wait_mem(stream._id, ptr)
        if to_host:
            host = np.empty(nbytes, np.uint8)
            address = int(host.__array_interface__["data"][0])
            copy(stream, address, ptr, nbytes, host)
            return host, address
        new = DeviceMemory(max(1, nbytes), self.device)
        copy(stream, new.ptr, ptr, nbytes)
        return new, new.ptr

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"cannot pickle or copy a {type(self).__name__}: it owns live memory of this "
            "process; copy its contents into a new one"
        )

    def __repr__(self) -> str:
        state = f"{self.nbytes} bytes at {self.ptr:#x}" if self.ptr else "freed"
        return f"<halstream.{type(self).__name__} {state}>"


class OwnedMemory(Memory):
    """Memory of a device that the runtime frees, after the work that it knows of has completed."""

    __slots__ = ()

    def _for_functions(self) -> object:
        # In one step: several threads may enqueue functions.
        return _holds.setdefault(self._id, Hold()) if self.ptr else self

    def _waits_for(self, stream: Stream) -> bool:
        return True


class DeviceMemory(OwnedMemory):
    """Memory of a device.

    Parameters
    ----------
    nbytes : int
        One or more.
    device : Device, int, str or None
        None is the current device.

    Raises
    ------
    InvalidValueError
        If `nbytes` is not positive.
    OutOfMemoryError
        With the bytes asked for and the bytes free.

    Notes
    -----
    Contract M1, M2, M16.
    """

    __slots__ = ("device",)

    def __init__(self, nbytes: int, device: Any = None) -> None:
        self.ptr = 0
        self.device = ordinal(device)
        self.nbytes = checked_size(nbytes)
        self._adopt(allocate(self.device, _block_new, self.device, self.nbytes))


class PooledMemory(OwnedMemory):
    """Memory of a device in the order of a stream: work enqueued there later may use it.

    Freed at the point that the stream has reached at the call of `free`. Work
    on other streams must be ordered with the stream by events. Memory collected
    without `free` waits for known work on other streams, too, but for a program
    that is checked: under a sanitizer or a deterministic schedule it goes back to
    its stream at once, as with the allocators of torch and paddle, and other
    streams must be declared by `record_stream`.

    Raises
    ------
    ClosedError
        If the stream is closed.
    OutOfMemoryError
        With the bytes asked for and the bytes free.

    Notes
    -----
    Contract M7, M16, M22.
    """

    __slots__ = ("device", "stream")
    _release = RELEASE_REUSABLE

    def __init__(self, nbytes: int, stream: Stream) -> None:
        if self.ptr:  # it is made again
            _collect(self._id)
        self.ptr = 0
        self.stream = stream
        self.device = stream._ordinal
        self.nbytes = checked_size(nbytes)
        try:
            self._adopt(allocate(self.device, _block_new_async, stream._id, self.nbytes, self._release))
        except RuntimeError as exc:
            raise stream._fail(exc, "allocate") from None

    def free(self, stream: Stream | None = None) -> None:
        """Give it back at the point that a stream (None: its own) has reached.

        Raises
        ------
        BufferError
            If another library uses the memory, which it got through DLPack.
        InvalidValueError
            If the stream is on another device.
        """
        if lent:
            check_not_lent(self)
        if self.ptr:
            where = self.stream if stream is None else stream
            try:
                if _block_free_async(self._id, where._id):
                    return  # a later launch of its graph allocates it again
            except RuntimeError as exc:
                failed = where._fail(exc, "free")
                if stream is None and isinstance(failed, ClosedError):
                    failed = ClosedError(
                        "the stream of the memory is closed; give the one that it is to be freed on: free(stream)",
                        operation="free",
                    )
                raise failed from None
            self.ptr = 0
            if _holds:
                _holds.pop(self._id, None)


class TrackedMemory(PooledMemory):
    """Memory in the order of a stream that always waits for known work on other streams, too."""

    __slots__ = ()
    _release = RELEASE_TRACKED


class PinnedMemory(Memory):
    """Page-locked host memory: copies read it when they run, not at the call.

    `free` fails with `NotReadyError` while a pending operation works on it.

    Raises
    ------
    InvalidValueError
        If `nbytes` is not positive.
    OutOfMemoryError
        With the bytes asked for and the bytes free.

    Notes
    -----
    Contract M4, M10.
    """

    __slots__ = ()
    kind = PINNED

    def __init__(self, nbytes: int) -> None:
        self.ptr = 0
        self.nbytes = checked_size(nbytes)
        # Of the host's memory; what the current device's functions hold may be part of it.
        self._adopt(allocate(ordinal(None), _native.block_new_host, self.nbytes))
