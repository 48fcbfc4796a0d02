"""Functions in captures: their order, their lines, and when none are taken."""

from __future__ import annotations

import gc
import pathlib
import re
import runpy
import sys
import threading
import weakref

import halstream as hs
import pytest
from capture_help import LIMIT

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def test_G1_a_node_that_only_libraries_enqueue_has_the_line_of_the_innermost(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    file = folder / "library.py"
    file.write_text("def work(s):\n    s.nop()\n    s.nop()\n    s.call(print)\n    s.call(print)\n")
    library = runpy.run_path(str(file))
    s = hs.Stream()
    with hs.capture(s) as graph:
        thread = threading.Thread(target=library["work"], args=(s,))
        thread.start()
        thread.join(LIMIT)
    assert [re.findall(r"(\w+\.py):(\d+)", node.where)[0] for node in graph.nodes] == [
        ("library.py", str(line)) for line in (2, 3, 4, 5)
    ]


def test_G1_calls_are_nodes_in_their_order_whichever_streams_they_are_on() -> None:
    streams = [hs.Stream() for _ in range(11)]
    ran: list[int] = []
    first = sys._getframe().f_lineno + 9
    with hs.capture(streams[0]) as graph:
        for s in streams[1:]:
            s.wait(streams[0])
        for i in range(2400):
            s = streams[i * 7 // 50 % 11]
            if i % 100 == 99:
                s.nop()
            else:
                s.call(ran.append, i)
            s.call(ran.append, i)
        for s in streams[1:]:
            streams[0].wait(s)
    kinds = [kind for i in range(2400) for kind in ("empty" if i % 100 == 99 else "call", "call")]
    assert [node.kind for node in graph.nodes] == kinds
    lines = [int(re.findall(r"test_capture_calls\.py:(\d+)", node.where)[0]) - first for node in graph.nodes]
    assert lines == [line for i in range(2400) for line in (-2 if i % 100 == 99 else 0, 1)]
    latest: dict[int, int] = {}
    edges = []
    for i in range(2400):
        on = i * 7 // 50 % 11
        edges += [(latest[on], 2 * i)] if on in latest else []
        edges.append((2 * i, 2 * i + 1))
        latest[on] = 2 * i + 1
    assert sorted(graph.edges) == sorted(edges)
    run = graph.instantiate()
    for times in (1, 2):
        run.launch(streams[0])
        streams[0].synchronize(timeout=LIMIT)
        assert sorted(ran) == sorted(times * [i for i in range(2400) for _ in range(1 if i % 100 == 99 else 2)])


def test_G1_each_of_many_calls_in_one_function_has_its_line() -> None:
    s, lines = hs.Stream(), 200
    with hs.capture(s) as graph:
        exec(compile(lines * "s.call(print)\n", "many_calls.py", "exec"), {"s": s})
    assert [node.where.split()[0] for node in graph.nodes] == [f"many_calls.py:{i + 1}" for i in range(lines)]


def test_G4_no_call_is_added_to_a_capture_that_was_invalidated_or_has_ended() -> None:
    s, ran = hs.Stream(), []
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(s):
        s.call(ran.append, 1)
        s.call(ran.append, 2)
        with pytest.raises(hs.CaptureError, match="query"):
            s.query()
        for _ in range(2):
            with pytest.raises(hs.CaptureError, match="was invalidated"):
                s.call(ran.append, 3)
    s.call(ran.append, 4)
    s.synchronize(timeout=LIMIT)
    assert ran == [4]
    with hs.capture(s) as graph:
        s.call(ran.append, 5)
        s.call(ran.append, 6)
    s.call(ran.append, 7)
    s.synchronize(timeout=LIMIT)
    assert ran == [4, 7]
    assert len(graph.nodes) == 2


def test_G1_each_function_of_a_list_is_a_node() -> None:
    s, ran, many = hs.Stream(), [], 5000
    with hs.capture(s) as graph:
        s.call_many([(ran.append, i) for i in range(many)])
        s.nop()
        s.call_many([(ran.append, many), (ran.append, many + 1)])
    assert [node.kind for node in graph.nodes] == many * ["call"] + ["empty"] + 2 * ["call"]
    assert graph.edges == [(i, i + 1) for i in range(many + 2)]
    graph.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == list(range(many + 2))
    with pytest.raises(hs.CaptureError, match="was invalidated"), hs.capture(s):
        s.call_many([ran.clear, ran.clear])
        with pytest.raises(hs.CaptureError, match="query"):
            s.query()
        with pytest.raises(hs.CaptureError, match="was invalidated"):
            s.call_many([ran.clear, ran.clear])
    s.synchronize(timeout=LIMIT)
    assert ran == list(range(many + 2))


def test_G4_no_call_is_added_to_a_capture_whose_first_stream_was_dropped() -> None:
    s, other, ran = hs.Stream(), hs.Stream(), []
    hs.capture(s).__enter__()
    other.wait(s)
    other.call(ran.append, 1)
    other.call(ran.append, 2)
    del s
    other.call(ran.append, 3)
    other.synchronize(timeout=LIMIT)
    assert ran == [3]


def test_G1_captures_of_two_streams_at_once_keep_their_calls_apart() -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    with hs.capture(a) as one, hs.capture(b) as two:
        for i in range(6):
            (a if i % 4 < 2 else b).call(ran.append, i)
    assert [len(graph.nodes) for graph in (one, two)] == [4, 2]
    one.instantiate().launch(a)
    a.synchronize(timeout=LIMIT)
    two.instantiate().launch(a)
    a.synchronize(timeout=LIMIT)
    assert ran == [0, 1, 4, 5, 2, 3]


def test_G6_calls_are_released_with_a_graph_whose_nodes_nobody_has_looked_at() -> None:
    class Kept:
        pass

    s, gone = hs.Stream(), [threading.Event() for _ in range(3)]
    with hs.capture(s) as graph:
        for event in gone:
            argument = Kept()
            weakref.finalize(argument, event.set)
            s.call(id, argument)
    del argument
    gc.collect()
    assert not any(event.is_set() for event in gone)
    graph.close()
    hs.Graph()
    assert all(event.wait(LIMIT) for event in gone)


def test_G6_functions_of_a_collected_graph_are_released_by_the_call_that_closes_it() -> None:
    class Kept:
        def __init__(self, graph: hs.Graph | None = None) -> None:
            self.graph = graph

        def __del__(self) -> None:
            released.append(threading.get_ident())
            self.graph = None
            hs.Graph()  # closes that graph, while another one is closed

    def graph_of(*kept: Kept) -> hs.Graph:
        with hs.capture(s) as graph:
            for one in kept:
                s.call(id, one)
        return graph

    s = hs.Stream()
    released: list[int] = []
    graph: hs.Graph | None = None
    for _ in range(3):
        graph = graph_of(*(Kept() for _ in range(100)), Kept(graph), *(Kept() for _ in range(100)))
    run = graph_of(Kept()).instantiate()
    hs.Graph()
    assert released == [], "graphs and an executable keep them"
    del graph, run
    hs.Graph()
    assert released == [threading.get_ident()] * (3 * 201 + 1)
