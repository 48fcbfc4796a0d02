"""paddle.device.cuda.graphs: captures of the current stream, and their replays."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import numpy as np
import pytest
from halstream.paddle import device
from halstream.paddle.device.cuda.graphs import CUDAGraph, is_cuda_graph_supported

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
graphs = pytest.mark.needs("graphs")


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    """A graph and its replays give their arrays back, at the latest when errors' reference cycles are collected."""
    before = device.memory_allocated(0)
    yield
    gc.collect()
    end = time.monotonic() + LIMIT
    while device.memory_allocated(0) > before and time.monotonic() < end:
        time.sleep(0.001)  # a worker may be about to drop what a finished replay has kept
    assert device.memory_allocated(0) <= before


def zeros() -> hs.Array:
    """An array whose zeros every stream sees: they were written on another one than the test's."""
    array = hs.zeros(4, "f4")
    hs.synchronize()
    return array


def test_whether_graphs_are_supported() -> None:
    assert is_cuda_graph_supported() is True


@graphs
def test_a_capture_is_underway_until_its_end() -> None:
    with device.stream_guard(device.Stream("gpu:0")):
        graph = CUDAGraph(paddle.CUDAPlace(0))
        graph.capture_begin()
        assert device.is_current_stream_capturing()
        with device.stream_guard(device.Stream("gpu:0")):
            assert paddle.cuda.is_current_stream_capturing(), "whatever stream is current"
        graph.capture_end()
    assert not device.is_current_stream_capturing()


@graphs
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_what_is_captured_runs_at_each_replay(mode: str) -> None:
    stream, x = device.Stream("gpu:0"), zeros()
    graph = CUDAGraph(paddle.CUDAPlace(0), mode=mode)
    with device.stream_guard(stream):
        graph.capture_begin()
        x.fill(3.0)
        graph.capture_end()
        assert x.numpy().tolist() == [0.0] * 4, "nothing ran in the capture"
        graph.replay()
        stream.synchronize()
        assert x.numpy().tolist() == [3.0] * 4
        x.fill(0.0)
        for _ in range(3):
            graph.replay()
        assert x.numpy().tolist() == [3.0] * 4


@graphs
def test_a_graph_that_was_reset_is_reset_again_captured_again_and_not_replayed() -> None:
    x, graph = zeros(), CUDAGraph()
    for value in (2.0, 3.0):
        graph.capture_begin()
        x.fill(value)
        graph.capture_end()
        graph.replay()
        assert x.numpy().tolist() == [value] * 4
        graph.reset()
        graph.reset()
        with pytest.raises(paddle.base.core.EnforceNotMet, match="PermissionDenied") as caught:
            graph.replay()
        assert type(caught.value) is paddle.base.core.EnforceNotMet, "what paddle raises, and nothing narrower"


@graphs
def test_G1_the_default_stream_is_captured_as_it_is_one_of_paddles_own() -> None:
    main, side, x = device.current_stream(), device.Stream(), zeros()
    graph = CUDAGraph()
    graph.capture_begin()
    assert device.is_current_stream_capturing()
    x.fill(1.0)
    side.wait_stream(main)
    with device.stream_guard(side):
        x.fill(2.0)
    main.wait_stream(side)
    graph.capture_end()
    assert x.numpy().tolist() == [0.0] * 4, "nothing ran in the capture"
    for _ in range(2):
        graph.replay()
        assert x.numpy().tolist() == [2.0] * 4
        x.fill(0.0)
    with pytest.raises(hs.CaptureError, match="legacy default stream"), hs.capture(hs.Device(0).default_stream):
        pass


@graphs
def test_G4_what_a_capture_of_the_default_stream_forbids_ends_with_it() -> None:
    x, graph = zeros(), CUDAGraph()
    graph.capture_begin()
    with pytest.raises(OSError, match="captures"):
        device.synchronize()
    with pytest.raises(OSError, match="invalidated"):
        graph.capture_end()
    assert not device.is_current_stream_capturing()
    x.fill(1.0)
    assert x.numpy().tolist() == [1.0] * 4
    with hs.capture(hs.Stream()), pytest.raises(OSError, match="an ordered stream"):  # not ordered in paddle
        graph.capture_begin()
    assert not device.is_current_stream_capturing()


@graphs
def test_G4_a_graph_that_is_collected_ends_its_capture_of_the_default_stream() -> None:
    main, x = device.current_stream(), zeros()
    graph = CUDAGraph()
    graph.capture_begin()
    x.fill(3.0)
    del graph
    gc.collect()
    _captures_anew(main, x)


@graphs
def test_a_replay_is_in_the_order_of_the_captured_stream(hold: Any) -> None:
    stream, x = device.Stream("gpu:0"), zeros()
    graph = CUDAGraph()
    with device.stream_guard(stream):
        graph.capture_begin()
        x.fill(2.0)
        graph.capture_end()
    gate = hold(stream)
    graph.replay()  # the current stream is another one
    assert not stream.query()
    gate.open()
    stream.synchronize()
    assert np.all(x.numpy() == 2.0)


@graphs
def test_wrong_uses_are_refused_and_the_stream_stays_usable() -> None:
    stream, x = device.Stream("gpu:0"), zeros()
    graph, other = CUDAGraph(), CUDAGraph()
    with pytest.raises(OSError, match="no capture is underway"):
        graph.capture_end()
    with device.stream_guard(stream):
        graph.capture_begin()
        with pytest.raises(OSError, match="another CUDAGraph"):
            other.capture_begin()
        with pytest.raises(OSError):
            stream.synchronize()
        with pytest.raises(OSError):
            graph.capture_end()
        with pytest.raises(OSError, match="no capture is underway"):
            graph.capture_end()
        x.fill(1.0)
        assert x.numpy().tolist() == [1.0] * 4
        other.capture_begin()
        x.fill(5.0)
        other.capture_end()
        other.replay()
        assert x.numpy().tolist() == [5.0] * 4
    for call in (graph.replay, graph.reset, lambda: graph.print_to_dot_files("x")):
        with pytest.raises(AttributeError, match="nothing to"):
            call()


@graphs
def test_G2_an_end_that_is_refused_leaves_the_capture_to_the_thread_that_began_it() -> None:
    refused: list[str] = []

    def elsewhere() -> None:
        try:
            graph.capture_end()
        except OSError as exc:
            refused.append(str(exc))

    graph, x = CUDAGraph(), zeros()
    with device.stream_guard(device.Stream("gpu:0")):
        graph.capture_begin()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join(LIMIT)
        assert len(refused) == 1 and "no capture is underway" not in refused[0]
        assert device.is_current_stream_capturing()
        x.fill(3.0)
        graph.capture_end()
        graph.replay()
        assert x.numpy().tolist() == [3.0] * 4


@graphs
def test_G3_a_graph_that_is_collected_ends_its_capture() -> None:
    stream, x = device.Stream("gpu:0"), zeros()
    with device.stream_guard(stream):
        graph = CUDAGraph()
        graph.capture_begin()
        x.fill(3.0)
        del graph
        gc.collect()
        _captures_anew(stream, x)


def _captures_anew(stream: Any, x: Any) -> None:
    """Check that nothing was enqueued on a stream, and that it can be captured again."""
    assert not device.is_current_stream_capturing()
    stream.synchronize()
    assert x.numpy().tolist() == [0.0] * 4
    other = CUDAGraph()
    other.capture_begin()
    x.fill(5.0)
    other.capture_end()
    other.replay()
    assert x.numpy().tolist() == [5.0] * 4


@graphs
@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_G4_a_graph_that_another_thread_collects_ends_its_capture(mode: str) -> None:
    """That thread could not end the capture by `capture_end`, unless it is relaxed."""
    stream, x = device.Stream("gpu:0"), zeros()
    with device.stream_guard(stream):
        kept = [CUDAGraph(paddle.CUDAPlace(0), mode=mode)]
        kept[0].capture_begin()
        x.fill(3.0)
        thread = threading.Thread(target=kept.clear)
        thread.start()
        thread.join(LIMIT)
        assert not thread.is_alive()
        _captures_anew(stream, x)


@pytest.mark.parametrize("place", [paddle.CPUPlace(), "gpu:0", 0])
def test_the_place_is_one_of_a_gpu(place: Any) -> None:
    with pytest.raises(TypeError, match="CUDAPlace"):
        CUDAGraph(place)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(AssertionError, match="thread_local"):
        CUDAGraph(mode="local")


@graphs
def test_a_graph_is_written_for_graphviz(tmp_path: Path) -> None:
    x, graph = zeros(), CUDAGraph()
    with device.stream_guard(device.Stream("gpu:0")):
        graph.capture_begin()
        x.fill(1.0)
        graph.capture_end()
    graph.print_to_dot_files(tmp_path / "new" / "folder", flags=1)
    graph.print_to_dot_files(str(tmp_path))
    (one,) = tmp_path.glob("*.dot")
    assert one.read_text().startswith("digraph") and "fill" in one.read_text() and "writes" in one.read_text()
    graph.print_to_dot_files(str(tmp_path), flags=0)
    assert "writes" not in one.read_text()
