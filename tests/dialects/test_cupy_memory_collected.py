"""cupy.cuda: memory whose last reference is part of a cycle that the garbage collector ends."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import pytest
from halstream import cupy
from halstream.cupy import cuda
from halstream.cupy.cuda import MemoryPool, PinnedMemoryPool

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]

SIZE = 4096

#: Allocators by name, each with a pool of its own.
ALLOCATORS: dict[str, Callable[[], Callable[[int], Any]]] = {
    "MemoryPool": lambda: MemoryPool().malloc,
    "MemoryPool over malloc_async": lambda: MemoryPool(cuda.malloc_async).malloc,
    "MemoryPool over another pool": lambda: MemoryPool(MemoryPool().malloc).malloc,
    "malloc_async": lambda: cuda.malloc_async,
    "MemoryAsyncPool": lambda: cuda.MemoryAsyncPool().malloc,
    "PinnedMemoryPool": lambda: PinnedMemoryPool().malloc,
}


@pytest.fixture(autouse=True)
def only_explicit_collections() -> Iterator[None]:
    """Let the collector run where the tests ask for it, and nowhere else."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def collect_in_cycle(*objects: Any) -> None:
    """Make the objects part of a cycle that nothing refers to, and collect it."""
    cycle: list[Any] = list(objects)
    cycle.append(cycle)


@pytest.mark.parametrize("name", ALLOCATORS)
def test_memory_collected_in_a_cycle_is_given_out_once(name: str) -> None:
    allocate = ALLOCATORS[name]()
    for _ in range(3):
        collect_in_cycle(allocate(SIZE), allocate(SIZE))
        gc.collect()
        live = [allocate(SIZE) for _ in range(4)]
        # Of the device's pool and of the device, which get what a pool gave back.
        live += [cuda.malloc_async(SIZE), cuda.MemoryPointer(cuda.Memory(SIZE), 0)]
        starts = sorted(pointer.ptr for pointer in live)
        assert all(a + SIZE <= b for a, b in itertools.pairwise(starts)), starts


@pytest.mark.parametrize("name", ["MemoryPool", "MemoryPool over malloc_async"])
def test_memory_held_by_a_traceback_keeps_its_values(name: str) -> None:
    allocate = ALLOCATORS[name]()

    def fail() -> None:
        scratch = allocate(SIZE)
        try:
            scratch.no_such_name  # noqa: B018
        except AttributeError as exc:
            keep = exc  # the frame refers to the exception, whose traceback refers to the frame
            assert keep

    fail()
    gc.collect()
    pointers = [allocate(SIZE) for _ in range(4)] + [cuda.malloc_async(SIZE) for _ in range(4)]
    stream = cuda.get_current_stream()
    for value, pointer in enumerate(pointers, 1):
        pointer.memset_async(value, SIZE, stream)
    stream.synchronize()
    host = hs.pinned_empty(SIZE, "u1")
    for value, pointer in enumerate(pointers, 1):
        pointer.copy_to_host(host.ctypes.data, SIZE)
        assert set(host.tolist()) == {value}


def test_an_array_collected_in_a_cycle_leaves_the_pool_usable() -> None:
    collect_in_cycle(cupy.ones(4))
    gc.collect()
    assert cupy.ones(4).get().tolist() == [1.0] * 4


def test_a_pool_collected_with_its_memory_frees_it_once() -> None:
    pool = MemoryPool()
    collect_in_cycle(pool, pool.malloc(SIZE), pool.malloc(SIZE))
    del pool
    gc.collect()
    live = [cuda.malloc_async(SIZE) for _ in range(4)]
    live += [cuda.MemoryPointer(cuda.Memory(SIZE), 0) for _ in range(4)]
    assert len({pointer.ptr for pointer in live}) == len(live)
