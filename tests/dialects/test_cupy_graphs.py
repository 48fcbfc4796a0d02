"""cupy's captures and graphs."""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import cupy
from halstream.cupy import cuda
from halstream.cupy.cuda import Graph, Stream, runtime

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


@pytest.fixture
def stream() -> Iterator[Stream]:
    """Return a non-blocking stream that runs functions again after the test."""
    s = Stream(non_blocking=True)
    yield s
    ran: list[int] = []
    assert s.is_capturing() is False
    s.launch_host_func(ran.append, 1)
    s.synchronize()
    assert ran == [1]


@pytest.mark.row(43)
@pytest.mark.row(44)
def test_only_the_stream_that_captures_is_capturing(stream: Stream) -> None:
    assert stream.is_capturing() is False
    stream.begin_capture()
    assert stream.is_capturing() is True
    assert Stream.null.is_capturing() is False
    assert isinstance(stream.end_capture(), Graph)
    assert stream.is_capturing() is False


@pytest.mark.row(42)
@pytest.mark.row(46)
@pytest.mark.row(47)
def test_a_captured_function_runs_once_for_each_launch_on_any_stream(stream: Stream) -> None:
    ran: list[str] = []
    stream.begin_capture()
    stream.launch_host_func(lambda arg: ran.append(arg["text"]), {"text": "x"})
    graph = stream.end_capture()
    gc.collect()
    assert ran == []
    other = Stream(non_blocking=True)
    graph.upload(other)
    graph.launch(other)
    other.synchronize()
    assert ran == ["x"]
    with stream:
        graph.launch()
        stream.synchronize()
    assert ran == ["x", "x"]
    assert "call" in graph.debug_dot_str(runtime.cudaGraphDebugDotFlagsVerbose)
    assert graph.graph and graph.graphExec
    with pytest.raises(AttributeError):
        graph.graph = 1  # type: ignore[misc]


@pytest.mark.row(48)
def test_fork_and_join_capture_both_streams(stream: Stream) -> None:
    ran: list[str] = []
    side, begun, ended = Stream(non_blocking=True), cuda.Event(), cuda.Event()
    stream.begin_capture()
    stream.launch_host_func(ran.append, "first")
    stream.record(begun)
    side.wait_event(begun)
    assert side.is_capturing()
    side.launch_host_func(ran.append, "side")
    side.record(ended)
    stream.wait_event(ended)
    stream.launch_host_func(ran.append, "last")
    graph = stream.end_capture()
    assert not stream.is_capturing()
    assert not side.is_capturing()
    graph.launch(side)
    side.synchronize()
    assert ran == ["first", "side", "last"]


@pytest.mark.row(45)
def test_a_launch_without_a_stream_is_on_the_current_one(stream: Stream, hold: Callable[[Any], Any]) -> None:
    ran: list[int] = []
    stream.begin_capture()
    stream.launch_host_func(ran.append, 1)
    graph = stream.end_capture()
    gate = hold(stream)  # which does not hold the null stream up
    graph.launch()
    Stream.null.synchronize()
    assert ran == [1]
    gate.open()


@pytest.mark.row(50)
@pytest.mark.row(51)
def test_the_null_stream_cannot_be_asked_while_a_blocking_stream_captures() -> None:
    s = Stream()
    s.begin_capture()
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureImplicit"):
        Stream.null.is_capturing()
    graph = s.end_capture()
    assert Stream.null.is_capturing() is False
    graph.launch(s)
    s.synchronize()


@pytest.mark.row(52)
@pytest.mark.row(53)
def test_a_synchronize_invalidates_the_capture(stream: Stream) -> None:
    stream.begin_capture()
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureUnsupported"):
        stream.synchronize()
    for question in (stream.is_capturing, lambda: runtime.streamIsCapturing(stream.ptr)):
        with pytest.raises(RuntimeError, match="invalidated") as caught:
            question()
        assert type(caught.value) is RuntimeError
    with pytest.raises(runtime.CUDARuntimeError, match=r"StreamCaptureInvalidated.*at .*test_cupy_graphs.py:"):
        stream.end_capture()
    assert not stream.is_capturing()
    stream.synchronize()


@pytest.mark.row(57)
def test_asking_whether_the_stream_is_done_invalidates_the_capture(stream: Stream) -> None:
    stream.begin_capture()
    assert stream.done is False
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()


@pytest.mark.row(55)
def test_the_end_on_a_stream_that_joined_invalidates_the_capture(stream: Stream) -> None:
    side, event = Stream(non_blocking=True), cuda.Event()
    stream.begin_capture()
    stream.record(event)
    side.wait_event(event)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureUnmatched"):
        side.end_capture()
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()
    assert not side.is_capturing()


def test_a_stream_that_was_not_joined_fails_the_end(stream: Stream) -> None:
    side, event = Stream(non_blocking=True), cuda.Event()
    stream.begin_capture(runtime.streamCaptureModeGlobal)
    stream.record(event)
    side.wait_event(event)
    side.launch_host_func(print, "never")
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureUnjoined"):
        stream.end_capture()
    side.synchronize()


def test_a_graph_lists_the_host_functions_of_all_streams_of_its_capture(stream: Stream) -> None:
    ran: list[str] = []
    side, fork, join = Stream(non_blocking=True), cuda.Event(), cuda.Event()
    arg, other = {"text": "first"}, ["side"]
    stream.begin_capture()
    stream.launch_host_func(ran.extend, arg)
    stream.launch_host_func(ran.append, "last")
    stream.record(fork)
    side.wait_event(fork)
    side.launch_host_func(ran.extend, other)
    side.record(join)
    stream.wait_event(join)
    graph = stream.end_capture()
    listed = graph.host_funcargs
    assert [function for function, _ in listed] == [ran.extend, ran.append, ran.extend]
    assert listed[0][1] is arg
    assert listed[2][1] is other
    listed.clear()  # is a list of its own
    graph.launch(stream)
    stream.synchronize()
    assert sorted(ran) == ["last", "side", "text"]
    assert len(graph.host_funcargs) == 3
    with pytest.raises(AttributeError):
        graph.host_funcargs = None  # type: ignore[misc]


@pytest.mark.parametrize("name", ["add_callback", "streamAddCallback"])
def test_G4_a_callback_invalidates_the_capture(stream: Stream, name: str) -> None:
    """Unlike a host function, which becomes a node."""
    ran: list[object] = []
    calls: dict[str, Callable[[], None]] = {
        "add_callback": lambda: stream.add_callback(lambda *args: ran.append(args), 5),
        "streamAddCallback": lambda: runtime.streamAddCallback(stream.ptr, lambda *args: ran.append(args), 5),
    }
    stream.begin_capture(runtime.streamCaptureModeRelaxed)
    with pytest.raises(
        runtime.CUDARuntimeError, match=rf"StreamCaptureUnsupported.*{name}.*launch_host_func"
    ) as caught:
        calls[name]()
    assert caught.value.status == 900
    with pytest.raises(RuntimeError, match="invalidated"):
        stream.is_capturing()
    with pytest.raises(runtime.CUDARuntimeError, match="StreamCaptureInvalidated") as caught:
        calls[name]()
    assert caught.value.status == 901
    with pytest.raises(runtime.CUDARuntimeError, match=rf'at .*test_cupy_graphs.py:.*"{name}"'):
        stream.end_capture()
    calls[name]()
    stream.synchronize()
    assert len(ran) == 1


def test_a_graph_without_host_functions_lists_none(stream: Stream) -> None:
    stream.begin_capture()
    assert stream.end_capture().host_funcargs == []


def test_an_external_wait_is_for_the_record_before_each_launch(stream: Stream, hold: Callable[[Any], Any]) -> None:
    ran: list[str] = []
    outside, event = Stream(non_blocking=True), cuda.Event()
    event.record(outside)
    stream.begin_capture()
    runtime.streamWaitEvent(stream.ptr, event.ptr, 1)  # an ordinary wait would be for work outside of the capture
    stream.launch_host_func(ran.append, "graph")
    graph = stream.end_capture()
    for _ in range(2):
        gate = hold(outside)
        outside.launch_host_func(ran.append, "outside")
        event.record(outside)
        graph.launch(stream)
        gate.open()
        stream.synchronize()
    assert ran == ["outside", "graph"] * 2


def test_an_external_wait_outside_of_captures_and_other_flags_are_refused(stream: Stream) -> None:
    event = cuda.Event()
    for flags in (1, 2, 3):
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
            runtime.streamWaitEvent(stream.ptr, event.ptr, flags)
    stream.begin_capture()
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.streamWaitEvent(stream.ptr, event.ptr, 2)
    stream.end_capture()


def test_the_functions_of_runtime_capture_launch_and_destroy_by_number(stream: Stream, tmp_path: Path) -> None:
    ran: list[int] = []
    runtime.streamBeginCapture(stream.ptr)
    assert runtime.streamIsCapturing(stream.ptr) is True
    runtime.launchHostFunc(stream.ptr, ran.append, 5)
    graph = runtime.streamEndCapture(stream.ptr)
    assert runtime.streamIsCapturing(stream.ptr) is False
    run = runtime.graphInstantiate(graph)
    runtime.graphDebugDotPrint(graph, str(tmp_path / "graph.dot"), runtime.cudaGraphDebugDotFlagsVerbose)
    assert "call" in (tmp_path / "graph.dot").read_text()
    runtime.graphDestroy(graph)
    runtime.graphUpload(run, stream.ptr)
    for _ in range(2):
        runtime.graphLaunch(run, stream.ptr)
    runtime.graphExecDestroy(run)
    stream.synchronize()
    assert ran == [5, 5]


def test_numbers_of_other_objects_and_destroyed_ones_are_refused(stream: Stream, tmp_path: Path) -> None:
    runtime.streamBeginCapture(stream.ptr, runtime.streamCaptureModeGlobal)
    graph = runtime.streamEndCapture(stream.ptr)
    run = runtime.graphInstantiate(graph)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorOperatingSystem"):
        runtime.graphDebugDotPrint(graph, str(tmp_path / "no" / "folder"), 0)
    runtime.graphDestroy(graph)
    for wrong in (graph, run, 0, -1, 2**62):
        for call in (runtime.graphInstantiate, runtime.graphDestroy):
            with pytest.raises(runtime.CUDARuntimeError):
                call(wrong)
    runtime.graphExecDestroy(run)
    for wrong in (run, graph, 0):
        for launch in (runtime.graphLaunch, runtime.graphUpload):
            with pytest.raises(runtime.CUDARuntimeError):
                launch(wrong, stream.ptr)
        with pytest.raises(runtime.CUDARuntimeError):
            runtime.graphExecDestroy(wrong)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorIllegalState"):
        runtime.streamEndCapture(stream.ptr)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        runtime.streamBeginCapture(stream.ptr, 3)


HOST_COPIES: dict[str, Any] = {
    "get": lambda x: x.get(),
    "bool": lambda x: bool(x.sum() > 0),
    "asarray": lambda x: cupy.asarray([1.0]),
    "copy_to_host": lambda x: x.data.copy_to_host(_HOST.ctypes.data, 8),
    "copy_from_host": lambda x: x.data.copy_from_host(_HOST.ctypes.data, 8),
    "copy_from_device": lambda x: x.data.copy_from_device(x.data, 0),
    "memset": lambda x: x.data.memset(0, 8),
    "copy_to_host_async": lambda x: x.data.copy_to_host_async(_HOST.ctypes.data, 8),
    "copy_from_host_async": lambda x: x.data.copy_from_host_async(_HOST.ctypes.data, 8),
}
_HOST = np.zeros(8)


@pytest.mark.row(56)
@pytest.mark.row(58)
@pytest.mark.parametrize("name", HOST_COPIES)
def test_a_copy_that_needs_the_host_is_refused_and_the_capture_goes_on(stream: Stream, name: str) -> None:
    x, y = cupy.ones(4), cupy.zeros(4)
    cuda.Stream.null.synchronize()
    with stream:
        stream.begin_capture()
        with pytest.raises(RuntimeError, match=rf"stream {stream.index} is capturing.*before the capture begins"):
            HOST_COPIES[name](x)
        y += 3 * x
        graph = stream.end_capture()
        graph.upload()
        graph.launch()
    stream.synchronize()
    assert y.get().tolist() == [3.0] * 4


@pytest.mark.row(59)
@pytest.mark.parametrize("call", [cupy.matmul, operator.matmul])
def test_a_function_of_cublas_is_refused_and_the_capture_goes_on(stream: Stream, call: Any) -> None:
    x = cupy.ones((2, 2))
    with stream:
        stream.begin_capture()
        with pytest.raises(NotImplementedError, match="cuBLAS"):
            call(x, x)
        stream.end_capture()
    stream.synchronize()


def test_nodes_of_arithmetic_have_the_names_of_kernels_and_verbose_text_has_what_they_use(stream: Stream) -> None:
    x = cupy.ones(4)
    with stream:
        stream.begin_capture()
        x * 2 + x
        graph = stream.end_capture()
    text, verbose = graph.debug_dot_str(), graph.debug_dot_str(runtime.cudaGraphDebugDotFlagsVerbose)
    assert "cupy_multiply" in text and "cupy_add" in text
    if hs.backend() == "host":  # on others the functions work on pinned memory, which copies fill
        assert hex(x.data.ptr) in verbose
    assert "reads 32 bytes" in verbose and "reads 32 bytes" not in text


@pytest.mark.parametrize(
    "name", ["malloc", "hostAlloc", "free", "freeHost", "hostRegister", "memcpy", "memset", "memPoolGetAttribute"]
)
def test_G2_calls_that_may_wait_for_the_device_end_a_global_capture(stream: Stream, name: str) -> None:
    block, pinned = runtime.malloc(64), runtime.hostAlloc(64, 0)
    pageable = np.zeros(4096, np.uint8)
    kept = [block, pinned]
    calls: dict[str, Callable[[], Any]] = {
        "malloc": lambda: kept.append(runtime.malloc(64)),
        "hostAlloc": lambda: kept.append(runtime.hostAlloc(64, 0)),
        "free": lambda: runtime.free(block),
        "freeHost": lambda: runtime.freeHost(pinned),
        "hostRegister": lambda: runtime.hostRegister(pageable.ctypes.data, pageable.nbytes, 0),
        "memcpy": lambda: runtime.memcpy(block, pinned, 64, runtime.memcpyHostToDevice),
        "memset": lambda: runtime.memset(block, 1, 64),
        "memPoolGetAttribute": lambda: runtime.memPoolGetAttribute(
            runtime.deviceGetDefaultMemPool(0), runtime.cudaMemPoolAttrReleaseThreshold
        ),
    }
    stream.begin_capture(runtime.streamCaptureModeGlobal)
    with pytest.raises(runtime.CUDARuntimeError, match="unsafe") as caught:
        calls[name]()
    assert caught.value.status == 900
    with pytest.raises(runtime.CUDARuntimeError) as caught:
        stream.end_capture()
    assert caught.value.status == 901
    assert kept == [block, pinned]
    runtime.free(block)  # it was not freed before
    runtime.freeHost(pinned)


def test_an_event_has_its_handle_in_a_capture(stream: Stream) -> None:
    stream.begin_capture()
    event = stream.record()
    inside = event.ptr
    assert inside != 0
    stream.end_capture()
    assert event.ptr == inside
