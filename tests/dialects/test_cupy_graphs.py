"""cupy's captures and graphs."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
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
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorStreamCaptureInvalidated"):
        stream.end_capture()
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
