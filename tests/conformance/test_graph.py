"""Graphs: building, launching, updating, and what they keep alive."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from endings import set_soon

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def test_G6_what_nodes_use_lives_as_long_as_it_is_needed(hold: Hold) -> None:
    class Argument:
        pass

    s, argument = hs.Stream(), Argument()
    gone = threading.Event()
    weakref.finalize(argument, gone.set)
    seen: list[type] = []
    with hs.capture(s) as graph:
        s.call(lambda value: seen.append(type(value)), argument)
    del argument
    run = graph.instantiate()
    del graph
    gate = hold(s)
    run.launch(s)
    del run
    gc.collect()
    hs.Graph()  # closes what was collected
    assert not gone.is_set(), "the launch in flight keeps it"
    gate.open()
    s.synchronize(timeout=LIMIT)
    hs.Graph()
    assert seen == [Argument]
    assert set_soon(gone, LIMIT), "nothing keeps it any more"


def test_G6_arrays_that_were_collected_live_on_in_a_graph() -> None:
    s = hs.Stream()
    a, b, c = (hs.zeros(256, "u1") for _ in range(3))
    hs.synchronize()
    with hs.capture(s, "relaxed") as graph:
        c.copy_from(a, s)
        b.copy_from(a, s)
        c.copy_from(b, s)
    run = graph.instantiate()
    a.fill(7)
    hs.synchronize()
    del b
    gc.collect()
    others = [hs.zeros(256, "u1") for _ in range(4)]
    hs.synchronize()
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert np.all(c.numpy() == 7)
    assert all(np.all(other.numpy() == 0) for other in others)


def test_G8_nodes_run_once_and_after_those_that_they_come_after() -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    with hs.capture(a) as graph:
        a.call(ran.append, "first")
        b.wait(a)
        b.call(ran.append, "b1")
        a.call(ran.append, "a1")
        b.call(ran.append, "b2")
        a.wait(b)
        a.call(ran.append, "last")
    run = graph.instantiate()
    for _ in range(3):
        ran.clear()
        run.launch(b)
        b.call(ran.append, "behind")
        b.synchronize(timeout=LIMIT)
        assert sorted(ran[1:4]) == ["a1", "b1", "b2"]
        assert (ran[0], ran[4:]) == ("first", ["last", "behind"])
        assert ran.index("b1") < ran.index("b2")


def test_G8_a_branch_that_is_held_holds_no_other() -> None:
    s, release, other = hs.Stream(), threading.Event(), threading.Event()
    graph = hs.Graph()
    graph.add(lambda s: s.call(release.wait, LIMIT))
    graph.add(lambda s: s.call(other.set))
    graph.instantiate().launch(s)
    try:
        assert other.wait(LIMIT)
        assert not s.query()
    finally:
        release.set()
    s.synchronize(timeout=LIMIT)


def test_G8_launches_of_one_executable_follow_each_other(hold: Hold, settle: Callable[[], None]) -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    with hs.capture(a) as graph:
        a.call(ran.append, 1)
    run = graph.instantiate()
    gate = hold(a)
    run.launch(a)
    run.launch(b)
    settle()
    assert ran == []
    gate.open()
    b.synchronize(timeout=LIMIT)
    assert ran == [1, 1]


def test_G8_an_exception_of_a_node_is_raised_by_the_stream() -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    with hs.capture(a) as graph:
        a.call_checked(lambda: 1 / 0)
    run = graph.instantiate()
    for _ in range(2):
        run.launch(b)
        b.call(ran.append, 1)
        with pytest.raises(ZeroDivisionError):
            b.synchronize(timeout=LIMIT)
    a.synchronize(timeout=LIMIT)
    assert ran == [1, 1]


@pytest.mark.parametrize("schedule", ["fifo", "latest", "random 1", "random 2", "starve 1"])
@pytest.mark.needs("schedules")
def test_G8_branches_are_ordered_under_schedules(schedule: str, under: Callable[[str], None]) -> None:
    orders = []
    for _ in range(2):
        a, b, ran = hs.Stream(), hs.Stream(), []
        with hs.capture(a) as graph:
            for i in range(3):
                b.wait(a)
                a.call(ran.append, f"a{i}")
                b.call(ran.append, f"b{i}")
                a.wait(b)
        run = graph.instantiate()
        under(schedule)
        run.launch(a)
        run.launch(b)
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
        assert [sorted(ran[i : i + 2]) for i in range(0, 12, 2)] == [[f"a{i}", f"b{i}"] for i in range(3)] * 2
        orders.append(ran)
    assert orders[0] == orders[1], "a schedule gives the same order again"


def test_G9_an_update_is_for_later_launches_and_the_same_topology(hold: Hold) -> None:
    s, ran = hs.Stream(), []

    def of(*names: str) -> hs.Graph:
        with hs.capture(s) as graph:
            for name in names:
                s.call(ran.append, name)
        return graph

    run = of("old").instantiate()
    gate = hold(s)
    run.launch(s)
    run.update(of("new"))
    run.launch(s)
    with pytest.raises(hs.CaptureError, match="the number of nodes is 2, and was 1") as caught:
        run.update(of("a", "b"))
    assert caught.value.code == 910
    other = hs.Graph()
    other.add(lambda s: s.nop())
    with pytest.raises(hs.CaptureError, match="from call to empty"):
        run.update(other)
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert ran == ["old", "new"]


def test_G10_freed_memory_fails_a_launch_before_anything_runs() -> None:
    s, ran = hs.Stream(), []
    a, b = hs.zeros(64, "u1"), hs.zeros(64, "u1")
    hs.synchronize()
    with hs.capture(s, "relaxed") as graph:
        s.call(ran.append, 1)
        b.copy_from(a, s)
    run = graph.instantiate()
    a._memory.free()
    with pytest.raises(hs.InvalidValueError, match=r"node 1 \(copy at .*test_graph.py:\d+\)"):
        run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == []


def test_G10_freed_memory_fails_an_instantiation_and_an_update() -> None:
    s, a, b = hs.Stream(), hs.zeros(64, "u1"), hs.zeros(64, "u1")
    hs.synchronize()
    graphs = []
    for array in (a, b):
        with hs.capture(s) as graph:
            array.fill(7, s)
        graphs.append(graph)
    run = graphs[0].instantiate()
    b._memory.free()
    wrong = r"node 0 \(fill at .*test_graph.py:\d+\) works on were freed; keep memory until the last launch"
    with pytest.raises(hs.InvalidValueError, match=wrong):
        graphs[1].instantiate()
    with pytest.raises(hs.InvalidValueError, match=wrong):
        run.update(graphs[1])
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert a.numpy()[0] == 7


def test_G10_objects_of_other_types_are_type_errors() -> None:
    graph = hs.Graph()
    run = graph.instantiate()
    with pytest.raises(TypeError):
        run.launch(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        run.update(run)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        hs.GraphExec()
    run.close()
    run.close()
    with pytest.raises(hs.HalError):
        run.launch(hs.Stream())


def test_G8_a_graph_outlives_its_streams() -> None:
    a, b, ran = hs.Stream(), hs.Stream(), []
    array = hs.zeros(64, "u1")
    hs.synchronize()
    with hs.capture(a) as graph:
        array.fill(4, a)
        b.wait(a)
        b.call(ran.append, 1)
        a.wait(b)
    a.close()
    b.close()
    run, s = graph.instantiate(), hs.Stream()
    with pytest.raises(hs.ClosedError):
        run.launch(a)
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert (ran, array.numpy()[0]) == ([1], 4)
    assert "n0 -> n1;" in graph.dot()
