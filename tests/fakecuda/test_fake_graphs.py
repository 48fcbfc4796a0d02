"""Captures and graphs of the look-alike driver."""

from __future__ import annotations

import ctypes
import threading
from ctypes import (
    POINTER,
    Structure,
    addressof,
    byref,
    c_float,
    c_int,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

import pytest
from fakecuda_help import INVALID_VALUE, LEGACY, LIMIT, NOT_READY, Driver, Word, until

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
UNSUPPORTED, INVALIDATED, UNJOINED, ISOLATION, IMPLICIT, CAPTURED_EVENT = 900, 901, 904, 905, 906, 907
ASSIGN_DEFAULT, CONDITIONAL, IF, ILLEGAL_STATE = 1, 13, 0, 401
SIZE = 1000


def elsewhere(driver: Driver, mode: int, name: str, *args: Any) -> int:
    """Make a call on another thread, whose capture mode was exchanged; return its code."""
    codes: list[int] = []

    def call() -> None:
        driver.context()
        before = c_int(mode)
        assert driver.cuThreadExchangeStreamCaptureMode(byref(before)) == 0 and before.value == GLOBAL
        codes.append(getattr(driver, name)(*args))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(LIMIT)
    return codes[0]


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


def captured(cuda: Driver, stream: int, *, free: bool) -> tuple[int, int]:
    """Return a graph that allocates and fills memory, and its address."""
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    address = cuda.made("cuMemAllocAsync", SIZE, stream)
    assert cuda.cuMemsetD8Async(address, 7, SIZE, stream) == 0
    if free:
        assert cuda.cuMemFreeAsync(address, stream) == 0
        assert cuda.cuMemFreeAsync(address, stream) == INVALID_VALUE
    return cuda.asked("cuStreamEndCapture", stream), address


@pytest.mark.parametrize(
    ("capture", "thread", "code"),
    [
        (GLOBAL, GLOBAL, UNSUPPORTED),
        (GLOBAL, THREAD_LOCAL, 0),
        (GLOBAL, RELAXED, 0),
        (THREAD_LOCAL, GLOBAL, 0),
        (RELAXED, GLOBAL, 0),
    ],
)
def test_an_unsafe_call_of_another_thread(cuda: Driver, capture: int, thread: int, code: int) -> None:
    stream, event = cuda.stream(), cuda.event()
    assert cuda.cuStreamBeginCapture_v2(stream, capture) == 0
    assert elsewhere(cuda, thread, "cuEventQuery", event) == code
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == (2 if code else 1)
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == (INVALIDATED if code else 0)
    assert cuda.cuEventQuery(event) == 0


def test_what_is_captured_does_not_run_and_waits_join(cuda: Driver) -> None:
    stream, joined, free = cuda.stream(), cuda.stream(), cuda.stream()
    event, memory = cuda.event(), cuda.memory(16)
    assert cuda.cuStreamBeginCapture_v2(stream, THREAD_LOCAL) == 0
    assert cuda.cuMemsetD8Async(memory, 7, 16, stream) == 0
    assert cuda.cuEventRecord(event, stream) == 0
    mode = c_int(RELAXED)
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    assert cuda.cuStreamQuery(free) in (0, NOT_READY)
    assert cuda.cuStreamWaitEvent(joined, event, 0) == 0
    assert cuda.asked("cuStreamIsCapturing", joined, type=c_int) == 1
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == 0
    assert cuda.asked("cuStreamIsCapturing", joined, type=c_int) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, 16) != b"\7" * 16
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(c_int(GLOBAL))) == 0


@pytest.mark.parametrize("capture", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("thread", [GLOBAL, RELAXED])
@pytest.mark.parametrize(
    ("question", "breaks"), [("cuEventQuery", True), ("cuEventElapsedTime", False), ("cuEventElapsedTime_v2", False)]
)
def test_a_question_about_a_captured_event(
    cuda: Driver, capture: int, thread: int, question: str, breaks: bool
) -> None:
    """A query breaks the capture in each mode, that of the thread included; times do not: measured on a GPU."""
    stream, other, event, memory = cuda.stream(), cuda.stream(), cuda.event(0), cuda.memory(16)

    def ask() -> int:
        if question == "cuEventQuery":
            return int(cuda.cuEventQuery(event))
        return int(getattr(cuda, question)(byref(c_float()), event, event))

    assert cuda.cuStreamBeginCapture_v2(stream, capture) == 0
    assert cuda.cuMemsetD8Async(memory, 1, 16, stream) == 0
    assert cuda.cuEventRecord(event, stream) == 0
    mode = c_int(thread)
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == 1
    assert ask() == CAPTURED_EVENT
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == (2 if breaks else 1)
    if breaks:
        assert cuda.cuStreamWaitEvent(other, event, 0) == INVALID_VALUE
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == (INVALIDATED if breaks else 0)
    assert ask() == INVALID_VALUE
    assert cuda.cuEventRecord(event, other) == 0
    assert cuda.cuEventSynchronize(event) == 0 and ask() == 0


def test_the_legacy_stream_and_the_context_conflict_with_a_capture(cuda: Driver) -> None:
    blocking, event = cuda.stream(flags=0), cuda.event()
    assert cuda.cuStreamBeginCapture_v2(blocking, RELAXED) == 0
    assert cuda.cuEventRecord(event, LEGACY) == IMPLICIT
    assert cuda.cuStreamEndCapture(blocking, byref(c_uint64())) == INVALIDATED
    stream = cuda.stream()
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    assert cuda.cuCtxRecordEvent(cuda.context(), event) == UNSUPPORTED
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == INVALIDATED


# -- graphs ----------------------------------------------------------------------


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


def test_work_reaches_the_memory_between_the_two_nodes_only(cuda: Driver) -> None:
    """Measured on a GPU: what reaches it elsewhere is refused at the call."""
    stream = cuda.stream()
    graph, address = captured(cuda, stream, free=True)
    executable = cuda.made("cuGraphInstantiateWithFlags", graph, 0)
    assert cuda.cuMemsetD8Async(address, 1, 8, stream) == INVALID_VALUE
    assert cuda.cuGraphLaunch(executable, stream) == 0 and cuda.cuStreamSynchronize(stream) == 0
    assert cuda.cuMemsetD8Async(address, 1, 8, stream) == INVALID_VALUE
    assert cuda.cuStreamSynchronize(stream) == 0


def test_a_graph_to_which_a_capture_adds_is_not_destroyed(cuda: Driver) -> None:
    """Measured on a GPU."""
    graph, stream = cuda.made("cuGraphCreate", 0), cuda.stream()
    assert cuda.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, RELAXED) == 0
    assert cuda.cuGraphDestroy(graph) == ILLEGAL_STATE
    assert cuda.asked("cuStreamEndCapture", stream) == graph
    assert cuda.cuGraphDestroy(graph) == 0 and cuda.count("live.graphs") == 0
