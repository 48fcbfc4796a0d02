"""MemoryAsyncPool: the stream-ordered pool of each device as an allocator."""

from __future__ import annotations

from typing import Any

from ... import _core as core
from ... import _memory
from ..._core import _current
from ..._errors import OutOfMemoryError as _CoreOutOfMemory
from ..._memory import _rawmem
from . import _mempools as runtime
from ._blocks import MemoryAsync, stream_of
from ._constants import cudaMemPoolAttrReleaseThreshold
from ._devices import getDeviceCount
from ._errors import intptr, size_t
from ._limits import limit
from ._memory_pool import Exhausted
from ._pointer import MemoryPointer


def _handle(device: int, given: Any) -> int:
    if given == "default":
        return runtime.deviceGetDefaultMemPool(device)
    if given == "current":
        return runtime.deviceGetMemPool(device)
    if isinstance(given, str):
        raise ValueError("only 'default', 'current' and the handle of a pool name a pool")
    return intptr(given)


class MemoryAsyncPool:
    """cupy.cuda.MemoryAsyncPool (14.2.0): memory in the order of the current stream.

    Difference: a device has one pool, whose figures these are.
    """

    memoryAsyncHasStat = True

    def __init__(self, pool_handles: Any = "current") -> None:
        count = getDeviceCount()
        given = pool_handles if isinstance(pool_handles, (list, tuple)) else [pool_handles] * count
        if len(given) != count:
            raise ValueError(f"{len(given)} pools for {count} devices")
        many = isinstance(pool_handles, (str, list, tuple))
        self._pools = [_handle(device, what) for device, what in enumerate(given)]
        for device, pool in enumerate(self._pools):
            # A single handle is one device's; the others keep their own.
            if not many and _rawmem.pool_device(pool) != device:
                self._pools[device] = runtime.deviceGetDefaultMemPool(device)
            runtime.deviceSetMemPool(device, self._pools[device])

    def _pool(self) -> int:
        return self._pools[_current.current_device()]

    def _stats(self) -> dict[str, int]:
        return _memory.pool_stats()

    def malloc(self, size: int) -> MemoryPointer:
        """Take memory that later work on the current stream may use."""
        nbytes, stream = size_t(size), stream_of(None)
        for last in (False, True):
            try:
                return MemoryPointer(MemoryAsync(nbytes, stream), 0)
            except _CoreOutOfMemory:
                # Work that is pending on this stream may hold memory that was freed.
                if not last:
                    core.Stream.synchronize(stream)
        raise Exhausted(nbytes, self.total_bytes(), self.get_limit())

    def free_all_blocks(self, stream: Any = None) -> None:
        """Wait for a stream (None: the current one) and give what is free back to the device."""
        core.Stream.synchronize(stream_of(stream))
        runtime.memPoolTrimTo(self._pool(), 0)

    def n_free_blocks(self) -> int:
        """Not known, there as here."""
        raise NotImplementedError("This function is not supported in MemoryAsyncPool")

    def used_bytes(self) -> int:
        """Return how many bytes of the current device are in use."""
        return self._stats()["used"]

    def free_bytes(self) -> int:
        """Return how many bytes of the current device the pool keeps."""
        stats = self._stats()
        return stats["reserved"] - stats["used"]

    def total_bytes(self) -> int:
        """Return how many bytes of the current device the pool holds."""
        return self._stats()["reserved"]

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        """Choose how many free bytes the pool keeps: its release threshold, a soft limit."""
        wanted = limit(size, fraction) or 2**64 - 1
        runtime.memPoolSetAttribute(self._pool(), cudaMemPoolAttrReleaseThreshold, wanted)

    def get_limit(self) -> int:
        """Return the release threshold."""
        return runtime.memPoolGetAttribute(self._pool(), cudaMemPoolAttrReleaseThreshold)


MemoryAsyncPool.__module__ = "halstream.cupy.cuda.memory"
