"""Graphs of the look-alike driver: what captures make, and how launches run it."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_uint64

from fakecuda_help import INVALID_VALUE, Driver

RELAXED = 2
UNJOINED, ISOLATION = 904, 905


def edges(driver: Driver, graph: int) -> list[tuple[int, int]]:
    """Return the edges of a graph as pairs of indices of its nodes."""
    count = c_size_t()
    assert driver.cuGraphGetNodes(graph, None, byref(count)) == 0
    nodes = (c_uint64 * count.value)()
    assert driver.cuGraphGetNodes(graph, nodes, byref(count)) == 0
    number = {node: i for i, node in enumerate(nodes)}
    assert driver.cuGraphGetEdges(graph, None, None, byref(count)) == 0
    start, stop = (c_uint64 * count.value)(), (c_uint64 * count.value)()
    assert driver.cuGraphGetEdges(graph, start, stop, byref(count)) == 0
    return sorted((number[a], number[b]) for a, b in zip(start, stop, strict=True))


def test_forks_and_joins_are_edges_and_each_launch_runs_the_nodes(cuda: Driver) -> None:
    first, second, event, joined = cuda.stream(), cuda.stream(), cuda.event(), cuda.event()
    memory = cuda.memory(32)
    assert cuda.cuMemsetD8Async(memory, 0, 32, first) == 0 and cuda.cuStreamSynchronize(first) == 0
    assert cuda.cuStreamBeginCapture_v2(first, RELAXED) == 0
    assert cuda.cuMemsetD8Async(memory, 1, 8, first) == 0
    assert cuda.cuEventRecord(event, first) == 0 and cuda.cuStreamWaitEvent(second, event, 0) == 0
    assert cuda.cuMemsetD8Async(memory + 8, 2, 8, second) == 0
    assert cuda.cuMemsetD8Async(memory + 16, 3, 8, first) == 0
    assert cuda.cuEventRecord(joined, second) == 0 and cuda.cuStreamWaitEvent(first, joined, 0) == 0
    assert cuda.cuMemcpyDtoDAsync_v2(memory + 24, memory + 8, 8, first) == 0
    graph = cuda.asked("cuStreamEndCapture", first)
    assert edges(cuda, graph) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert cuda.read(memory, 32) == bytes(32)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphDestroy(graph) == 0 and cuda.cuGraphDestroy(graph) == INVALID_VALUE
    for _ in range(2):
        assert cuda.cuMemsetD8Async(memory, 0, 32, second) == 0
        assert cuda.cuGraphLaunch(executable, second) == 0 and cuda.cuStreamSynchronize(second) == 0
        assert cuda.read(memory, 32) == b"\1" * 8 + b"\2" * 8 + b"\3" * 8 + b"\2" * 8
    assert cuda.cuGraphExecDestroy(executable) == 0
    assert cuda.cuGraphLaunch(executable, second) == INVALID_VALUE
    assert cuda.count("live.graphs") == 0 and cuda.count("live.executables") == 0


def test_work_that_is_not_joined_fails_the_end(cuda: Driver) -> None:
    first, second, event, memory = cuda.stream(), cuda.stream(), cuda.event(), cuda.memory(8)
    assert cuda.cuStreamBeginCapture_v2(first, RELAXED) == 0
    assert cuda.cuEventRecord(event, first) == 0 and cuda.cuStreamWaitEvent(second, event, 0) == 0
    assert cuda.cuMemsetD8Async(memory, 1, 8, second) == 0
    graph = c_uint64(7)
    assert cuda.cuStreamEndCapture(first, byref(graph)) == UNJOINED and graph.value == 0
    assert cuda.cuStreamSynchronize(second) == 0


def test_a_capture_cannot_wait_for_an_event_from_before(cuda: Driver) -> None:
    stream, event = cuda.stream(), cuda.event()
    assert cuda.cuEventRecord(event, stream) == 0
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    assert cuda.cuStreamWaitEvent(stream, event, 0) == ISOLATION
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) != 0
    assert cuda.cuStreamSynchronize(stream) == 0
