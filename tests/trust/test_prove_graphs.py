"""Every order of graphs whose nodes run a graph once, often or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable

import halstream as hs
import pytest
from halstream.testing import explore, schedule

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules"), pytest.mark.needs("graphs")]

MOST = 5000


def _orders(program: Callable[[], None]) -> int:
    explored = explore(program, prove=MOST)
    assert explored.exhausted
    return explored.orders


def _less(condition: hs.Condition) -> Callable[[hs.Stream], None]:
    """Return what enqueues a function that makes a condition less by one."""

    def run(_: object) -> None:
        condition.value -= 1

    return lambda stream: stream.call(run, condition.array, writes=[condition.array])


def _write(array: hs.Array) -> Callable[[hs.Stream], None]:
    return lambda stream: stream.call(lambda _: None, array, writes=[array])


def _looping(times: int, launches: int = 1) -> None:
    main, left, x = hs.Stream(), hs.Condition(times), hs.zeros(4)
    hs.synchronize()
    body, graph = hs.Graph(), hs.Graph()
    body.add(_less(left), after=[body.add(_write(x)), body.add(_write(x))])
    graph.add_while(left, body)
    run = graph.instantiate()
    for _ in range(launches):
        run.launch(main)
    main.synchronize()


def _unrolled(times: int) -> None:
    main, x = hs.Stream(), hs.zeros(4)
    hs.synchronize()
    graph, before = hs.Graph(), list[int]()
    for _ in range(times):
        pair = [graph.add(_write(x), after=before) for _ in range(2)]
        before = [graph.add(lambda stream: stream.call(int, reads=()), after=pair)]
    graph.instantiate().launch(main)
    main.synchronize()


def test_X10_a_loop_has_the_orders_of_the_graph_that_repeats_its_body() -> None:
    assert _orders(lambda: _looping(3)) == _orders(lambda: _unrolled(3)) == 8


def test_X10_each_launch_of_a_loop_counts() -> None:
    assert _orders(lambda: _looping(2, launches=2)) == 16


def test_X10_loops_can_be_nested() -> None:
    seen: set[tuple[int, ...]] = set()

    def program() -> None:
        main, outer, inner, ran = hs.Stream(), hs.Condition(2), hs.Condition(None), list[int]()

        def begin() -> None:
            inner.value = 2

        def less(condition: hs.Condition) -> None:
            condition.value -= 1

        innermost, body, graph = hs.Graph(), hs.Graph(), hs.Graph()
        pair = [innermost.add(lambda stream, number=number: stream.call(ran.append, number)) for number in (1, 2)]
        innermost.add(lambda stream: stream.call(less, inner), after=pair)
        begun = body.add(lambda stream: stream.call(begin))
        body.add(lambda stream: stream.call(less, outer), after=[body.add_while(inner, innermost, after=[begun])])
        graph.add_while(outer, body)
        graph.instantiate().launch(main)
        main.synchronize()
        seen.add(tuple(ran))

    assert _orders(program) == 16
    assert len(seen) == 16


@pytest.mark.parametrize("kind", ["if", "else", "switch", "graph"])
def test_X10_nodes_of_a_body_that_runs_once_conflict_by_their_own_accesses(kind: str) -> None:
    def program(shared: bool) -> None:
        main, x, y = hs.Stream(), hs.zeros(4), hs.zeros(4)
        hs.synchronize()
        body, graph = hs.Graph(), hs.Graph()
        body.add(_write(x))
        if kind == "if":
            graph.add_if(hs.Condition(1), body)
        elif kind == "else":
            graph.add_if(hs.Condition(0), hs.Graph(), otherwise=body)
        elif kind == "switch":
            graph.add_switch(hs.Condition(1), [hs.Graph(), body])
        else:
            graph.add_graph(body)
        graph.add(_write(x if shared else y))
        graph.instantiate().launch(main)
        main.synchronize()

    assert _orders(lambda: program(shared=True)) == 2
    assert _orders(lambda: program(shared=False)) == 1


def test_X10_how_often_a_loop_runs_may_depend_on_the_order() -> None:
    """Another branch ends the loop before, between and behind the looks at the condition and what writes it."""
    seen: set[int] = set()

    def program() -> None:
        main, left, ran = hs.Stream(), hs.Condition(3), list[int]()

        def less(_: object) -> None:
            ran.append(left.value)
            left.value = max(left.value - 1, 0)

        def stop(_: object) -> None:
            left.value = 0

        body, graph = hs.Graph(), hs.Graph()
        body.add(lambda stream: stream.call(less, left.array, reads=[left.array], writes=[left.array]))
        graph.add_while(left, body)
        graph.add(lambda stream: stream.call(stop, left.array, writes=[left.array]))
        graph.instantiate().launch(main)
        main.synchronize()
        seen.add(len(ran))

    assert _orders(program) == 8  # four looks and three writes have eight places for the other write
    assert seen == {0, 1, 2, 3}


def test_X10_launches_of_one_loop_on_two_streams_have_one_order() -> None:
    def program() -> None:
        one, two, left, x = hs.Stream(), hs.Stream(), hs.Condition(2), hs.zeros(4)
        hs.synchronize()
        body, graph = hs.Graph(), hs.Graph()
        body.add(_less(left), after=[body.add(_write(x))])
        graph.add_while(left, body)
        run = graph.instantiate()
        run.launch(one)
        run.launch(two)
        hs.synchronize()

    assert _orders(program) == 1


@pytest.mark.parametrize("prove", [0, MOST])
def test_X10_a_fault_in_one_iteration_is_found_made_small_and_replayed(prove: int) -> None:
    def program() -> None:
        main, left, ran = hs.Stream(), hs.Condition(3), list[int]()

        def less() -> None:
            left.value -= 1

        body, graph = hs.Graph(), hs.Graph()
        pair = [body.add(lambda stream, number=number: stream.call(ran.append, number)) for number in (1, 2)]
        body.add(lambda stream: stream.call(less), after=pair)
        graph.add_while(left, body)
        graph.instantiate().launch(main)
        main.synchronize()
        assert ran != [1, 2, 2, 1, 1, 2]

    with pytest.raises(AssertionError) as caught:
        explore(program, schedules=2000, prove=prove)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert "1 operation is held" in text
    found = re.search(r"schedule\('(hs1-[^']+)'\)", text)
    assert found is not None
    with pytest.raises(AssertionError), schedule(found[1]):
        program()
