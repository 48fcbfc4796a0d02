"""Nodes of graphs with conditions whose bodies any device runs by itself: copies and fills."""

from __future__ import annotations

from collections.abc import Sequence

import halstream as hs
import numpy as np
import pytest

LIMIT = 10.0

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("graphs")]


def words(*values: int) -> hs.Array:
    array = hs.asarray(np.array(values, np.uint32))
    hs.synchronize()
    return array


def fill(array: hs.Array, value: int) -> hs.Graph:
    graph = hs.Graph()
    graph.add(lambda s: array.fill(value, s))
    return graph


def numbers(array: hs.Array) -> Sequence[int]:
    found: list[int] = array.numpy().tolist()
    return found


def test_G13_a_body_of_copies_runs_again_while_the_condition_is_not_0() -> None:
    s, condition = hs.Stream(), hs.Condition(1)
    left, spare, turns, rest = words(1, 1, 0), words(0, 0), words(0, 1, 2, 3, 4, 5), words(*[0] * 5)
    with hs.capture(s) as body:
        rest.copy_from(turns[1:], s)
        turns[:5].copy_from(rest, s)
        spare.copy_from(left[1:], s)
        left[:2].copy_from(spare, s)
        left[:1].copy_to(condition.array, s)
    graph = hs.Graph()
    graph.add_while(condition, body)
    run = graph.instantiate()
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert (numbers(turns)[0], condition.value) == (2, 0)
    run.launch(s)
    run.launch(s)
    s.synchronize(timeout=LIMIT)
    assert numbers(turns)[0] == 4, "each launch begins with the initial value, for one turn"


def test_G13_a_node_runs_the_fills_that_its_condition_selects() -> None:
    s, choice, a, b = hs.Stream(), hs.Condition(None), words(0), words(0)
    graph = hs.Graph()
    graph.add_switch(choice, [fill(a, 10), fill(a, 11), fill(a, 12)])
    graph.add_if(choice, fill(b, 1), otherwise=fill(b, 2))
    run = graph.instantiate()
    for value, wanted in ((0, (10, 2)), (2, (12, 1)), (3, (0, 1)), (2**32 - 1, (0, 1))):
        a.fill(0, s)
        s.synchronize(timeout=LIMIT)
        choice.value = value
        run.launch(s)
        s.synchronize(timeout=LIMIT)
        assert (*numbers(a), *numbers(b)) == wanted


def test_G13_functions_around_a_condition_see_what_its_body_did() -> None:
    s, condition, a = hs.Stream(), hs.Condition(0), words(0)
    result, seen = hs.pinned_empty(1, "u4"), list[int]()

    def decide() -> None:
        condition.value = len(seen)

    graph = hs.Graph()
    first = graph.add(lambda t: t.call(decide))
    node = graph.add_if(condition, fill(a, 9), after=[first])
    copied = graph.add(lambda t: a.copy_to(result, t), after=[node])
    graph.add(lambda t: t.call(lambda: seen.append(int(result[0]))), after=[copied])
    run = graph.instantiate()
    for _ in range(2):
        run.launch(s)
        s.synchronize(timeout=LIMIT)
    assert seen == [0, 9]


@pytest.mark.needs("cuda-driver")
def test_G13_a_function_in_a_body_is_refused_by_its_line() -> None:
    body, graph = hs.Graph(), hs.Graph()
    body.add(lambda s: s.call(print))
    graph.add_if(hs.Condition(1), body)
    with pytest.raises(
        hs.NotSupportedError, match=r"node 0 \(call at .*test_graph_condition_device.py:\d+\) cannot be in a body"
    ):
        graph.instantiate()
