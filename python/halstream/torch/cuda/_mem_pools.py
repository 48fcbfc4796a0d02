"""torch.cuda.MemPool and use_mem_pool (2.15): memory of its own for a part of the program."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..._core._base import Uncopied
from .._device import device_index, existing
from .._errors import dialect_errors, error
from . import _routes
from ._captured import current_capture, pool_handle
from ._devices import is_current_stream_capturing

__all__ = ["MemPool", "memory_snapshot", "use_mem_pool"]


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> NoReturn:
    """torch.cuda.memory_snapshot (2.15): refused as it is there with the allocator cudaMallocAsync."""
    raise RuntimeError(
        "Calling snapshot with backend:cudaMallocAsync is not meaningful. (For backend:native, "
        "snapshot returns a detailed summary of all blocks tracked by the allocator, but the "
        "cudaMallocAsync backend does not track individual blocks.)"
    )


class MemPool(Uncopied):
    """torch.cuda.MemPool (2.15): memory that is given out again for work of its own stream only.

    Differences: it is what `caching_allocator_alloc` gives, for arrays of halstream have the runtime's pool; an
    allocator of the program's is refused, and so is `snapshot`, as it is there with the allocator cudaMallocAsync.
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
        if allocator is not None:
            raise error(
                "not_supported", "torch.cuda.MemPool takes no allocator of the program's in halstream: leave it out"
            )
        for name, value in (("use_on_oom", use_on_oom), ("no_split", no_split)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} is a bool, not {type(value).__name__}")
        self._memory = _routes.PoolMemory(pool_handle(), use_on_oom, no_split)
        self._memory.use()
        weakref.finalize(self, self._memory.leave).atexit = False

    @property
    def id(self) -> tuple[int, int]:
        """The number of the pool, which graphs take as their `pool`."""
        return self._memory.ident

    def use_count(self) -> int:
        """Return how many keep the pool: this object, contexts of `use_mem_pool`, and graphs."""
        return self._memory.users

    def snapshot(self, include_traces: bool = True) -> NoReturn:
        """Raise, as `memory_snapshot` does."""
        memory_snapshot(self.id, include_traces=include_traces)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """torch.cuda.use_mem_pool (2.15): what this thread allocates on a device comes from a pool.

    A graph that is captured meanwhile keeps the pool until it is reset or collected.
    """
    with _routes.routed(_memory_of(pool), _ordinal(device)):
        if is_current_stream_capturing():
            graph = current_capture()
            if graph is not None:
                graph._keep_pool(pool._memory)
        yield


@dialect_errors
def _ordinal(device: Any) -> int:
    return existing(-1 if device is None else device_index(device))


def _memory_of(pool: Any) -> _routes.PoolMemory:
    if not isinstance(pool, MemPool):
        raise TypeError(f"pool is a torch.cuda.MemPool, not {type(pool).__name__}")
    return pool._memory
