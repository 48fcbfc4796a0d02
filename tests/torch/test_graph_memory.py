"""F31: memory of captures and of torch.cuda.MemPool."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("collected")


def test_F31_memory_of_a_graph_goes_to_nobody_else_while_the_graph_is_there(torch: Any, captured: Any) -> None:
    x = torch.ones(1000, device="cuda")
    graph, total = captured(lambda: (x + 1).sum())
    others = [torch.full((1000,), -5.0, device="cuda") for _ in range(20)]
    torch.cuda.synchronize()
    graph.replay()
    assert total.item() == 2000
    assert all(bool((other == -5).all()) for other in others)


def test_F31_dropped_memory_is_used_again_within_the_capture_and_on_its_stream_only(torch: Any) -> None:
    side, addresses = torch.cuda.Stream(), []
    x = torch.ones(5000, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first = x + 1
        addresses.append(first.data_ptr())
        del first
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            other = x + 2
            addresses.append(other.data_ptr())
        torch.cuda.current_stream().wait_stream(side)
        second = x + 3
        addresses.append(second.data_ptr())
    assert addresses[0] == addresses[2] != addresses[1]


def test_F31_memory_that_another_stream_used_is_not_used_again_in_the_capture(torch: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.ones(5000, device="cuda")
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        first = x + 1
        address = first.data_ptr()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            first.add_(1)
            first.record_stream(side)
        del first
        second = x + 3
        torch.cuda.current_stream().wait_stream(side)
    assert second.data_ptr() != address


def test_F31_graphs_share_a_pool_and_the_last_one_gives_it_back(torch: Any) -> None:
    x = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        a = x + 1
        address = a.data_ptr()
        del a
    with torch.cuda.graph(second, pool=first.pool(), stream=torch.cuda.graph.default_capture_stream):
        b = x + 2
        assert b.data_ptr() == address
    assert first.pool() == second.pool()
    del b
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() > reserved
    first.reset()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() > reserved
    second.reset()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == reserved


def test_F31_a_collected_graph_gives_its_memory_back(torch: Any) -> None:
    def once() -> None:
        graph, x = torch.cuda.CUDAGraph(), torch.ones(1 << 18, device="cuda")
        with torch.cuda.graph(graph):
            y = (x + 1) * 2
        graph.replay()
        assert y.sum().item() == 4 << 18
        torch.cuda.synchronize()

    once()
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved(), torch.cuda.memory_allocated()
    for _ in range(5):
        once()
    gc.collect()
    torch.cuda.empty_cache()
    assert (torch.cuda.memory_reserved(), torch.cuda.memory_allocated()) == before


def test_F31_a_pool_of_its_own_for_a_part_of_the_program(torch: Any) -> None:
    pool = torch.cuda.MemPool()
    assert pool.use_count() == 1
    with torch.cuda.use_mem_pool(pool):
        inside = torch.ones(3000, device="cuda")
        address = inside.data_ptr()
        assert pool.use_count() == 2
    assert pool.use_count() == 1
    del inside
    outside = torch.ones(3000, device="cuda")
    assert outside.data_ptr() != address
    with torch.cuda.use_mem_pool(pool):
        again = torch.ones(3000, device="cuda")
    assert again.data_ptr() == address
    with pytest.raises(NotImplementedError, match="allocator"):
        torch.cuda.MemPool(object())


def test_a_snapshot_shows_which_segments_are_a_pools(torch: Any) -> None:
    pool, side = torch.cuda.MemPool(), torch.cuda.Stream()
    assert pool.snapshot() == []
    x = torch.ones(3 << 20, device="cuda")
    with torch.cuda.use_mem_pool(pool):
        kept, dropped = torch.ones(3 << 20, device="cuda"), torch.ones(4 << 20, device="cuda")
        parts = [torch.ones(2000, device="cuda") for _ in range(3)]
    address, freed = kept.data_ptr(), dropped.data_ptr()
    del dropped, parts
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = y + 1
        torch.cuda.current_stream().wait_stream(side)

    def blocks(segments: list[dict[str, Any]]) -> dict[int, tuple[Any, str]]:
        return {b["address"]: (s["segment_pool_id"], b["state"]) for s in segments for b in s["blocks"]}

    every = blocks(torch.cuda.memory_snapshot())
    assert every[address] == (pool.id, "active_allocated")
    assert every[freed] == (pool.id, "inactive")
    states = [[block["state"] for block in s["blocks"]] for s in torch.cuda.memory_snapshot()]
    assert not [found for found in states if ("inactive", "inactive") in itertools.pairwise(found)]
    assert every[y.data_ptr()] == every[z.data_ptr()] == (graph.pool(), "active_allocated")
    assert every[x.data_ptr()][0] == (0, 0)
    of_pool = blocks(pool.snapshot())
    assert of_pool == {start: block for start, block in every.items() if block[0] == pool.id} != {}
    assert blocks(torch.cuda.memory_snapshot(graph.pool())).keys() >= {y.data_ptr(), z.data_ptr()}


def test_F31_memory_of_a_pool_that_another_stream_used_comes_after_that_work(torch: Any, held: Any) -> None:
    pool, side = torch.cuda.MemPool(), torch.cuda.Stream()
    with torch.cuda.use_mem_pool(pool):
        x = torch.ones(3000, device="cuda")
        address = x.data_ptr()
        torch.cuda.synchronize()
        gate = held(side)
        with torch.cuda.stream(side):
            y = x + 1
        x.record_stream(side)
        del x
        others = [torch.full((3000,), 7.0, device="cuda") for _ in range(3)]
        torch.cuda.current_stream().synchronize()
        assert address not in [other.data_ptr() for other in others]
        gate.open()
        side.synchronize()
        assert y.tolist() == [2.0] * 3000


def test_F31_freed_inputs_are_an_error_of_the_replay(torch: Any, captured: Any) -> None:
    x = torch.ones(1 << 20, device="cuda")
    torch.cuda.synchronize()
    graph, _ = captured(lambda: x + 1)
    graph.replay()
    torch.cuda.synchronize()
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="freed"):
        graph.replay()
