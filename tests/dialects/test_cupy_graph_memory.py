"""What cupy's graphs keep of its pools, and what they refuse."""

from __future__ import annotations

import copy
import gc
import operator
import pickle
import time
from collections.abc import Callable
from typing import Any

import pytest
from halstream import cupy
from halstream.cupy import cuda
from halstream.cupy.cuda import Stream, runtime

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


@pytest.fixture
def stream() -> Stream:
    """Return a non-blocking stream."""
    return Stream(non_blocking=True)


WORKS: dict[str, Callable[[Any, Any], object]] = {
    "function": lambda array, other: operator.iadd(array, 1),
    "result": lambda array, other: other * 3,
    "fill": lambda array, other: array.fill(5),
    "copy": lambda array, other: other.copy(),
    "memset_async": lambda array, other: array.data.memset_async(1, array.nbytes),
    "copy_from_device_async": lambda array, other: array.data.copy_from_device_async(other.data, other.nbytes),
}


@pytest.mark.parametrize("name", WORKS)
def test_G6_a_graph_keeps_parts_of_a_pool_that_were_dropped(stream: Stream, name: str) -> None:
    pool = cuda.MemoryPool()
    with cuda.using_allocator(pool.malloc), stream:
        other = cupy.ones(1024)
        array = cupy.ones(1024)
        stream.synchronize()
        used = pool.used_bytes()
        stream.begin_capture()
        WORKS[name](array, other)
        graph = stream.end_capture()
        del array
        gc.collect()
        later = [cupy.full(1024, 9.0) for _ in range(4)]
        graph.launch()
        stream.synchronize()
        assert [float(one[0]) for one in later] == [9.0] * 4
        assert float(other[0]) == 1.0
        del later, graph
        gc.collect()
        deadline = time.monotonic() + 10
        while pool.used_bytes() >= used:  # the worker that ran the functions drops them
            assert time.monotonic() < deadline, "what the graph has kept is not free again"
            stream.synchronize()


@pytest.mark.parametrize("arguments", [2, 3])
def test_G6_each_of_two_graphs_keeps_memory_that_both_work_on(stream: Stream, arguments: int) -> None:
    pool, given = cuda.MemoryPool(), (stream,)[: arguments - 2]
    with cuda.using_allocator(pool.malloc), stream:
        for _ in range(5):  # objects and captures follow each other at the same addresses
            array, source = cupy.ones(1024), cupy.full(1024, 5.0)
            target, extra = cupy.zeros(1024), cupy.ones(1 << 16)
            graphs = []
            for value in (1, 2):
                stream.begin_capture()
                for _ in range(3):
                    array.data.memset_async(value, array.nbytes, *given)
                    target.data.copy_from_device_async(source.data, source.nbytes, *given)
                if value == 1:
                    extra.data.memset_async(value, extra.nbytes, *given)
                graphs.append(stream.end_capture())
            del array, source, extra
            used = pool.used_bytes()
            graphs.pop(0)
            gc.collect()
            deadline = time.monotonic() + 10
            while pool.used_bytes() >= used:  # what the first graph alone has kept
                assert time.monotonic() < deadline, "what the graph has kept is not free again"
                stream.synchronize()
            later = [cupy.full(1024, 9.0) for _ in range(6)]
            graphs[0].launch()
            stream.synchronize()
            assert [float(one[0]) for one in later] == [9.0] * 6
            assert float(target[0]) == 5.0
            del later, graphs, target


def test_a_pointer_is_filled_with_the_lowest_byte_of_any_number(stream: Stream) -> None:
    with stream:
        array = cupy.zeros(4, "u1")
    for value, want in ((7, 7), (-1, 255), (0x1FE, 254), (2**70 + 3, 3)):
        array.data.memset_async(value, 4, stream)
        stream.synchronize()
        assert array.get().tolist() == [want] * 4
    array.data.memset_async(1, 3.7, stream)
    array.data.memset_async(value=9, size=1, stream=stream)
    stream.synchronize()
    assert array.get().tolist() == [9, 1, 1, 3]
    with pytest.raises(OverflowError, match="size_t"):
        array.data.memset_async(1, -1, stream)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        array.data.memset_async(1, 1 << 40, stream)


def test_a_graph_is_not_copied_and_says_what_it_is(stream: Stream) -> None:
    stream.begin_capture()
    graph = stream.end_capture()
    assert repr(graph) == f"<Graph {graph.graphExec}>"
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle or copy a Graph: it names live work"):
            make(graph)


@pytest.mark.parametrize("raw", [False, True])
def test_G11_an_upload_on_a_stream_that_captures_is_refused(stream: Stream, raw: bool) -> None:
    stream.begin_capture()
    graph = stream.end_capture()
    stream.begin_capture()
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported") as caught:
        if raw:
            runtime.graphUpload(graph.graphExec, stream.ptr)
        else:
            graph.upload(stream)
    assert caught.value.status == 900
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()
