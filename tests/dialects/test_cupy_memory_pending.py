"""cupy: figures of memory that pending work uses, and the orders of arrays."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream import cupy
from halstream.cupy import cuda
from halstream.cupy.cuda import MemoryPool, Stream, memory

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]

Hold = Callable[[Any], Any]


def test_arrays_of_pending_work_are_free_when_they_are_dropped(hold: Hold) -> None:
    pool = MemoryPool()
    with cuda.using_allocator(pool.malloc):
        stream = Stream(non_blocking=True)
        with stream:
            gate = hold(stream)
            a = cupy.ones(1024)
            b = a * 2
            assert pool.used_bytes() == 2 * 8192
            c = b + 1
            del a, b
            assert (pool.used_bytes(), pool.n_free_blocks()) == (8192, 2)
            d = cupy.zeros(1024)  # in the memory of one of them, after the work on it
            assert pool.total_bytes() == 3 * 8192
            pool.free_all_blocks()  # its memory is still in use, and stays
            others = [hs.zeros(8192, "u1") for _ in range(4)]
            gate.open()
            assert (c.get() == 3).all()
            assert not d.get().any()
            del others


def test_an_array_that_another_stream_works_on_is_in_use_until_that_is_done(hold: Hold) -> None:
    pool = MemoryPool()
    with cuda.using_allocator(pool.malloc):
        one, other = Stream(non_blocking=True), Stream(non_blocking=True)
        with one:
            a = cupy.ones(1024)
        one.synchronize()
        gate = hold(other)
        with other:
            b = a + 1
        del a
        with one:
            c = cupy.full(1024, 5.0)
        one.synchronize()
        gate.open()
        assert (b.get(other) == 2).all()
        assert (c.get(one) == 5).all()


def test_an_array_over_an_allocator_of_the_program_lives_until_the_work_is_done(hold: Hold) -> None:
    events: list[str] = []
    kept: dict[int, Any] = {}

    def allocate(size: int, device: int) -> int:
        block = hs._memory.DeviceMemory(size, device)
        kept[block.ptr] = block
        return int(block.ptr)

    def free(address: int, device: int) -> None:
        events.append("freed")
        del kept[address]

    pool = MemoryPool(memory.PythonFunctionAllocator(allocate, free).malloc)
    with cuda.using_allocator(pool.malloc):
        stream = Stream(non_blocking=True)
        with stream:
            gate = hold(stream)
            a = cupy.ones(1024)
            b = a * 2
            del a, b
            pool.free_all_blocks()
            if hs.backend() == "host":
                assert not events
            gate.open()
            stream.synchronize()
            gc.collect()
            pool.free_all_blocks()
            assert events == ["freed", "freed"]


@pytest.mark.parametrize("order", ["Q", "q", "1"])
@pytest.mark.parametrize("make", [cupy.array, cupy.asarray, cupy.zeros, cupy.ndarray])
def test_an_unknown_order_is_refused(make: Any, order: str) -> None:
    with pytest.raises(TypeError, match="order not understood"):
        make([1], order=order)


@pytest.mark.parametrize("order", ["C", "c", "F", "f", "A", "a", "K", "k"])
def test_every_known_order_does_for_one_dimension(order: str) -> None:
    assert cupy.array([1, 2], order=order).get().tolist() == [1, 2]
