"""Graphs of the look-alike driver: what captures make, and how launches run it."""

from __future__ import annotations

from ctypes import Structure, addressof, byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p

from fakecuda_help import INVALID_VALUE, NOT_READY, Driver, Word, until

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


class Ops(Structure):
    """CUstreamBatchMemOpParams."""

    _fields_ = [("operation", c_int), ("room", c_int), ("address", c_uint64), ("value", c_uint64), ("flags", c_int),
                ("alias", c_uint64), ("unused", c_uint64)]  # fmt: skip


class OpsNode(Structure):
    """CUDA_BATCH_MEM_OP_NODE_PARAMS."""

    _fields_ = [("context", c_uint64), ("count", c_int), ("list", c_void_p), ("flags", c_int)]


class Memset(Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [("to", c_uint64), ("pitch", c_size_t), ("value", c_uint32), ("element", c_uint32),
                ("width", c_size_t), ("height", c_size_t)]  # fmt: skip


class Kernel(Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [("function", c_uint64), ("size", c_uint32 * 7), ("parameters", c_void_p), ("extra", c_void_p),
                ("kernel", c_uint64), ("context", c_uint64)]  # fmt: skip


def added(driver: Driver, kind: str, graph: int, after: list[int], *more: object) -> int:
    node = c_uint64()
    listed = (c_uint64 * max(1, len(after)))(*after)
    assert getattr(driver, kind)(byref(node), graph, listed, len(after), *more) == 0
    return node.value


def test_a_branch_that_waits_stops_no_other_branch(cuda: Driver) -> None:
    """A graph that was made node by node: a wait, and beside it a fill and a kernel."""
    context, memory, word = cuda.context(), cuda.memory(16), Word(cuda)
    cuda.holds.append(word)
    stream = cuda.stream()
    assert cuda.cuMemsetD8Async(memory, 0, 16, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    graph = cuda.made("cuGraphCreate", 0)
    root = added(cuda, "cuGraphAddEmptyNode", graph, [])
    ops = Ops(1, 0, word.address, 1, 1)
    held = added(cuda, "cuGraphAddBatchMemOpNode", graph, [root], byref(OpsNode(context, 1, addressof(ops), 0)))
    fill = added(cuda, "cuGraphAddMemsetNode", graph, [root], byref(Memset(memory, 0, 7, 1, 4, 1)), context)
    arguments = c_uint64(memory + 4), c_uint32(9), c_uint32(1)
    listed = (c_void_p * 3)(*map(addressof, arguments))
    kernel = Kernel(cuda.function("fill_u32", "u64 u32 u32"), (c_uint32 * 7)(1, 1, 1, 1, 1, 1, 0), addressof(listed))
    after_fill = added(cuda, "cuGraphAddKernelNode_v2", graph, [fill], byref(kernel))
    last = added(
        cuda, "cuGraphAddMemsetNode", graph, [held, after_fill], byref(Memset(memory + 8, 0, 5, 1, 4, 1)), context
    )
    assert len({root, held, fill, after_fill, last}) == 5
    assert edges(cuda, graph) == [(0, 1), (0, 2), (1, 4), (2, 3), (3, 4)]
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphLaunch(executable, stream) == 0
    until(lambda: cuda.read(memory, 8) == b"\7" * 4 + b"\x09\0\0\0", "the branch beside the wait")
    assert cuda.read(memory + 8, 4) == bytes(4) and cuda.cuStreamQuery(stream) == NOT_READY
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory + 8, 4) == b"\5" * 4
    assert cuda.cuGraphExecDestroy(executable) == 0 == cuda.cuGraphDestroy(graph)


def test_a_node_comes_after_nodes_of_its_own_graph(cuda: Driver) -> None:
    graph, other, node = cuda.made("cuGraphCreate", 0), cuda.made("cuGraphCreate", 0), c_uint64()
    stranger = added(cuda, "cuGraphAddEmptyNode", other, [])
    for listed in ((c_uint64 * 1)(stranger), (c_uint64 * 1)(77)):
        assert cuda.cuGraphAddEmptyNode(byref(node), graph, listed, 1) == INVALID_VALUE
    assert cuda.cuGraphAddEmptyNode(byref(node), 77, None, 0) == INVALID_VALUE
    assert edges(cuda, graph) == [] and cuda.cuGraphDestroy(graph) == 0 == cuda.cuGraphDestroy(other)
