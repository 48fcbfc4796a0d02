"""cuda.core's graphs on the look-alike driver: by captures and node by node, with conditions, and beside halstream."""

from __future__ import annotations

import functools
import gc
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

core = pytest.importorskip("cuda.core")
driver = pytest.importorskip("cuda.bindings.driver")

LIMIT = 10.0

#: A kernel of the look-alike, which does what cudaGraphSetConditional does.
SET_CONDITION = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry set_condition(.param .u64 handle, .param .u32 value)
{
    ret;
}
"""


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def note(ran: list[str]) -> Any:
    """Return what notes a word when it is called without arguments."""
    return lambda word: functools.partial(ran.append, word)


def run(graph: Any, stream: Any, times: int = 1) -> None:
    for _ in range(times):
        graph.launch(stream)
    stream.sync()


def test_a_builder_captures_and_its_graph_is_launched_on_any_stream(
    device: Any, stream: Any, ran: list[str], note: Any
) -> None:
    builder = device.create_graph_builder()
    assert not builder.is_building
    builder.begin_building("thread_local")
    assert builder.is_building
    builder.callback(note("a"))
    graph = builder.end_building().complete()
    assert not builder.is_building and ran == []
    graph.upload(stream)
    run(graph, stream, 2)
    assert ran == ["a", "a"]


def test_split_and_join_make_branches(device: Any, stream: Any, ran: list[str], note: Any) -> None:
    builder = device.create_graph_builder().begin_building()
    builder.callback(note("first"))
    left, right = builder.split(2)
    assert right.is_join_required and not left.is_join_required
    left.callback(note("left"))
    right.callback(note("right"))
    builder = core.graph.GraphBuilder.join(left, right)
    builder.callback(note("last"))
    run(builder.end_building().complete(), stream)
    assert ran[0] == "first" and sorted(ran[1:3]) == ["left", "right"] and ran[3] == "last"


@pytest.mark.parametrize("value", [0, 1, 2, 3, 2**32 - 1])
def test_a_switch_runs_the_graph_of_its_number(device: Any, stream: Any, ran: list[str], note: Any, value: int) -> None:
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=value)
    for i, case in enumerate(builder.switch(condition, 3)):
        case.begin_building().callback(note(f"case {i}"))
        case.end_building()
    builder.callback(note("last"))
    run(builder.end_building().complete(), stream, 2)
    assert ran == ([f"case {value}", "last"] if value < 3 else ["last"]) * 2


@pytest.mark.parametrize("value", [0, 1])
def test_if_and_else_and_a_loop_that_does_not_begin(
    device: Any, stream: Any, ran: list[str], note: Any, value: int
) -> None:
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=value)
    then = builder.if_then(condition)
    then.begin_building().callback(note("if"))
    then.end_building()
    for word, branch in zip(("then", "else"), builder.if_else(condition), strict=True):
        branch.begin_building().callback(note(word))
        branch.end_building()
    loop = builder.while_loop(builder.create_condition(default_value=0))
    loop.begin_building().callback(note("never"))
    loop.end_building()
    run(builder.end_building().complete(), stream)
    assert ran == (["if", "then"] if value else ["else"])


def test_a_kernel_ends_a_loop_and_chooses_a_case(device: Any, stream: Any, ran: list[str], note: Any) -> None:
    kernel = core.ObjectCode.from_ptx(SET_CONDITION.encode()).get_kernel("set_condition")
    config = core.LaunchConfig(grid=1, block=1)
    builder = device.create_graph_builder().begin_building()
    again, choice = builder.create_condition(default_value=1), builder.create_condition(default_value=0)
    loop = builder.while_loop(again)
    loop.begin_building().callback(note("loop"))
    core.launch(loop, config, kernel, choice, np.uint32(1))
    core.launch(loop, config, kernel, again, np.uint32(0))
    loop.end_building()
    for i, case in enumerate(builder.switch(choice, 2)):
        case.begin_building().callback(note(f"case {i}"))
        case.end_building()
    run(builder.end_building().complete(), stream, 2)
    assert ran == ["loop", "case 1"] * 2


def test_graphs_are_embedded_updated_and_written(
    device: Any, stream: Any, ran: list[str], note: Any, tmp_path: Path
) -> None:
    def built(word: str) -> Any:
        builder = device.create_graph_builder().begin_building()
        builder.callback(note(word))
        return builder.end_building()

    outer = device.create_graph_builder().begin_building()
    outer.embed(built("child"))
    outer.callback(note("outer"))
    outer.end_building()
    outer.debug_dot_print(str(tmp_path / "graph.dot"), core.graph.GraphDebugPrintOptions(verbose=True))
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    options = core.graph.GraphCompleteOptions(auto_free_on_launch=True, upload_stream=stream, use_node_priority=True)
    run(outer.complete(options), stream)
    graph = built("before").complete()
    graph.update(built("after"))
    run(graph, stream)
    assert ran == ["child", "outer", "after"]
    with pytest.raises(core._utils.cuda_utils.CUDAError):
        graph.update(outer)


def test_a_definition_has_nodes_and_edges(device: Any, stream: Any, ran: list[str], note: Any) -> None:
    definition = core.graph.GraphDefinition()
    first = definition.callback(note("first"))
    choice = first.switch(definition.create_condition(default_value=1), 2)
    for word, branch in zip(("zero", "one"), choice.branches, strict=True):
        branch.callback(note(word))
    assert len(definition.nodes()) == 2 and len(definition.edges()) == 1
    run(definition.instantiate(), stream)
    assert ran == ["first", "one"]


def test_a_builder_that_is_dropped_in_its_capture_ends_it_and_lets_go_of_its_objects(device: Any) -> None:
    released = threading.Event()

    class Kept:
        def __del__(self) -> None:
            released.set()

        def __call__(self) -> None: ...

    default = device.default_stream
    builder = device.create_graph_builder().begin_building("global")
    builder.callback(Kept())
    del builder
    gc.collect()
    default.sync()
    assert released.wait(LIMIT)


def test_halstream_goes_on_beside_a_builder(device: Any, stream: Any, ran: list[str], note: Any) -> None:
    import halstream as hs

    assert hs.backend() == "cuda"
    ours = hs.Stream(non_blocking=True)
    builder = device.create_graph_builder().begin_building()
    builder.callback(note("theirs"))
    ours.call(ran.append, "ours")
    ours.synchronize(timeout=LIMIT)
    graph = builder.end_building().complete()
    run(graph, stream)
    assert ran == ["ours", "theirs"]


def test_memory_of_a_graph_made_node_by_node_has_one_address(device: Any, stream: Any) -> None:
    definition = core.graph.GraphDefinition()
    node = definition.allocate(64)
    kept = definition.allocate(64)
    first, second = node.memset(node.dptr, 7, 64), kept.memset(kept.dptr, 9, 64)
    freed = first.deallocate(node.dptr)
    assert definition.nodes() == {node, kept, first, second, freed}
    del node  # which is then read from the driver
    assert sorted(one.dptr for one in definition.nodes() if isinstance(one, core.graph.AllocNode)) == sorted(
        [first.dptr, kept.dptr]
    )
    options = core.graph.GraphCompleteOptions(auto_free_on_launch=True)
    graph = definition.instantiate(options)
    run(graph, stream, 2)
    target = np.zeros(64, np.uint8)
    assert driver.cuMemcpyDtoH(target.ctypes.data, kept.dptr, 64)[0] == 0
    assert target.tolist() == [9] * 64
    assert driver.cuMemFree(kept.dptr)[0] == 0
    graph.close()


def test_memory_that_a_builder_captures_and_its_figures(device: Any, stream: Any) -> None:
    resource = core.GraphMemoryResource(device)
    builder = device.create_graph_builder()
    builder.begin_building("relaxed")
    buffer = resource.allocate(1 << 16, stream=builder)
    buffer.fill(5, stream=builder)
    buffer.close(stream=builder)
    graph = builder.end_building().complete()
    resource.trim()
    resource.attributes.reserved_mem_high = resource.attributes.used_mem_high = 0
    run(graph, stream, 2)
    figures = resource.attributes
    assert figures.used_mem_current == 0 and figures.used_mem_high == 1 << 16 == figures.reserved_mem_current
    resource.trim()
    assert figures.reserved_mem_current == 0 and figures.reserved_mem_high == 1 << 16
    graph.close()
