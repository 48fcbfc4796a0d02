"""torch.cuda.MemPool: memory of its own for a part of the program, and for graphs."""

from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Iterator
from typing import Any

import halstream as hs
import halstream.torch as torch
import pytest
from halstream.torch import accelerator, cuda

pytestmark = [pytest.mark.usefixtures("backend", "settled_memory")]

SIZE = 3000


@pytest.fixture(autouse=True)
def settled() -> Iterator[None]:
    cuda.init()
    yield
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()


def taken(stream: Any = None, size: int = SIZE) -> int:
    """Allocate, give it back at once, and return the address."""
    address = cuda.caching_allocator_alloc(size, None, stream)
    cuda.caching_allocator_delete(address)
    return address


def test_J3_a_pool_gives_its_memory_to_its_contexts_only() -> None:
    pool = cuda.MemPool()
    assert pool.use_count() == 1
    with cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        address = taken()
    assert pool.use_count() == 1
    held = [cuda.caching_allocator_alloc(SIZE) for _ in range(4)]
    assert address not in held
    for one in held:
        cuda.caching_allocator_delete(one)
    with cuda.use_mem_pool(pool):
        assert taken() == address
    other = cuda.MemPool()
    assert other.id != pool.id and other.id[0] == pool.id[0] == 0
    with cuda.use_mem_pool(other):
        assert taken() != address
    with cuda.use_mem_pool(other), cuda.use_mem_pool(pool):
        assert taken() == address  # of the context that was entered last


def test_J3_memory_of_a_pool_is_given_out_again_on_its_own_stream_only() -> None:
    pool, one, two = cuda.MemPool(), cuda.Stream(), cuda.Stream()
    with cuda.use_mem_pool(pool):
        address = taken(one)
        assert taken(two) != address
        assert taken(one) == address


def test_J3_a_context_is_for_its_thread_and_its_device() -> None:
    pool, found = cuda.MemPool(), []
    with cuda.use_mem_pool(pool):
        address = taken()
        thread = threading.Thread(target=lambda: found.append(taken()))
        thread.start()
        thread.join(10)
        assert found and found[0] != address
        if cuda.device_count() > 1:
            with cuda.device(1):
                elsewhere = taken()
            with cuda.use_mem_pool(pool, 1), cuda.device(1):
                assert taken() != elsewhere
                assert taken() == taken()
    with pytest.raises(RuntimeError, match="invalid device ordinal"), cuda.use_mem_pool(pool, 99):
        pass
    with pytest.raises(TypeError, match="MemPool"), cuda.use_mem_pool((0, 1)):  # type: ignore[arg-type]
        pass


def test_J3_memory_goes_back_to_the_device_with_the_last_user() -> None:
    before = cuda.memory_allocated()
    pool = cuda.MemPool()
    with cuda.use_mem_pool(pool):
        late = cuda.caching_allocator_alloc(1 << 20)
        taken(size=1 << 21)
    cuda.synchronize()
    assert cuda.memory_allocated() - before >= 3 << 20
    cuda.empty_cache()
    assert cuda.memory_allocated() - before >= 3 << 20  # the pool keeps it
    del pool
    gc.collect()
    assert 1 << 20 <= cuda.memory_allocated() - before < 2 << 20
    cuda.caching_allocator_delete(late)
    gc.collect()
    assert cuda.memory_allocated() == before


def test_J3_a_pool_may_help_where_memory_runs_out() -> None:
    total = cuda.mem_get_info()[1]
    helping, other = cuda.MemPool(use_on_oom=True), cuda.MemPool()
    addresses = []
    for pool in (other, helping):
        with cuda.use_mem_pool(pool):
            addresses.append(taken())
    before = cuda.get_per_process_memory_fraction()
    cuda.set_per_process_memory_fraction((cuda.memory_allocated() + 100) / total)
    try:
        lent = cuda.caching_allocator_alloc(SIZE)
        assert lent == addresses[1]
        with pytest.raises(cuda.OutOfMemoryError):
            cuda.caching_allocator_alloc(SIZE)
        with cuda.use_mem_pool(other):
            assert taken() == addresses[0]  # it is the pool's already
        cuda.caching_allocator_delete(lent)
    finally:
        cuda.set_per_process_memory_fraction(before)


def test_J3_without_splits_memory_is_given_out_for_its_own_size() -> None:
    for no_split in (False, True):
        pool = cuda.MemPool(no_split=no_split)
        with cuda.use_mem_pool(pool):
            address = taken(size=1 << 20)
            assert (taken(size=1 << 16) == address) is not no_split


def test_J3_what_a_pool_refuses() -> None:
    with pytest.raises(NotImplementedError, match="allocator"):
        cuda.MemPool(object())
    with pytest.raises(TypeError, match="use_on_oom is a bool"):
        cuda.MemPool(None, 1)  # type: ignore[arg-type]
    pool = cuda.MemPool()
    with pytest.raises(RuntimeError, match="cudaMallocAsync"):
        pool.snapshot()
    with pytest.raises(TypeError, match="cannot pickle or copy"):
        copy.copy(pool)


@pytest.mark.needs("graphs")
@pytest.mark.parametrize("by", ["object", "number"])
def test_J3_a_capture_into_a_pool_allocates_there_and_keeps_it(by: str) -> None:
    pool = cuda.MemPool()
    graphs, addresses = [cuda.CUDAGraph() for _ in range(2)], []
    stream = cuda.Stream()
    for g in graphs:
        with cuda.graph(g, pool=pool if by == "object" else pool.id, stream=stream):
            addresses.append(taken(stream))
            stream.call(addresses.append, 0)
        assert g.pool() == pool.id and g.pools() == [pool.id]
    assert addresses[0] == addresses[1]  # graphs of one pool share what they have given back
    assert taken(stream) != addresses[0]  # the capture has ended
    assert pool.use_count() == 3
    graphs[0].reset()
    assert pool.use_count() == 2
    del graphs, g
    gc.collect()
    assert pool.use_count() == 1


@pytest.mark.needs("graphs")
def test_J3_a_graph_keeps_the_pools_of_the_contexts_in_its_capture() -> None:
    pool, g, stream = cuda.MemPool(), cuda.CUDAGraph(), cuda.Stream()
    with cuda.graph(g, stream=stream):
        with cuda.use_mem_pool(pool):
            address = cuda.caching_allocator_alloc(SIZE)
        stream.call(lambda: None)
    assert g.pools() == [g.pool(), pool.id]
    cuda.caching_allocator_delete(address)
    memory = pool._memory
    del pool
    gc.collect()
    assert memory.users == 1
    g.reset()
    assert memory.users == 0


@pytest.mark.needs("graphs")
def test_J3_a_capture_that_ends_by_reset_allocates_there_no_more() -> None:
    pool, g, stream = cuda.MemPool(), cuda.CUDAGraph(), cuda.Stream()
    with cuda.use_mem_pool(pool):
        address = taken(stream)
    with cuda.stream(stream):
        g.capture_begin(pool=pool)
        g.reset()
    assert pool.use_count() == 1
    assert taken(stream) != address


@pytest.mark.needs("graphs")
@pytest.mark.parametrize("make", [cuda.CUDAGraph, accelerator.Graph])
def test_J4_what_a_capture_allocates_can_be_used_after_every_replay(make: Any) -> None:
    g, stream, source = make(), cuda.Stream(), hs.zeros(16, "f4")
    cuda.synchronize()
    with cuda.stream(stream):
        g.capture_begin()
        out = hs.empty(16, "f4", stream=stream)
        out.copy_from(source, stream)
        g.capture_end()
        for value in (1, 2, 3):
            source.fill(value, stream)
            g.replay()
            stream.synchronize()
            assert out.numpy(stream).tolist() == [value] * 16


def test_names() -> None:
    assert torch.cuda.memory.MemPool is cuda.MemPool
    assert torch.cuda.memory.use_mem_pool is cuda.use_mem_pool
    assert torch.cuda.graphs.make_graphed_callables is cuda.make_graphed_callables
