"""Nodes of graphs with conditions on the look-alike driver, and what captures into graphs are made of."""

from __future__ import annotations

import ctypes
import threading
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import pytest
from fakecuda_help import INVALID_VALUE, LIMIT, Driver

RELAXED, ASSIGN_DEFAULT, CONDITIONAL = 2, 1, 13
IF, WHILE, SWITCH = 0, 1, 2
SET, ADD, UPDATE_FAILURE, NOT_SUPPORTED, ILLEGAL_STATE = 1, 0, 910, 801, 401


class Params(Structure):
    """CUgraphNodeParams of a node with a condition."""

    _fields_ = (
        ("type", c_int),
        ("unused", c_int * 3),
        ("handle", c_uint64),
        ("condition", c_int),
        ("size", c_uint32),
        ("graphs", POINTER(c_uint64)),
        ("context", c_uint64),
        ("rest", ctypes.c_byte * 208),
    )


class UpdateResult(Structure):
    """CUgraphExecUpdateResultInfo."""

    _fields_ = (("result", c_int), ("node", c_uint64), ("from_node", c_uint64))


def condition(cuda: Driver, graph: int, kind: int, size: int, value: int, *after: int) -> tuple[int, list[int], int]:
    """Add a node with a condition that each launch begins with; return it, its graphs and the condition."""
    handle = cuda.made("cuGraphConditionalHandleCreate", graph, cuda.context(), value, ASSIGN_DEFAULT)
    params = Params(CONDITIONAL, (0, 0, 0), handle, kind, size, None, cuda.context())
    behind = (c_uint64 * max(1, len(after)))(*after)
    node = cuda.made("cuGraphAddNode", graph, behind, len(after), byref(params))
    assert cuda.asked("cuGraphNodeGetType", node, type=c_int) == CONDITIONAL
    return node, [params.graphs[i] for i in range(size)], handle


def fill(cuda: Driver, graph: int, address: int, value: int) -> None:
    """Capture a fill of 4 bytes into a graph."""
    stream = cuda.stream()
    assert cuda.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, RELAXED) == 0
    assert cuda.cuMemsetD8Async(address, value, 4, stream) == 0
    assert cuda.asked("cuStreamEndCapture", stream) == graph


@pytest.mark.parametrize(
    ("kind", "size", "value", "selected"),
    [
        (IF, 1, 0, None),
        (IF, 1, 1 << 31, 0),
        (IF, 2, 0, 1),
        (IF, 2, 7, 0),
        (WHILE, 1, 0, None),
        (SWITCH, 3, 0, 0),
        (SWITCH, 3, 2, 2),
        (SWITCH, 3, 3, None),
        (SWITCH, 1, 2**32 - 1, None),
    ],
)
def test_the_condition_selects_the_graph_that_runs(
    cuda: Driver, kind: int, size: int, value: int, selected: int | None
) -> None:
    graph, memory, stream = cuda.made("cuGraphCreate", 0), cuda.memory(16), cuda.stream()
    _, graphs, _ = condition(cuda, graph, kind, size, value)
    for i, body in enumerate(graphs):
        fill(cuda, body, memory + 4 * i, i + 1)
        assert cuda.cuGraphDestroy(body) == INVALID_VALUE  # it is the node's
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphDestroy(graph) == 0
    for _ in range(2):
        assert cuda.cuMemsetD8Async(memory, 0, 16, stream) == 0
        assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
        words = [0] * 4 if selected is None else [(i + 1) * (i == selected) for i in range(4)]
        assert cuda.read(memory, 16) == b"".join(bytes([word] * 4) for word in words)
    assert cuda.cuGraphExecDestroy(executable) == 0 and cuda.count("live.graphs") == 0


@pytest.mark.parametrize("conditional", [False, True])
def test_an_executable_with_conditions_is_destroyed_when_its_launches_have_ended(
    silicon: Driver, conditional: bool
) -> None:
    """Measured on a GPU."""
    graph, memory, stream = silicon.made("cuGraphCreate", 0), silicon.memory(16), silicon.stream()
    body = condition(silicon, graph, IF, 1, 1)[1][0] if conditional else graph
    fill(silicon, body, memory, 1)
    executable = silicon.made("cuGraphInstantiateWithFlags", graph, 0)
    hold = silicon.hold(stream)
    assert silicon.cuGraphLaunch(executable, stream) == 0
    assert silicon.waits("cuGraphExecDestroy", executable, on=hold) == conditional
    assert silicon.cuStreamSynchronize(stream) == 0
    assert silicon.read(memory, 4) == b"\1" * 4, "a launch runs whether or not its executable was destroyed"


def test_a_kernel_sets_conditions_and_ends_a_loop(cuda: Driver) -> None:
    graph, memory, stream = cuda.made("cuGraphCreate", 0), cuda.memory(8), cuda.stream()
    loop, (body,), handle = condition(cuda, graph, WHILE, 1, 1)
    _, graphs, choice = condition(cuda, graph, SWITCH, 2, 0, loop)
    for i, chosen in enumerate(graphs):
        fill(cuda, chosen, memory + 4 * i, 5)
    set_condition = cuda.function("set_condition", "u64 u32")
    assert cuda.cuStreamBeginCaptureToGraph(stream, body, None, None, 0, RELAXED) == 0
    assert cuda.launch(set_condition, stream, c_uint64(choice), c_uint32(1)) == 0
    assert cuda.launch(set_condition, stream, c_uint64(handle), c_uint32(0)) == 0
    assert cuda.asked("cuStreamEndCapture", stream) == body
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    for _ in range(2):
        assert cuda.cuMemsetD8Async(memory, 0, 8, stream) == 0
        assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
        assert cuda.read(memory, 8) == bytes(4) + b"\5" * 4


@pytest.mark.parametrize(("kind", "size"), [(IF, 0), (IF, 3), (WHILE, 2), (SWITCH, 0), (3, 1)])
def test_a_node_with_a_condition_has_as_many_graphs_as_its_kind_allows(cuda: Driver, kind: int, size: int) -> None:
    graph = cuda.made("cuGraphCreate", 0)
    handle = cuda.made("cuGraphConditionalHandleCreate", graph, cuda.context(), 0, 0)
    params = Params(CONDITIONAL, (0, 0, 0), handle, kind, size, None, cuda.context())
    node, count = c_uint64(), c_size_t()
    assert cuda.cuGraphAddNode_v2(byref(node), graph, None, None, 0, byref(params)) == INVALID_VALUE
    params.handle, params.condition, params.size = handle + 1, IF, 1
    assert cuda.cuGraphAddNode_v2(byref(node), graph, None, None, 0, byref(params)) == INVALID_VALUE
    assert cuda.cuGraphGetNodes(graph, None, byref(count)) == 0 and count.value == 0


def test_a_capture_tells_its_graph_and_what_comes_next(cuda: Driver) -> None:
    stream, memory = cuda.stream(), cuda.memory(8)
    status, number, graph, after, count = c_int(), c_uint64(), c_uint64(), POINTER(c_uint64)(), c_size_t()
    info = byref(status), byref(number), byref(graph), byref(after), byref(count)
    assert cuda.cuStreamGetCaptureInfo_v2(stream, *info) == 0 and status.value == 0
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    assert cuda.cuStreamGetCaptureInfo_v2(stream, *info) == 0
    assert (status.value, count.value) == (1, 0)
    first = number.value
    assert cuda.cuMemsetD8Async(memory, 1, 4, stream) == 0
    assert cuda.cuMemsetD8Async(memory, 2, 4, stream) == 0
    edges = c_void_p(1)
    assert cuda.cuStreamGetCaptureInfo_v3(stream, *info[:4], byref(edges), byref(count)) == 0
    assert count.value == 1 and ctypes.string_at(edges.value, 8) == bytes(8)
    nodes = (c_uint64 * 2)()
    size = c_size_t(2)
    assert cuda.cuGraphGetNodes(graph.value, nodes, byref(size)) == 0 and after[0] == nodes[1]
    assert cuda.cuGraphDestroy(graph.value) == ILLEGAL_STATE  # a capture adds to it: measured on a GPU
    assert cuda.cuStreamUpdateCaptureDependencies_v2(stream, byref(nodes), None, 1, ADD) == 0
    assert cuda.cuStreamGetCaptureInfo_v2(stream, *info) == 0 and count.value == 2
    assert cuda.cuStreamUpdateCaptureDependencies(stream, None, 0, SET) == 0
    assert cuda.cuMemsetD8Async(memory + 4, 3, 4, stream) == 0
    wrong = (c_uint64 * 1)(7)
    assert cuda.cuStreamUpdateCaptureDependencies(stream, wrong, 1, SET) == INVALID_VALUE
    assert cuda.cuStreamUpdateCaptureDependencies(stream, nodes, 2, ADD) == 0
    ended = cuda.asked("cuStreamEndCapture", stream)
    assert ended == graph.value
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    assert cuda.cuStreamGetCaptureInfo_v2(stream, *info) == 0 and number.value != first
    assert cuda.cuStreamQuery(stream) != 0
    assert cuda.cuStreamGetCaptureInfo_v2(stream, *info) == 0 and status.value == 2
    assert cuda.cuStreamEndCapture(stream, byref(graph)) != 0
    assert cuda.cuGraphDestroy(ended) == 0 and cuda.count("live.graphs") == 0


def test_graphs_as_nodes_updates_and_texts(cuda: Driver, tmp_path: Path) -> None:
    child, graph, memory, stream = (
        cuda.made("cuGraphCreate", 0),
        cuda.made("cuGraphCreate", 0),
        cuda.memory(8),
        cuda.stream(),
    )
    fill(cuda, child, memory, 1)
    node = cuda.made("cuGraphAddChildGraphNode", graph, None, 0, child)
    inside = cuda.asked("cuGraphChildGraphNodeGetGraph", node)
    nodes, count = (c_uint64 * 1)(), c_size_t(1)
    assert cuda.cuGraphGetNodes(child, nodes, byref(count)) == 0
    found = cuda.made("cuGraphNodeFindInClone", nodes[0], inside)
    assert cuda.asked("cuGraphNodeGetType", found, type=c_int) == 2
    assert cuda.cuGraphDestroy(child) == 0
    assert cuda.cuGraphDebugDotPrint(graph, str(tmp_path / "graph.dot").encode(), 0) == 0
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    assert cuda.cuGraphDebugDotPrint(graph, str(tmp_path / "no" / "graph.dot").encode(), 0) == 304
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphUpload(executable, stream) == 0 and cuda.cuGraphUpload(1, stream) == INVALID_VALUE
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert cuda.read(memory, 4) == b"\1" * 4
    other, result = cuda.made("cuGraphCreate", 0), UpdateResult()
    assert cuda.cuGraphExecUpdate_v2(executable, other, byref(result)) == UPDATE_FAILURE and result.result == 2
    fill(cuda, other, memory, 2)
    assert cuda.cuGraphExecUpdate_v2(executable, other, byref(result)) == UPDATE_FAILURE and result.result == 3
    executable = cuda.made("cuGraphInstantiateWithFlags", other, 0)
    again = cuda.made("cuGraphCreate", 0)
    fill(cuda, again, memory, 3)
    assert cuda.cuGraphExecUpdate_v2(executable, again, byref(result)) == 0
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert cuda.read(memory, 4) == b"\3" * 4


def test_objects_are_destroyed_once_when_no_graph_keeps_them(cuda: Driver) -> None:
    gone = threading.Event()
    destroy: Any = CFUNCTYPE(None, c_void_p)(lambda _: gone.set())
    graph, stream = cuda.made("cuGraphCreate", 0), cuda.stream()
    kept = cuda.made("cuUserObjectCreate", None, ctypes.cast(destroy, c_void_p), 1, 1)
    assert cuda.cuGraphRetainUserObject(graph, kept, 1, 1) == 0  # the reference is the graph's now
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuGraphDestroy(graph) == 0
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert not gone.is_set()
    assert cuda.cuGraphExecDestroy(executable) == 0
    assert gone.wait(LIMIT)
    assert cuda.real or cuda.cuUserObjectRelease(kept, 1) == INVALID_VALUE  # a driver reads what was freed
