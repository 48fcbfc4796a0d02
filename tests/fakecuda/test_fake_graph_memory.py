"""Memory of graphs on the look-alike driver: nodes that allocate and free, and figures of devices; spec 6.9."""

from __future__ import annotations

import ctypes
from ctypes import Structure, byref, c_int, c_size_t, c_uint64, c_void_p

import pytest
from fakecuda_help import INVALID_VALUE, NOT_SUPPORTED, Driver
from test_fake_conditions import IF, UpdateResult, condition

RELAXED, AUTO_FREE, UPDATE_FAILURE = 2, 1, 910
USED, USED_HIGH, RESERVED, RESERVED_HIGH = range(4)
SIZE = 1000


class Params(Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = (
        ("kind", c_int),
        ("handles", c_int),
        ("location", c_int),
        ("device", c_int),
        ("rest", ctypes.c_byte * 72),
        ("access", c_void_p),
        ("access_count", c_size_t),
        ("size", c_size_t),
        ("address", c_uint64),
    )


def params(size: int = SIZE, device: int = 0) -> Params:
    assert ctypes.sizeof(Params) == 120
    return Params(kind=1, location=1, device=device, size=size)


def after(*nodes: int) -> tuple[ctypes.Array[c_uint64], int]:
    return (c_uint64 * max(1, len(nodes)))(*nodes), len(nodes)


def allocating(cuda: Driver, graph: int) -> tuple[int, int]:
    """Add a node that allocates, and return it and the address."""
    made = params()
    return cuda.made("cuGraphAddMemAllocNode", graph, *after(), byref(made)), made.address


def captured(cuda: Driver, stream: int, *, free: bool) -> tuple[int, int]:
    """Return a graph that allocates and fills memory, and its address."""
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    address = cuda.made("cuMemAllocAsync", SIZE, stream)
    assert cuda.cuMemsetD8Async(address, 7, SIZE, stream) == 0
    if free:
        assert cuda.cuMemFreeAsync(address, stream) == 0
        assert cuda.cuMemFreeAsync(address, stream) == INVALID_VALUE
    return cuda.asked("cuStreamEndCapture", stream), address


def kinds(cuda: Driver, graph: int) -> list[int]:
    count = c_size_t(8)
    nodes = (c_uint64 * 8)()
    assert cuda.cuGraphGetNodes(graph, nodes, byref(count)) == 0
    return [cuda.asked("cuGraphNodeGetType", node, type=c_int) for node in nodes[: count.value]]


def figure(cuda: Driver, attribute: int) -> int:
    return int(cuda.asked("cuDeviceGetGraphMemAttribute", 0, attribute))


def test_a_capture_makes_nodes_of_allocations_and_frees(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=True)
    assert kinds(cuda, graph) == [10, 2, 11]
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    for _ in range(2):
        assert cuda.cuGraphLaunch(executable, stream) == 0
        assert cuda.cuStreamSynchronize(stream) == 0
    assert cuda.cuMemFreeAsync(address, stream) == INVALID_VALUE  # the graph has freed it
    assert cuda.cuGraphExecDestroy(executable) == 0 and cuda.cuGraphDestroy(graph) == 0
    assert cuda.count("live.memory") == 0


def test_nodes_are_added_and_read(cuda: Driver) -> None:
    graph = cuda.made("cuGraphCreate", 0)
    node, address = allocating(cuda, graph)
    free = cuda.made("cuGraphAddMemFreeNode", graph, *after(node), address)
    assert kinds(cuda, graph) == [10, 11]
    found, freed = Params(), c_uint64()
    assert cuda.cuGraphMemAllocNodeGetParams(node, byref(found)) == 0
    assert (found.size, found.address, found.device, found.location) == (SIZE, address, 0, 1)
    assert cuda.cuGraphMemFreeNodeGetParams(free, byref(freed)) == 0 and freed.value == address
    assert cuda.cuGraphMemAllocNodeGetParams(free, byref(found)) == INVALID_VALUE
    assert cuda.cuGraphMemFreeNodeGetParams(node, byref(freed)) == INVALID_VALUE
    place = c_uint64()
    # Memory that is no graph's, a second free, and what no pool is of.
    assert cuda.cuGraphAddMemFreeNode(byref(place), graph, *after(), cuda.memory(8)) == INVALID_VALUE
    assert cuda.cuGraphAddMemFreeNode(byref(place), graph, *after(), address) == INVALID_VALUE
    assert cuda.cuGraphAddMemAllocNode(byref(place), graph, *after(), byref(params(0))) == INVALID_VALUE
    assert cuda.cuGraphAddMemAllocNode(byref(place), graph, *after(), byref(params(8, 99))) == INVALID_VALUE
    assert cuda.cuGraphAddMemAllocNode(byref(place), graph, *after(), byref(Params(size=8))) == INVALID_VALUE


def test_work_reaches_the_memory_between_the_two_nodes_only(cuda: Driver) -> None:
    """Measured on a GPU: what reaches it elsewhere is refused at the call."""
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=True)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuMemsetD8Async(address, 1, 8, stream) == INVALID_VALUE
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert cuda.cuMemsetD8Async(address, 1, 8, stream) == INVALID_VALUE
    assert cuda.cuStreamSynchronize(stream) == 0


@pytest.mark.parametrize("free", ["cuMemFreeAsync", "cuMemFree_v2"])
def test_what_a_launch_leaves_is_the_callers_until_it_is_freed(free: str, cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    freeing = (address, stream) if free == "cuMemFreeAsync" else (address,)
    assert getattr(cuda, free)(*freeing) == INVALID_VALUE  # nothing has allocated it
    for _ in range(2):
        assert cuda.cuGraphLaunch(executable, stream) == 0
        assert cuda.cuGraphLaunch(executable, stream) == INVALID_VALUE  # it was not freed
        assert cuda.cuStreamSynchronize(stream) == 0
        assert cuda.read(address, SIZE) == b"\7" * SIZE
        assert getattr(cuda, free)(*freeing) == 0
        assert getattr(cuda, free)(*freeing) == INVALID_VALUE
    assert cuda.cuStreamSynchronize(stream) == 0


def test_a_free_in_stream_order_allows_the_next_launch_at_once(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    word = cuda.hold(stream)
    for _ in range(3):
        assert cuda.cuGraphLaunch(executable, stream) == 0
        assert cuda.cuMemFreeAsync(address, stream) == 0
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0


def test_an_executable_may_free_what_the_launch_before_has_left(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, AUTO_FREE)
    for _ in range(3):
        assert cuda.cuGraphLaunch(executable, stream) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(address, SIZE) == b"\7" * SIZE


def test_another_graph_may_free_the_memory(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    other = cuda.made("cuGraphCreate", 0)
    cuda.made("cuGraphAddMemFreeNode", other, *after(), address)
    first, second = (cuda.made("cuGraphInstantiateWithFlags", one, 0) for one in (graph, other))
    assert cuda.cuGraphLaunch(second, stream) == INVALID_VALUE  # it is not allocated
    for _ in range(2):
        assert cuda.cuGraphLaunch(first, stream) == 0 and cuda.cuGraphLaunch(second, stream) == 0
    assert cuda.cuStreamSynchronize(stream) == 0


def test_memory_that_was_not_freed_outlives_its_graph(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert cuda.cuGraphExecDestroy(executable) == 0 and cuda.cuGraphDestroy(graph) == 0
    assert cuda.read(address, SIZE) == b"\7" * SIZE and cuda.count("live.memory") == 1
    word = cuda.hold(stream)
    assert cuda.cuMemsetD8Async(address, 1, 8, stream) == 0
    assert cuda.cuMemFreeAsync(address, stream) == 0
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.count("live.memory") == 0


def test_a_graph_that_goes_before_a_pending_free_leaves_it_the_memory(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    word = cuda.hold(stream)
    assert cuda.cuMemsetD8Async(address, 1, 8, stream) == 0
    assert cuda.cuMemFreeAsync(address, stream) == 0
    assert cuda.cuGraphExecDestroy(executable) == 0 and cuda.cuGraphDestroy(graph) == 0
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.count("live.memory") == 0


def test_what_graphs_with_memory_cannot_do(cuda: Driver) -> None:
    stream = cuda.stream()
    graph = cuda.made("cuGraphCreate", 0)
    node, _ = allocating(cuda, graph)
    outer = cuda.made("cuGraphCreate", 0)
    place = c_uint64()
    assert cuda.cuGraphAddChildGraphNode(byref(place), outer, *after(), graph) == NOT_SUPPORTED
    assert cuda.cuGraphDestroyNode(node) == NOT_SUPPORTED
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, AUTO_FREE)
    assert cuda.cuGraphInstantiateWithFlags(byref(place), graph, 0) == NOT_SUPPORTED
    result = UpdateResult()
    assert cuda.cuGraphExecUpdate_v2(executable, outer, byref(result)) == UPDATE_FAILURE and result.result == 2
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    assert cuda.cuGraphLaunch(executable, stream) == NOT_SUPPORTED
    cuda.asked("cuStreamEndCapture", stream)
    assert cuda.cuGraphExecDestroy(executable) == 0
    cuda.made("cuGraphInstantiateWithFlags", graph, 0)  # after the other one
    _, (body,), _ = condition(cuda, outer, IF, 1, 1)
    assert cuda.cuGraphAddMemAllocNode(byref(place), body, *after(), byref(params())) == NOT_SUPPORTED


def test_figures_of_a_device(cuda: Driver) -> None:
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=False)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert [figure(cuda, one) for one in range(4)] == [0, 0, 0, 0]
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    held = figure(cuda, USED)
    assert held >= SIZE and [figure(cuda, one) for one in range(4)] == [held] * 4
    assert cuda.cuDeviceGraphMemTrim(0) == 0 and figure(cuda, RESERVED) == held
    assert cuda.cuMemFreeAsync(address, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert [figure(cuda, one) for one in range(4)] == [held] * 4, "it is kept for the next launch"
    assert cuda.cuDeviceGraphMemTrim(0) == 0
    assert [figure(cuda, one) for one in range(4)] == [0, held, 0, held]
    zero = c_uint64(0)
    assert cuda.cuDeviceSetGraphMemAttribute(0, USED_HIGH, byref(zero)) == 0
    assert cuda.cuDeviceSetGraphMemAttribute(0, RESERVED_HIGH, byref(zero)) == 0
    assert [figure(cuda, one) for one in range(4)] == [0, 0, 0, 0]
    for attribute, value in ((USED, 0), (RESERVED, 0), (USED_HIGH, 1), (9, 0)):
        assert cuda.cuDeviceSetGraphMemAttribute(0, attribute, byref(c_uint64(value))) == INVALID_VALUE
    assert cuda.cuDeviceGetGraphMemAttribute(0, 9, byref(zero)) == INVALID_VALUE
    assert cuda.cuDeviceGraphMemTrim(99) == 101


def test_memory_of_a_capture_that_fails_goes_back(cuda: Driver) -> None:
    stream = cuda.stream()
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    cuda.made("cuMemAllocAsync", SIZE, stream)
    assert cuda.cuStreamSynchronize(stream) == 900
    place = c_uint64()
    assert cuda.cuMemAllocAsync(byref(place), SIZE, stream) == 901
    assert cuda.cuStreamEndCapture(stream, byref(place)) == 901
    assert cuda.count("live.memory") == 0 and cuda.count("live.graphs") == 0
