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

#: Kernels of the look-alike. The first one does what cudaGraphSetConditional does, the second one y[i] += a * x[i].
KERNELS = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry set_condition(.param .u64 handle, .param .u32 value)
{
    ret;
}
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
    ret;
}
"""
CONFIG = core.LaunchConfig(grid=1, block=1)


def kernel(name: str) -> Any:
    return core.ObjectCode.from_ptx(KERNELS.encode()).get_kernel(name)


class Counts:
    """How often bodies ran: they have no functions of the host, so a kernel adds 1 to the word of a body."""

    def __init__(self) -> None:
        self._memory = core.LegacyPinnedMemoryResource().allocate(4 * 9)
        words = np.from_dlpack(self._memory).view(np.float32)
        words[:] = 0
        words[8] = 1
        self.words = words[:8]

    def launch(self, body: int) -> tuple[Any, ...]:
        """Return what is launched to count a body."""
        start = int(self._memory.handle)
        return CONFIG, kernel("saxpy"), np.float32(1), start + 32, start + 4 * body, np.uint32(1)


@pytest.fixture
def counts() -> Counts:
    return Counts()


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
def test_a_switch_runs_the_graph_of_its_number(
    device: Any, stream: Any, ran: list[str], note: Any, counts: Counts, value: int
) -> None:
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=value)
    for i, case in enumerate(builder.switch(condition, 3)):
        core.launch(case.begin_building(), *counts.launch(i))
        case.end_building()
    builder.callback(note("last"))
    run(builder.end_building().complete(), stream, 2)
    assert ran == ["last"] * 2
    assert counts.words[:3].tolist() == [2 * (i == value) for i in range(3)]


@pytest.mark.parametrize("value", [0, 1])
def test_if_and_else_and_a_loop_that_does_not_begin(device: Any, stream: Any, counts: Counts, value: int) -> None:
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=value)
    loop = builder.create_condition(default_value=0)
    for i, body in enumerate([builder.if_then(condition), *builder.if_else(condition), builder.while_loop(loop)]):
        core.launch(body.begin_building(), *counts.launch(i))
        body.end_building()
    run(builder.end_building().complete(), stream)
    assert counts.words[:4].tolist() == [value, value, 1 - value, 0]


def test_a_kernel_ends_a_loop_and_chooses_a_case(device: Any, stream: Any, counts: Counts) -> None:
    set_condition = kernel("set_condition")
    builder = device.create_graph_builder().begin_building()
    again, choice = builder.create_condition(default_value=1), builder.create_condition(default_value=0)
    loop = builder.while_loop(again)
    core.launch(loop.begin_building(), *counts.launch(0))
    core.launch(loop, CONFIG, set_condition, choice, np.uint32(1))
    core.launch(loop, CONFIG, set_condition, again, np.uint32(0))
    loop.end_building()
    for i, case in enumerate(builder.switch(choice, 2)):
        core.launch(case.begin_building(), *counts.launch(1 + i))
        case.end_building()
    run(builder.end_building().complete(), stream, 2)
    assert counts.words[:3].tolist() == [2, 0, 2]


def test_a_body_takes_no_functions_of_the_host(device: Any, note: Any) -> None:
    definition = core.graph.GraphDefinition()
    choice = definition.if_then(definition.create_condition(default_value=1))
    with pytest.raises(core._utils.cuda_utils.CUDAError, match="NOT_SUPPORTED"):
        choice.then.callback(note("never"))


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


def test_a_definition_has_nodes_and_edges(device: Any, stream: Any, ran: list[str], note: Any, counts: Counts) -> None:
    definition = core.graph.GraphDefinition()
    first = definition.callback(note("first"))
    choice = first.switch(definition.create_condition(default_value=1), 2)
    for i, branch in enumerate(choice.branches):
        branch.launch(*counts.launch(i))
    assert len(definition.nodes()) == 2 and len(definition.edges()) == 1
    run(definition.instantiate(), stream)
    assert ran == ["first"] and counts.words[:2].tolist() == [0, 1]


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
