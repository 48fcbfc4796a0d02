"""Graphs that are built node by node, and read."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from endings import set_soon

LIMIT = 10.0

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def test_G5_graphs_are_built_cloned_and_read() -> None:
    ran: list[str] = []
    graph = hs.Graph()
    a = graph.add(lambda s: s.call(ran.append, "a"))
    b = graph.add(lambda s: s.call(ran.append, "b"), after=[a])
    c = graph.add(lambda s: s.nop())
    graph.add_edge(c, b)
    assert graph.edges == [(a, b), (c, b)]
    for wrong in ((c, b), (b, a), (a, 99)):
        with pytest.raises(hs.InvalidValueError):
            graph.add_edge(*wrong)
    with pytest.raises(hs.InvalidValueError, match="2 nodes"):
        graph.clone().add(lambda s: (s.nop(), s.nop()))
    with pytest.raises(ZeroDivisionError):
        graph.add(lambda s: 1 / 0)
    clone = graph.clone()
    clone.add(lambda s: s.call(ran.append, "c"), after=[b])
    assert (len(graph.nodes), len(clone.nodes)) == (3, 4)
    dot = graph.dot()
    assert dot.startswith("digraph")
    assert "n0 -> n1;" in dot
    assert "device 0" not in dot
    assert "device 0" in graph.dot(details=True)
    s = hs.Stream()
    clone.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == ["a", "b", "c"]


@pytest.mark.parametrize(
    "after",
    [0, None, "0", [True], [None], [0.0], [2**70], [-(2**70)]],
    ids=["int", "None", "str", "bool", "list of None", "float", "large", "small"],
)
def test_G5_what_is_no_index_of_a_node_is_refused(after: Any) -> None:
    graph = hs.Graph()
    graph.add(lambda s: s.nop())
    wrong = hs.InvalidValueError if isinstance(after, list) and type(after[0]) is int else TypeError
    with pytest.raises(wrong, match=r"such as \[0, 2\]|not the index|as an integer|no graph has a node"):
        graph.add(lambda s: s.nop(), after=after)
    index = after[0] if isinstance(after, list) else "0"
    with pytest.raises(wrong):
        graph.add_edge(index, 0)
    with pytest.raises(wrong):
        graph.instantiate().update_node(index, lambda s: s.nop())
    assert len(graph.nodes) == 1


def test_G5_an_error_of_a_node_says_what_to_do_instead() -> None:
    graph, event, kept = hs.Graph(), hs.Event(), []
    with pytest.raises(hs.InvalidValueError, match=r"made no node.*use record_external"):
        graph.add(lambda s: s.record(event))
    node = graph.add(lambda s: s.record_external(event))
    with pytest.raises(hs.InvalidValueError, match=f"node {node} cannot come after itself"):
        graph.add_edge(node, node)
    made = graph.add(lambda s: kept.append(hs.empty(4, "f4", stream=s)))
    with pytest.raises(hs.ClosedError, match=r"free\(stream\)"):
        graph.add(lambda s: kept[0].free(), after=[made])
    graph.add(lambda s: kept[0].free(s), after=[made])
    assert [one.kind for one in graph.nodes] == ["record", "allocate", "free"]


def test_G5_a_graph_and_a_captured_launch_are_nodes() -> None:
    ran: list[str] = []
    child, graph, s = hs.Graph(), hs.Graph(), hs.Stream()
    child.add(lambda s: s.call(ran.append, "child"))
    first = graph.add(lambda s: s.call(ran.append, "first"))
    node = graph.add_graph(child, after=[first])
    graph.add(lambda s: s.call(ran.append, "last"), after=[node])
    child.add(lambda s: s.call(ran.append, "later"))
    with hs.capture(s) as outer:
        graph.instantiate().launch(s)
    assert [n.kind for n in outer.nodes] == ["graph"]
    outer.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == ["first", "child", "last"]


class Function:
    def __call__(self) -> None:
        raise AssertionError("a node that was dropped ran")


def _two(s: hs.Stream, f: Function) -> None:
    s.call(f)
    s.call(f)


def _raise(s: hs.Stream, f: Function) -> None:
    s.call(f)
    raise LookupError


def _synchronize(s: hs.Stream, f: Function) -> None:
    s.call(f)
    s.synchronize()


def _ignore(s: hs.Stream, f: Function) -> None:
    s.call(f)
    with pytest.raises(hs.CaptureError):
        s.query()


@pytest.mark.parametrize(
    ("enqueue", "error"),
    [(_two, hs.InvalidValueError), (_raise, LookupError), (_synchronize, hs.CaptureError), (_ignore, hs.CaptureError)],
)
def test_G5_a_node_that_cannot_be_added_leaves_the_graph_as_it_was(
    enqueue: Callable[[hs.Stream, Function], None], error: type[Exception]
) -> None:
    s, graph, ran = hs.Stream(), hs.Graph(), []
    first = graph.add(lambda s: s.call(ran.append, "first"))
    gone = threading.Event()

    def add() -> None:
        function = Function()
        weakref.finalize(function, gone.set)
        with pytest.raises(error):
            graph.add(lambda s: enqueue(s, function), after=[first])

    add()
    assert len(graph.nodes) == 1
    gc.collect()
    hs.Graph()  # drops what is not needed any more
    assert set_soon(gone, LIMIT), "the function of a node that was dropped is kept"
    assert graph.add(lambda s: s.call(ran.append, "last"), after=[first]) == 1
    graph.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == ["first", "last"]


def test_G5_nodes_that_were_built_have_the_lines_that_added_them() -> None:
    graph, body = hs.Graph(), hs.Graph()
    line = inspect.stack()[0].lineno
    body.add(lambda s: s.nop())
    graph.add_graph(body)
    graph.add_if(hs.Condition(1), body)
    graph.add_switch(hs.Condition(1), [body])
    wheres = [n.where for n in body.nodes + graph.nodes]
    assert [f"test_graph_build.py:{line + 1 + i} " in where for i, where in enumerate(wheres)] == [True] * 4, wheres


def test_G9_a_refused_update_names_the_node_in_its_graph_and_its_line() -> None:
    def child(*kinds: str) -> hs.Graph:
        graph = hs.Graph()
        for kind in kinds:
            graph.add(lambda s, kind=kind: s.nop() if kind == "empty" else s.delay(1e-6))
        return graph

    def around(inner: hs.Graph, last: str) -> hs.Graph:
        graph = hs.Graph()
        graph.add(lambda s: s.nop())
        graph.add_graph(inner, after=[0])
        graph.add(lambda s: s.nop() if last == "empty" else s.delay(1e-6), after=[0])
        return graph

    run = around(child("delay", "empty"), "delay").instantiate()
    here = r"at .*test_graph_build.py:\d+"
    for graph, text in (
        (around(child("delay", "empty"), "empty"), rf"type of node 2 \(delay {here}\) changed from delay to empty"),
        (
            around(child("empty", "empty"), "delay"),
            rf"type of node 0 \(delay {here}\) in the graph of node 1 \(graph {here}\) changed from delay to empty",
        ),
        (
            around(child("delay"), "delay"),
            rf"topology changed in the graph of node 1 \(graph {here}\): it has more or fewer nodes",
        ),
        (child("empty"), r"the number of nodes is 1, and was 3"),
    ):
        with pytest.raises(hs.CaptureError, match=text) as caught:
            run.update(graph)
        assert caught.value.code == 910


def test_G6_graphs_cannot_be_copied_but_by_clone() -> None:
    graph = hs.Graph()
    graph.add(lambda s: s.nop())
    run = graph.instantiate()
    for thing in (graph, run):
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=f"cannot pickle or copy a {type(thing).__name__}"):
                way(thing)
    assert (repr(graph), repr(run)) == ("<halstream.Graph of 1 node>", "<halstream.GraphExec of 1 node>")
    run.close()
    assert repr(run) == "<halstream.GraphExec, closed>"


def test_G11_an_update_of_a_closed_executable_leaves_nothing_behind() -> None:
    graph = hs.Graph()
    graph.add(lambda s: s.nop())
    run = graph.instantiate()
    streams = []

    def close(s: hs.Stream) -> None:
        streams.append(s)
        run.close()

    with pytest.raises(hs.ClosedError):
        run.update_node(0, close)
    with pytest.raises(hs.ClosedError):
        streams[0].nop()


def test_G5_indices_of_nodes_are_checked() -> None:
    graph = hs.Graph()
    first = graph.add(lambda s: s.nop())
    assert graph.add(lambda s: s.nop(), after=[np.int64(first)]) == 1
    wrong: Any
    for wrong in (["0"], [0.0], "0", [None], 1):
        with pytest.raises(TypeError):
            graph.add(lambda s: s.nop(), after=wrong)
        with pytest.raises(TypeError):
            graph.add_graph(hs.Graph(), after=wrong)
    with pytest.raises(hs.InvalidValueError, match="names node 0 twice"):
        graph.add(lambda s: s.nop(), after=[0, 0])
    assert len(graph.nodes) == 2 and graph.edges == [(0, 1)]
