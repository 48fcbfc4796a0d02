"""torch.cuda's graphs: captures, replays, hooks, and what both refuse."""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import halstream.torch as torch
import pytest
from halstream.testing import Gate
from halstream.torch import accelerator, cuda

pytestmark = [pytest.mark.dialect("torch"), pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


Hold = Callable[[Any], Gate]


def captured(out: list[int], *, keep: bool = False) -> cuda.CUDAGraph:
    """Return a graph of one function that appends 1."""
    g = cuda.CUDAGraph(keep_graph=keep)
    with cuda.graph(g):
        cuda.current_stream().call(out.append, 1)
    return g


@pytest.mark.row(94)
def test_a_replay_runs_the_captured_work_on_the_current_stream() -> None:
    out: list[int] = []
    g = captured(out)
    cuda.synchronize()
    assert out == []
    s = cuda.Stream()
    with Gate(s), cuda.stream(s):
        g.replay()
        assert cuda.default_stream().query() and not s.query()
    g.replay()  # on the default stream
    cuda.synchronize()
    assert out == [1, 1]


@pytest.mark.row(94)
def test_reset_lets_the_same_object_capture_again() -> None:
    out: list[int] = []
    g = captured(out)
    with pytest.raises(RuntimeError, match="already owns a captured graph"), cuda.stream(cuda.Stream()):
        g.capture_begin()
    g.reset()
    with pytest.raises(RuntimeError, match="replay without a preceding successful capture"):
        g.replay()
    with cuda.graph(g):
        cuda.current_stream().call(out.append, 2)
    g.replay()
    cuda.synchronize()
    assert out == [2]


@pytest.mark.row(93)
def test_what_cannot_be_captured() -> None:
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=r"^CUDA graphs must be captured on a non-default stream"):
        g.capture_begin()
    with cuda.stream(cuda.Stream()):
        with pytest.raises(RuntimeError, match=r"^Unknown capture error mode\..*got nothing"):
            g.capture_begin(capture_error_mode="nothing")
        g.capture_begin(capture_error_mode="thread_local")
        with pytest.raises(RuntimeError, match="same stream it began on"), cuda.stream(cuda.Stream()):
            g.capture_end()
        with pytest.warns(UserWarning, match=r"^The CUDA Graph is empty") as warned:
            g.capture_end()
    assert [one.filename for one in warned] == [__file__]
    g.replay()
    cuda.synchronize()
    with pytest.raises(torch.AcceleratorError, match="no capture is underway"):
        g.capture_end()


@pytest.mark.row(93)
def test_a_capture_that_fails_leaves_usable_streams() -> None:
    s, out = cuda.Stream(), []
    g = cuda.CUDAGraph()
    with pytest.raises(torch.AcceleratorError), cuda.graph(g, stream=s):
        s.call(out.append, 1)
        s.synchronize()  # the host cannot wait for what does not run
    assert cuda.current_stream() == cuda.default_stream() and not s.is_capturing()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    s.call(out.append, 2)
    s.synchronize()
    assert out == [2]
    g.reset()
    with cuda.graph(g, stream=s):
        s.call(out.append, 3)
    g.replay()
    cuda.synchronize()
    assert out == [2, 3]


@pytest.mark.row(94)
def test_a_stream_that_joins_the_capture_is_part_of_it() -> None:
    s, side, out = cuda.Stream(), cuda.Stream(), []
    g = cuda.CUDAGraph()
    with cuda.graph(g, stream=s):
        side.wait_stream(s)
        side.call(out.append, 1)
        s.wait_stream(side)
        s.call(out.append, 2)
    for _ in range(2):
        g.replay()
    cuda.synchronize()
    assert out == [1, 2, 1, 2]


@pytest.mark.row(94)
def test_a_graph_that_is_kept_is_instantiated_on_demand(tmp_path: Path) -> None:
    out: list[int] = []
    g = captured(out, keep=True)
    with pytest.raises(RuntimeError, match=r"until instantiate\(\) has been called"):
        g.raw_cuda_graph_exec()
    assert g.raw_cuda_graph() > 0
    g.debug_dump(tmp_path / "graph.dot")
    verbose = (tmp_path / "graph.dot").read_text()
    assert verbose.startswith("digraph") and "device 0" in verbose
    g.debug_dump(tmp_path / "graph.dot", verbose=False)
    assert "device 0" not in (tmp_path / "graph.dot").read_text()
    g.replay()
    g.instantiate()
    g.replay()
    cuda.synchronize()
    assert out == [1, 1] and g.raw_cuda_graph_exec() > 0
    dropped = captured(out)
    with pytest.raises(RuntimeError, match="initialized with keep_graph=true"):
        dropped.raw_cuda_graph()
    with pytest.raises(RuntimeError, match="only when keep_graph=true"):
        dropped.instantiate()
    with pytest.raises(TypeError, match="keep_graph"):
        cuda.CUDAGraph(keep_graph="x")  # type: ignore[arg-type]


@pytest.mark.row(94)
def test_hooks_are_called_in_their_places() -> None:
    seen: list[str] = []
    g = cuda.CUDAGraph()

    def note(word: str) -> Callable[[Any], None]:
        return lambda graph: seen.append(word if graph is g else "another graph")

    g.register_capture_start_hook(note("begin"))
    g.register_capture_end_hook(lambda graph: seen.append(f"end {graph.raw_cuda_graph() > 0}"))
    g.register_post_instantiate_hook(note("made"))
    g.register_replay_end_hook(note("after"))
    removed = g.register_replay_start_hook(note("removed"))
    g.register_replay_start_hook(note("before"))
    removed.remove()
    g.enable_debug_mode()
    with cuda.graph(g):
        cuda.current_stream().call(seen.append, "runs")
    g.replay()
    cuda.synchronize()
    assert [one for one in seen if one != "runs"] == ["begin", "end True", "made", "before", "after"]
    with pytest.raises(ZeroDivisionError), g.register_replay_start_hook(lambda graph: 1 // 0):
        g.replay()
    g.replay()
    cuda.synchronize()
    assert seen.count("runs") == 2


@pytest.mark.row(94)
@pytest.mark.parametrize("how", ["reset", "collection"])
def test_what_a_capture_retains_is_released_once_after_its_replays(how: str) -> None:
    seen: list[object] = []
    s, g = cuda.Stream(), captured([])
    g.register_destroy_callback(lambda: seen.append(s.query()), synchronize_before_release=True)
    g.register_destroy_callback(lambda: seen.append(1 // 0))
    g.register_destroy_callback(lambda: seen.append("last"))
    g.retain_object(seen)
    with cuda.stream(s):
        g.replay()
    if how == "reset":
        g.reset()
        assert seen == [True, "last"]
    del g
    gc.collect()
    assert seen == [True, "last"]


@pytest.mark.parametrize("pool", ["nonsense", "ab", 5, (1,), (1, 2, 3), (1.0, 2), (-1, 0), (2**64, 0), {1, 2}])
def test_what_is_no_number_of_a_pool_is_refused(pool: Any) -> None:
    g, before = cuda.CUDAGraph(), cuda.current_stream()
    with cuda.stream(cuda.Stream()):
        with pytest.raises(TypeError, match="'pool' is a pair of numbers"):
            g.capture_begin(pool)
        assert not cuda.is_current_stream_capturing()
        g.capture_begin([2, 3])
        cuda.current_stream().nop()
        g.capture_end()
    assert g.pool() == (2, 3)
    assert cuda.current_stream() == before


@pytest.mark.row(94)
def test_pools_have_numbers() -> None:
    first, second = cuda.graph_pool_handle(), cuda.graph_pool_handle()
    assert first != second and first[0] == 0
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.pool()
    with cuda.graph(g, pool=first):
        cuda.current_stream().call(int)
    assert g.pool() == first and g.pools() == [first]
    assert captured([]).pool() != captured([]).pool()


@pytest.mark.row(96)
def test_accelerator_graphs_capture_the_current_stream() -> None:
    out: list[int] = []
    s, g = torch.Stream(), accelerator.Graph()
    with s, g:
        accelerator.current_stream().call(out.append, 1)
    g.replay()
    with s:
        g.replay()
    accelerator.synchronize()
    assert out == [1, 1]
    g.reset()
    g.capture_error_mode = "relaxed"
    with s, g:
        accelerator.current_stream().call(out.append, 2)
    g.replay()
    accelerator.synchronize()
    assert out == [1, 1, 2]
    with pytest.raises(RuntimeError, match="Unknown capture error mode"), s:
        accelerator.Graph(capture_error_mode="none").capture_begin()


def test_annotations_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="annotations"):
        cuda.graph(cuda.CUDAGraph(), enable_annotations=True)


def test_the_sanitizer_sees_a_replay_as_one_operation() -> None:
    x, s, side = hs.empty(16), cuda.Stream(), cuda.Stream()
    g = cuda.CUDAGraph()
    with cuda.graph(g, stream=s):
        x.fill(1, s)
    with hs.sanitize(on="collect") as report:
        with cuda.stream(side):
            g.replay()
        x.fill(2, s)
        cuda.synchronize()
    assert len(report.races) == 1, str(report)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_graph_data", 0),
        ("begin_capture_to_if_node", 1),
        ("begin_capture_to_while_node", 1),
        ("end_capture_to_conditional_node", 0),
        ("set_conditional_handle_for_current_node", 1),
        ("register_generator_state", 1),
    ],
)
def test_what_graphs_do_not_have_is_refused_by_name(name: str, arguments: int) -> None:
    with pytest.raises(NotImplementedError, match=rf"^torch\.cuda\.CUDAGraph\.{name} is not built yet$"):
        getattr(cuda.CUDAGraph(), name)(*[None] * arguments)


@pytest.mark.parametrize("way", ["event", "stream"])
def test_G14_external_events_connect_a_graph_with_work_outside_of_it(way: str, hold: Hold) -> None:
    main, side, ran = cuda.Stream(), cuda.Stream(), []
    ready, done = cuda.Event(external=True), cuda.Event(external=True)
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, stream=main):
        if way == "event":
            ready.wait(main)
        else:
            main.wait_event(ready)
        main.call(ran.append, 1)
        if way == "event":
            done.record(main)
        else:
            main.record_event(done)
    for round_ in (1, 2):
        gate = hold(side)
        side.record_event(ready)
        with cuda.stream(main):
            graph.replay()
        assert not main.query()
        gate.open()
        done.synchronize()
        main.synchronize()
        assert ran == [1] * round_


def test_a_graph_that_is_dropped_in_its_capture_ends_it() -> None:
    side = cuda.Stream()
    with cuda.stream(side):
        g = cuda.CUDAGraph()
        g.capture_begin()
        assert side.is_capturing()
        del g
        gc.collect()
        assert not side.is_capturing()
        g = cuda.CUDAGraph()
        g.capture_begin()
        with pytest.warns(UserWarning, match="empty"):
            g.capture_end()
    cuda.synchronize()


def test_the_graph_whose_capture_the_current_stream_takes_part_in_is_known() -> None:
    side, other = cuda.Stream(), cuda.Stream()
    find = cuda.CUDAGraph.get_currently_capturing_graph
    g = cuda.CUDAGraph()
    with cuda.stream(side):
        g.capture_begin()
        assert find() is g
        other.wait_stream(side)
        with cuda.stream(other):
            assert find() is g
        with cuda.stream(cuda.Stream()), pytest.raises(RuntimeError, match="not capturing"):
            find()
        side.wait_stream(other)
        with pytest.warns(UserWarning, match="empty"):
            g.capture_end()
        with pytest.raises(RuntimeError, match="not capturing"):
            find()
        with hs.capture(side), pytest.raises(RuntimeError, match="CUDAGraph"):
            find()


def test_graphs_are_not_copied_and_say_what_they_are() -> None:
    stream, graph = cuda.Stream(), cuda.CUDAGraph(keep_graph=True)
    for one in (graph, torch.accelerator.Graph()):
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"cannot pickle '{type(one).__name__}' object"):
                make(one)
    assert repr(torch.accelerator.Graph()) == "<torch.accelerator.Graph empty>"
    assert repr(graph) == "<torch.cuda.CUDAGraph empty>"
    with cuda.graph(graph, stream=stream):
        assert repr(graph) == "<torch.cuda.CUDAGraph capturing>"
        cuda.Event(external=True).record()
    assert repr(graph) == "<torch.cuda.CUDAGraph captured>"
    graph.instantiate()
    assert repr(graph) == "<torch.cuda.CUDAGraph ready>"


def test_an_event_of_a_capture_shows_itself_and_is_asked_about_with_errors_of_torch() -> None:
    stream, graph = cuda.Stream(), cuda.CUDAGraph()
    first, second = (cuda.Event(enable_timing=True) for _ in range(2))
    with cuda.graph(graph, stream=stream):
        first.record(stream)
        stream.nop()
        second.record(stream)
        shown, inside = repr(first), first.cuda_event
        assert hex(inside)[2:] in shown
    assert (repr(first), first.cuda_event) == (shown, inside)
    with pytest.raises(torch.AcceleratorError, match="in a capture") as info:
        first.elapsed_time(second)  # both were recorded
    assert info.value.error_code == 907
