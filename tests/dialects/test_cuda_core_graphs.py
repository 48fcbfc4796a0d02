"""cuda.core's graphs: builders that capture, their branches, and what is launched."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from cuda_help import ONE, device, kernel, numbers
from halstream.cuda import core
from halstream.cuda.core._utils.cuda_utils import CUDAError
from halstream.cuda.core.graph import Graph, GraphBuilder, GraphCompleteOptions, GraphDebugPrintOptions

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]

LIMIT = 10.0
kernels = pytest.mark.needs("kernels", "schedules")
UNFINISHED = "^Graph has not finished building.$"


@pytest.fixture
def dev() -> core.Device:
    return device()


@pytest.fixture
def stream(dev: core.Device) -> core.Stream:
    return dev.create_stream()


def begun(dev: core.Device, mode: str = "relaxed") -> GraphBuilder:
    return dev.create_graph_builder().begin_building(mode)


def built(dev: core.Device, *functions: Callable[[], object]) -> GraphBuilder:
    """Return a builder of a graph that calls functions one after another."""
    builder = begun(dev)
    for function in functions:
        builder.callback(function)
    return builder.end_building()


def run(graph: Graph, stream: core.Stream, times: int = 1) -> None:
    for _ in range(times):
        graph.launch(stream)
    stream.sync(timeout=LIMIT)


def test_builders_and_graphs_are_made_by_others_only() -> None:
    with pytest.raises(NotImplementedError, match=r"^directly creating a GraphBuilder object can be ambiguous"):
        GraphBuilder()
    with pytest.raises(RuntimeError, match=r"^directly constructing a Graph instance is not supported$"):
        Graph()


@pytest.mark.row(49)
@pytest.mark.row(56)
@pytest.mark.row(57)
@pytest.mark.row(55)
def test_the_states_of_a_builder(dev: core.Device) -> None:
    builder = dev.create_graph_builder()
    assert builder.is_building is False and builder.is_join_required is False
    for use in (builder.complete, lambda: builder.debug_dot_print("/none")):
        with pytest.raises(RuntimeError, match=UNFINISHED):
            use()
    with pytest.raises(RuntimeError, match=r"^Graph builder is not building.$"):
        builder.end_building()
    with pytest.raises(ValueError, match=r"^Unsupported build mode: fast$"):
        builder.begin_building("fast")
    assert builder.begin_building() is builder and builder.is_building is True
    with pytest.raises(RuntimeError, match=r"^Graph builder is already building.$"):
        builder.begin_building()
    with pytest.raises(RuntimeError, match=UNFINISHED):
        builder.complete()
    assert builder.end_building() is builder and builder.is_building is False
    with pytest.raises(RuntimeError, match=r"^Cannot resume building after building has ended.$"):
        builder.begin_building()
    assert isinstance(builder.complete(), Graph)


@kernels
@pytest.mark.row(50)
@pytest.mark.row(54)
def test_a_graph_runs_each_time_it_is_launched(dev: core.Device, stream: core.Stream) -> None:
    buffer, found = numbers(0)
    builder = begun(dev)
    for _ in range(3):
        core.launch(builder, ONE, kernel(), buffer)
    graph = builder.end_building().complete()
    stream.sync()
    assert found.tolist() == [0]
    graph.upload(stream)
    run(graph, stream, 3)
    assert found.tolist() == [9]


@pytest.mark.row(51)
@pytest.mark.row(52)
@pytest.mark.row(58)
def test_splits_and_joins_that_are_refused(dev: core.Device) -> None:
    builder = dev.create_graph_builder()
    with pytest.raises(RuntimeError, match=r"^Graph builder must be building before it can be split.$"):
        builder.split(2)
    builder.begin_building()
    with pytest.raises(ValueError, match=r"^Invalid split count: expecting >= 2, got 1$"):
        builder.split(1)
    with pytest.raises(TypeError, match=r"^Argument 'count' has incorrect type"):
        builder.split("2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^Must join with at least two graph builders$"):
        GraphBuilder.join(builder)
    with pytest.raises(TypeError, match=r"^All arguments must be GraphBuilder instances$"):
        GraphBuilder.join(builder, builder.stream)  # type: ignore[arg-type]
    builder.end_building()


@pytest.mark.row(53)
@pytest.mark.row(59)
def test_branches(dev: core.Device, stream: core.Stream) -> None:
    ran: list[str] = []
    builder = begun(dev)
    builder.callback(lambda: ran.append("first"))
    left, right = builder.split(2)
    assert left is builder and (left.is_join_required, right.is_join_required) == (False, True)
    upper, lower = right.split(2)
    assert upper is right and upper.is_join_required and lower.is_join_required
    for branch, word in ((left, "left"), (upper, "upper"), (lower, "lower")):
        branch.callback(lambda word=word: ran.append(word))
    right = GraphBuilder.join(upper, lower)
    assert right is upper and right.is_join_required and lower.is_closed
    builder = GraphBuilder.join(right, left)
    assert builder is left and right.is_closed
    with pytest.raises(RuntimeError, match=r"^GraphBuilder has been closed$"):
        right.complete()
    builder.callback(lambda: ran.append("last"))
    run(builder.end_building().complete(), stream)
    assert ran[0] == "first" and ran[-1] == "last" and sorted(ran[1:-1]) == ["left", "lower", "upper"]


@pytest.mark.row(60)
def test_a_builder_that_is_dropped_ends_its_capture(dev: core.Device, stream: core.Stream) -> None:
    builder = stream.create_graph_builder().begin_building()
    assert builder.stream is stream
    del builder
    gc.collect()
    ran: list[int] = []
    hs.Stream.call(stream, ran.append, 1)
    stream.sync(timeout=LIMIT)
    assert ran == [1]


@pytest.mark.row(61)
def test_a_graph_within_a_graph(dev: core.Device, stream: core.Stream) -> None:
    ran: list[str] = []
    child, outer = built(dev, lambda: ran.append("child")), begun(dev)
    with pytest.raises(TypeError, match=r"^Argument 'child' has incorrect type"):
        outer.embed(stream)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^Child graph has not finished building.$"):
        outer.embed(outer)
    outer.embed(child)
    outer.callback(lambda: ran.append("outer"))
    run(outer.end_building().complete(), stream, 2)
    assert ran == ["child", "outer"] * 2


@pytest.mark.row(62)
def test_builders_and_graphs_are_closed(dev: core.Device, stream: core.Stream) -> None:
    ran: list[int] = []
    builder = built(dev, lambda: ran.append(1))
    graph, own = builder.complete(), builder.stream
    for thing in (builder, graph):
        assert not thing.is_closed
    builder.close()
    builder.close()
    run(graph, own)
    graph.close()
    graph.close()
    assert builder.is_closed and graph.is_closed and ran == [1]
    with pytest.raises(RuntimeError, match=r"^Graph has been closed$"):
        graph.launch(stream)
    for use in (builder.begin_building, builder.complete, lambda: builder.is_building, lambda: builder.stream):
        with pytest.raises(RuntimeError, match=r"^GraphBuilder has been closed$"):
            use()
    own.sync()


@pytest.mark.row(63)
def test_a_branch_cannot_end_the_building(dev: core.Device, stream: core.Stream) -> None:
    left, right = begun(dev).split(2)
    with pytest.raises(RuntimeError, match=r"cannot end the building"):
        right.end_building()
    assert left.is_building and right.is_building
    run(GraphBuilder.join(left, right).end_building().complete(), stream)


@pytest.mark.row(64)
def test_an_invalidated_capture_says_its_cause_once(dev: core.Device, stream: core.Stream) -> None:
    builder = stream.create_graph_builder().begin_building()
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: "):
        stream.sync()
    with pytest.raises(RuntimeError, match=r"^Build process encountered an error and has been invalidated"):
        builder.is_building  # noqa: B018
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: "):
        builder.end_building()
    assert builder.is_building is False
    builder.close()
    stream.sync()


def test_a_branch_that_is_not_joined_is_an_error(dev: core.Device) -> None:
    builder = begun(dev)
    _, right = builder.split(2)
    right.callback(lambda: None)
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_STREAM_CAPTURE_UNJOINED: ") as caught:
        builder.end_building()
    assert isinstance(caught.value, hs.CaptureError)


def test_the_default_stream_is_not_captured(dev: core.Device) -> None:
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: "):
        dev.default_stream.create_graph_builder().begin_building()


# -- functions of the host -------------------------------------------------------


@pytest.mark.row(68)
def test_functions_of_graphs(dev: core.Device, stream: core.Stream) -> None:
    builder = dev.create_graph_builder()
    with pytest.raises(RuntimeError, match=r"^Cannot add callback when graph is not being built$"):
        builder.callback(print)
    builder.begin_building()
    with pytest.raises(TypeError, match=r"^callback must be callable, got int$"):
        builder.callback(5)
    with pytest.raises(ValueError, match=r"^user_data is only supported with ctypes function pointers$"):
        builder.callback(print, user_data=b"x")
    ran: list[int] = []
    builder.callback(lambda: ran.append(1))
    run(builder.end_building().complete(), stream, 2)
    assert ran == [1, 1]


@pytest.mark.row(69)
@pytest.mark.row(70)
def test_native_functions_of_graphs(dev: core.Device, stream: core.Stream) -> None:
    seen: list[Any] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def look(pointer: int | None) -> None:
        seen.append(pointer if pointer == 1234 else ctypes.string_at(pointer or 0, 3))

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    def wrong(pointer: int | None) -> int:
        return 0

    data = bytearray(b"abc")
    builder = begun(dev)
    with pytest.raises(TypeError, match=r"host callback has prototype restype=.* CUhostFn"):
        builder.callback(wrong)
    builder.callback(look, user_data=data)
    builder.callback(look, user_data=1234)
    data[:] = b"xyz"
    run(builder.end_building().complete(), stream)
    assert seen == [b"abc", 1234]


@pytest.mark.row(71)
def test_a_graph_keeps_its_functions_as_long_as_it_lives(dev: core.Device, stream: core.Stream) -> None:
    released = threading.Event()

    class Kept:
        def __call__(self) -> None: ...

    function = Kept()
    weakref.finalize(function, released.set)
    builder = built(dev, function)
    del function
    gc.collect()
    graph = builder.complete()
    builder.close()
    del builder
    gc.collect()
    assert not released.is_set()
    run(graph, stream)
    graph.close()
    del graph
    gc.collect()
    hs.synchronize()
    assert released.wait(LIMIT)


@pytest.mark.row(72)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_function_that_raises_stops_nothing(
    dev: core.Device, stream: core.Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised: list[str] = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: raised.append(str(found.exc_value)))
    ran: list[int] = []

    def fails() -> None:
        raise ValueError("on purpose")

    run(built(dev, fails, lambda: ran.append(1)).complete(), stream, 2)
    run(built(dev, lambda: ran.append(2)).complete(), stream)
    assert ran == [1, 1, 2] and raised == ["on purpose"] * 2


@pytest.mark.row(73)
def test_graphs_of_two_devices_keep_their_functions_apart() -> None:
    ran: list[tuple[int, int]] = []
    launched = []
    for number in (0, 1, 0, 1):
        dev = device(number)
        place = len(launched)
        graph = built(dev, lambda number=number, place=place: ran.append((number, place))).complete()
        stream = dev.create_stream()
        graph.launch(stream)
        launched.append((graph, stream))
    for _, stream in launched:
        stream.sync(timeout=LIMIT)
    device(0)
    assert sorted(ran) == [(0, 0), (0, 2), (1, 1), (1, 3)]


# -- executables ------------------------------------------------------------------


@pytest.mark.row(75)
@pytest.mark.row(77)
def test_an_update_replaces_the_functions(dev: core.Device, stream: core.Stream) -> None:
    ran: list[str] = []
    graph = built(dev, lambda: ran.append("before")).complete()
    run(graph, stream)
    graph.update(built(dev, lambda: ran.append("after")))
    run(graph, stream)
    assert ran == ["before", "after"]
    with pytest.raises(CUDAError):
        graph.update(built(dev, lambda: ran.append("one"), lambda: ran.append("two")))
    run(graph, stream)
    assert ran == ["before", "after", "after"]


@pytest.mark.row(78)
@pytest.mark.row(79)
def test_updates_that_are_refused(dev: core.Device) -> None:
    graph = built(dev, lambda: None).complete()
    with pytest.raises(ValueError, match=UNFINISHED):
        graph.update(dev.create_graph_builder())
    with pytest.raises(TypeError, match=r"^expected GraphBuilder or GraphDefinition, got int$"):
        graph.update(5)  # type: ignore[arg-type]
    closed = built(dev, lambda: None)
    closed.close()
    with pytest.raises(RuntimeError, match=r"^GraphBuilder has been closed$"):
        graph.update(closed)
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: the topology changed"):
        graph.update(built(dev, lambda: None, lambda: None))


def test_a_graph_is_launched_on_streams_only(dev: core.Device) -> None:
    graph = built(dev, lambda: None).complete()
    for wrong in (None, 5, dev.create_graph_builder()):
        for use in (graph.launch, graph.upload):
            with pytest.raises(TypeError, match=r"^Argument 'stream' has incorrect type"):
                use(wrong)  # type: ignore[arg-type]


def test_options_of_executables(dev: core.Device, stream: core.Stream) -> None:
    ran: list[int] = []
    builder = built(dev, lambda: ran.append(1))
    options = GraphCompleteOptions(auto_free_on_launch=True, upload_stream=stream, use_node_priority=True)
    run(builder.complete(options), stream)
    assert ran == [1]
    with pytest.raises(hs.NotSupportedError, match=r"graphs that kernels launch are not built yet"):
        builder.complete(GraphCompleteOptions(device_launch=True))


def test_a_graph_is_written_for_graphviz(dev: core.Device, tmp_path: Path) -> None:
    def named() -> None: ...

    builder, path = built(dev, named), tmp_path / "graph.dot"
    builder.debug_dot_print(str(path))
    short = path.read_text()
    builder.debug_dot_print(str(path), GraphDebugPrintOptions(verbose=True))
    assert short.startswith("digraph") and "named" in short and len(path.read_text()) > len(short)
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_OPERATING_SYSTEM: "):
        builder.debug_dot_print(str(tmp_path / "none" / "graph.dot"))


@pytest.mark.parametrize("name", ["create_condition", "if_then", "if_else", "switch", "while_loop"])
def test_conditions_are_not_built(dev: core.Device, name: str) -> None:
    with pytest.raises(hs.NotSupportedError, match=rf"(?m)^cuda\.core\.graph\.GraphBuilder\.{name} is not built yet$"):
        getattr(dev.create_graph_builder(), name)(None)
    assert not hasattr(dev.create_graph_builder(), "graph_definition")


# -- memory --------------------------------------------------------------------------


@pytest.mark.row(92)
@pytest.mark.row(97)
def test_pools_of_devices_are_not_captured(dev: core.Device, stream: core.Stream) -> None:
    for mode in ("relaxed", "global", "thread_local"):
        builder = begun(dev, mode)
        with pytest.raises(RuntimeError, match=r"on a capturing stream \(consider using GraphMemoryResource\)\.$"):
            dev.allocate(4, stream=builder)
        assert core.DeviceMemoryResource(0).device_id == 0
        builder.end_building()


@kernels
@pytest.mark.row(93)
@pytest.mark.parametrize("mode", ["relaxed", "global", "thread_local"])
def test_memory_of_a_graph(dev: core.Device, stream: core.Stream, mode: str) -> None:
    source, _ = numbers(5)
    target, found = numbers(0)
    increment, resource = kernel(), core.GraphMemoryResource(dev)
    builder = begun(dev, mode)
    buffer = resource.allocate(4, stream=builder)
    buffer.copy_from(source, stream=builder)
    core.launch(builder, ONE, increment, buffer)
    buffer.copy_to(target, stream=builder)
    buffer.close(builder)
    graph = builder.end_building().complete()
    for _ in range(3):
        found[:] = 0
        run(graph, stream)
        assert found.tolist() == [6]


@pytest.mark.row(94)
@pytest.mark.needs("host")
def test_memory_that_a_graph_does_not_free(dev: core.Device, stream: core.Stream) -> None:
    builder = begun(dev)
    buffer = core.GraphMemoryResource(dev).allocate(4, stream=builder)
    buffer.fill(7, stream=builder)
    graph = builder.end_building().complete(GraphCompleteOptions(auto_free_on_launch=True))
    for _ in range(2):
        run(graph, stream)
        target = core.LegacyPinnedMemoryResource().allocate(4)
        buffer.copy_to(target, stream=stream)
        stream.sync()
        assert np.from_dlpack(target).tolist() == [7] * 4
