"""Nodes of graphs with conditions: bodies that run if, or while, a word of memory is not 0."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from typing import Any

import halstream as hs
import numpy as np
import pytest

LIMIT = 10.0

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs", "host")]


def calls(*functions: Any) -> hs.Graph:
    """Return a graph of functions in a chain."""
    graph, after = hs.Graph(), []
    for function in functions:
        after = [graph.add(lambda t, f=function: t.call(f), after=after)]
    return graph


def test_G13_a_body_runs_if_the_condition_is_not_0() -> None:
    s, ran, condition = hs.Stream(), [], hs.Condition(None)
    graph = calls(lambda: ran.append("first"))
    graph.add_if(condition, calls(lambda: ran.append("body")), after=[0])
    graph.add(lambda t: t.call(ran.append, "last"), after=[1])
    assert [node.kind for node in graph.nodes] == ["call", "if", "call"]
    run = graph.instantiate()
    for value in (0, 1 << 31, 0):
        ran.clear()
        condition.value = value
        run.launch(s)
        s.synchronize(timeout=LIMIT)
        assert ran == (["first", "body", "last"] if value else ["first", "last"])
    assert "if of 1 node" in graph.dot() and "1 nodes" not in graph.dot()


def test_G13_a_body_runs_again_while_the_condition_is_not_0() -> None:
    s, ran, left = hs.Stream(), [], hs.Condition(3)

    def step() -> None:
        ran.append(left.value)
        left.value -= 1

    graph = hs.Graph()
    graph.add_while(left, calls(step))
    run = graph.instantiate()
    run.launch(s)
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == [3, 2, 1] * 2, "each launch begins with the initial value"
    assert left.value == 0


def test_G13_a_node_runs_the_graph_that_its_condition_selects() -> None:
    s, ran, choice = hs.Stream(), list[str](), hs.Condition(None)
    graph = hs.Graph()
    cases = [calls(lambda n=n: ran.append(n)) for n in ("zero", "one", "two")]
    first = graph.add_switch(choice, (case for case in cases))
    graph.add_if(choice, calls(lambda: ran.append("then")), otherwise=calls(lambda: ran.append("else")), after=[first])
    cases[0].add(lambda t: t.call(ran.append, "later"))  # the node has the graphs as they were
    assert [node.kind for node in graph.nodes] == ["switch", "if"]
    run = graph.instantiate()
    for value, case in ((0, ["zero", "else"]), (1, ["one", "then"]), (2, ["two", "then"]), (3, ["then"])):
        ran.clear()
        choice.value = value
        run.launch(s)
        s.synchronize(timeout=LIMIT)
        assert ran == case
    ran.clear()
    choice.value = 2**32 - 1
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == ["then"]
    assert "switch of 3 graphs" in graph.dot() and "else of 1 node" in graph.dot() and "1 nodes" not in graph.dot()


def test_G13_a_switch_inside_a_loop_chooses_each_time_anew() -> None:
    s, ran, choice, left = hs.Stream(), list[int](), hs.Condition(0), hs.Condition(3)

    def step() -> None:
        left.value -= 1
        choice.value += 1

    body = calls(step)
    cases = [calls(lambda n=n: ran.append(n)) for n in range(3)]
    body.add_switch(choice, cases, after=[0])
    graph = hs.Graph()
    graph.add_while(left, body)
    run = graph.instantiate()
    for _ in range(2):
        run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == [1, 2] * 2, "each launch begins with the initial values, and there is no fourth graph"


def test_G13_fills_and_copies_of_a_capture_write_conditions() -> None:
    s, ran, condition = hs.Stream(), [], hs.Condition(1)
    numbers = hs.asarray(np.array([0], np.uint32))
    hs.synchronize()
    with hs.capture(s) as body:
        s.call(ran.append, "body")
        numbers.copy_to(condition.array, s)
    with hs.capture(s) as last:
        s.call(ran.append, "last")
    with hs.capture(s) as graph:
        condition.set(1, s)
    loop = graph.add_while(condition, body, after=[0])
    with hs.capture(s) as second:
        condition.set(0, s)
    off = graph.add_graph(second, after=[loop])
    graph.add_if(condition, last, after=[off])
    graph.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == ["body"]


def test_G13_bodies_that_cannot_be_are_refused() -> None:
    s, condition, event, graph = hs.Stream(), hs.Condition(1), hs.Event(), hs.Graph()
    with pytest.raises(hs.InvalidValueError, match="never end"):
        graph.add_while(condition, hs.Graph())
    with hs.capture(s) as records:
        s.record_external(event)
    with pytest.raises(hs.NotSupportedError, match=r"node 0 \(record at .*test_graph_condition.py"):
        graph.add_if(condition, records)
    with hs.capture(s) as allocates:
        hs.empty(16, "u1", stream=s).free()
    with pytest.raises(hs.NotSupportedError, match="cannot be a body"):
        graph.add_if(condition, allocates)
    with pytest.raises(TypeError, match="Condition"):
        graph.add_if(1, hs.Graph())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Graph"):
        graph.add_if(condition, None)  # type: ignore[arg-type]
    with pytest.raises(hs.InvalidValueError, match="one graph at least"):
        graph.add_switch(condition, [])
    with pytest.raises(TypeError, match="Graph"):
        graph.add_switch(condition, [hs.Graph(), None])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="Graph"):
        graph.add_if(condition, hs.Graph(), otherwise=1)  # type: ignore[arg-type]
    for number in (-1, 1 << 32):
        with pytest.raises(hs.InvalidValueError):
            hs.Condition(number)
        with pytest.raises(hs.InvalidValueError):
            condition.value = number
    assert graph.nodes == []


def test_G13_an_exception_in_a_body_is_that_of_the_stream() -> None:
    s, ran, condition = hs.Stream(), [], hs.Condition(1)
    with hs.capture(s) as body:
        s.call_checked(lambda: 1 / 0)
    graph = hs.Graph()
    graph.add_if(condition, body)
    graph.instantiate().launch(s)
    s.call(ran.append, 1)
    with pytest.raises(ZeroDivisionError):
        s.synchronize(timeout=LIMIT)
    assert ran == [1]


def test_G13_a_body_in_which_a_function_fails_does_not_run_again() -> None:
    s, condition, body, graph, ran = hs.Stream(), hs.Condition(1), hs.Graph(), hs.Graph(), []

    def step() -> None:
        ran.append(len(ran))
        raise ValueError("before the condition is written")

    body.add(lambda t: t.call_checked(step))
    graph.add_while(condition, body)
    run = graph.instantiate()
    for _ in range(2):
        run.launch(s)
        with pytest.raises(ValueError, match="before the condition"):
            s.synchronize(timeout=LIMIT)
    assert ran == [0, 1]


@pytest.mark.parametrize("depth", ["body", "if", "child", "loop"])
def test_G13_a_loop_ends_whose_function_has_failed_before_it_wrote_the_condition(
    depth: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s, condition, ran, told = hs.Stream(), hs.Condition(1), list[int](), list[object]()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))

    def step() -> None:
        ran.append(1)
        raise ValueError("before the condition is written")

    graph, body, outer = hs.Graph(), hs.Graph(), hs.Graph()
    body.add(lambda t: t.call(step))  # the function
    if depth == "if":
        outer.add_if(hs.Condition(1), body)
    elif depth == "child":
        outer.add_graph(body)
    elif depth == "loop":
        outer.add_while(hs.Condition(1), body)
    graph.add_while(condition, body if depth == "body" else outer)
    graph.add(lambda t: t.call(ran.append, 2), after=[0])
    run = graph.instantiate()
    for _ in range(2):
        run.launch(s)
        with pytest.raises(hs.HostFunctionError, match="nothing has changed its condition") as caught:
            s.synchronize(timeout=LIMIT)
        assert len(re.findall(rf"{re.escape(__file__)}:\d+", str(caught.value))) == 2, "the loop and the function"
    assert ran == [1, 2, 1, 2], "what comes behind the loop runs"
    assert [type(exc) for exc in told] == [ValueError, ValueError]


def test_G13_a_loop_goes_on_whose_condition_changes_where_a_function_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    s, left, told = hs.Stream(), hs.Condition(3), list[object]()
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))

    def less() -> None:
        left.value -= 1

    def fail() -> None:
        raise ValueError

    graph = hs.Graph()
    graph.add_while(left, calls(fail, less))
    graph.instantiate().launch(s)
    s.synchronize(timeout=LIMIT)
    assert left.value == 0
    assert len(told) == 3


def test_G13_the_graph_keeps_the_word() -> None:
    s, ran = hs.Stream(), []
    graph = hs.Graph()
    graph.add_if(hs.Condition(1), calls(lambda: ran.append(1)))
    run = graph.instantiate()
    others = [hs.pinned_empty(1, "u4") for _ in range(8)]
    for other in others:
        other[0] = 0
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert ran == [1]


def test_G13_a_condition_is_not_copied_and_says_what_it_is() -> None:
    condition = hs.Condition(3)
    assert repr(condition) == f"<halstream.Condition {condition.ptr:#x}, initial 3>"
    for make in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot pickle or copy a Condition"):
            make(condition)
