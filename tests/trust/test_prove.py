"""Running a program in every order that can make a difference, each of them once."""

from __future__ import annotations

import io
import itertools
import random
import re
import sys
from types import SimpleNamespace
from typing import Any

import halstream as hs
import pytest
from halstream._schedules import prove
from halstream.testing import explore, schedule
from plugin_help import Runner

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

MOST = 5000


def test_X8_functions_of_two_streams_run_in_every_order() -> None:
    seen: set[str] = set()

    def program() -> None:
        order: list[str] = []
        streams = [hs.Stream() for _ in range(3)]
        for name, stream in zip("aabbcc", [s for s in streams for _ in range(2)], strict=True):
            stream.call(order.append, name)
        for stream in streams:
            stream.synchronize()
        seen.add("".join(order))

    explored = explore(program, prove=MOST)
    assert (explored.orders, explored.exhausted) == (90, True)  # 6! / 2!^3
    # No run is in vain: fifo, latest, earliest, one for each operation, one for each order.
    assert explored.schedules == 3 + 6 + 90
    assert len(seen) == 90
    assert str(explored) == "all 90 orders pass"


def test_X8_waits_and_accesses_leave_one_order() -> None:
    def program() -> None:
        one, two = hs.Stream(), hs.Stream()
        x, y = hs.zeros(4, stream=one), hs.zeros(4, stream=two)
        one.call(lambda a: None, x, writes=[x])
        two.call(lambda a: None, y, writes=[y])
        two.wait(one.record())
        two.call(lambda a: None, x, reads=[x])
        two.synchronize()

    assert str(explore(program, prove=MOST)) == "the only order passes"


@pytest.mark.parametrize("first", ["reads", "writes"])
def test_X8_a_read_conflicts_with_a_write(first: str) -> None:
    def program() -> None:
        one, two, x = hs.Stream(), hs.Stream(), hs.zeros(4)
        hs.Device().synchronize()
        one.call(lambda a: None, x, **{first: [x]})
        two.call(lambda a: None, x, **{"writes" if first == "reads" else "reads": [x]})
        hs.Device().synchronize()

    assert explore(program, prove=MOST).orders == 2


def test_X8_two_reads_do_not_conflict() -> None:
    def program() -> None:
        one, two, x = hs.Stream(), hs.Stream(), hs.zeros(4)
        hs.Device().synchronize()
        for stream in (one, two):
            stream.call(lambda a: None, x, reads=[x])
        hs.Device().synchronize()

    assert explore(program, prove=MOST).orders == 1


def test_X8_an_array_argument_declares_nothing_and_no_accesses_are_a_declaration() -> None:
    def program(**declared: Any) -> None:
        one, two = hs.Stream(), hs.Stream()
        x, y = hs.zeros(4, stream=one), hs.zeros(4, stream=two)
        one.call(lambda a: None, x, **declared)
        two.call(lambda a: None, y, **declared)
        hs.Device().synchronize()

    assert explore(program, prove=MOST).orders > 1
    assert explore(lambda: program(reads=()), prove=MOST).orders == 1


def test_X8_a_query_is_answered_both_ways() -> None:
    answers: set[bool] = set()

    def program() -> None:
        stream = hs.Stream()
        stream.nop()
        answers.add(stream.query())
        stream.synchronize()

    assert explore(program, prove=MOST).orders == 2
    assert answers == {True, False}


def test_X8_what_a_program_does_may_depend_on_the_order() -> None:
    runs: set[tuple[int, ...]] = set()

    def program() -> None:
        one, two, order = hs.Stream(), hs.Stream(), list[int]()
        one.call(order.append, 1)
        two.call(order.append, 2)
        one.synchronize()
        two.synchronize()
        if order[0] == 2:  # two more orders
            one.call(order.append, 3)
            two.call(order.append, 4)
            one.synchronize()
            two.synchronize()
        runs.add(tuple(order))

    assert explore(program, prove=MOST).orders == 3
    assert runs == {(1, 2), (2, 1, 3, 4), (2, 1, 4, 3)}


def test_X8_a_fault_that_needs_one_order_of_many_is_found_and_its_token_replays() -> None:
    def program() -> None:
        streams, order = [hs.Stream() for _ in range(4)], list[tuple[int, int]]()
        for number, stream in enumerate(streams):
            for turn in range(2):
                stream.call(order.append, (number, turn))
        for stream in streams:
            stream.synchronize()
        assert order != [(3, 0), (2, 0), (1, 0), (0, 0), (0, 1), (1, 1), (2, 1), (3, 1)]

    with pytest.raises(AssertionError) as caught:
        explore(program, prove=MOST)
    # CPython 3.10 has no notes: there it is a part of the text.
    note = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    token = note.rpartition("schedule('")[2].partition("'")[0]
    with pytest.raises(AssertionError), schedule(token):
        program()


def test_X8_the_search_says_when_there_are_more_orders() -> None:
    def program() -> None:
        for stream in (streams := [hs.Stream() for _ in range(4)]):
            for _ in range(3):
                stream.call(lambda: None)
        for stream in streams:
            stream.synchronize()

    explored = explore(program, prove=100)
    assert (explored.orders, explored.exhausted) == (100, False)
    assert str(explored) == "not exhausted: 100 orders pass, and there are more"


def test_X8_the_search_says_of_how_many_orders_it_ran_some() -> None:
    def program() -> None:
        for stream in (streams := [hs.Stream() for _ in range(3)]):
            for _ in range(2):
                stream.call(lambda: None)
        for stream in streams:
            stream.synchronize()

    assert str(explore(program, prove=50)) == "not exhausted: 50 of up to 90 orders pass"


@pytest.mark.parametrize("seed", range(12))
def test_X8_as_many_orders_as_there_are_classes(seed: int) -> None:
    """The classes are counted by going through all orders of a few operations."""
    draw = random.Random(seed)
    # Each operation: its stream, the array that it writes, and an earlier operation that its stream waits for.
    plan = [(draw.randrange(3), draw.randrange(2), draw.choice([None, *range(n)][-3:])) for n in range(6)]

    def program() -> None:
        streams, arrays = [hs.Stream() for _ in range(3)], [hs.zeros(1) for _ in range(2)]
        hs.Device().synchronize()
        events: list[hs.Event] = []
        for stream, array, waits in plan:
            if waits is not None:
                streams[stream].wait(events[waits])
            streams[stream].call(lambda a: None, arrays[array], writes=[arrays[array]])
            events.append(streams[stream].record())
        hs.Device().synchronize()

    explored = explore(program, prove=MOST)
    assert explored.orders == _classes(plan) <= explored.expected


def _classes(plan: list[tuple[int, int, int | None]]) -> int:
    def before(one: int, two: int) -> bool:
        return plan[one][0] == plan[two][0] or any(
            waits is not None and (waits == one or (plan[waits][0] == plan[one][0] and waits > one))
            for stream, _, waits in plan[: two + 1]
            if stream == plan[two][0]
        )

    count = len(plan)
    edges = {(one, two) for one, two in itertools.combinations(range(count), 2) if before(one, two)}
    pairs = [pair for pair in itertools.combinations(range(count), 2) if plan[pair[0]][1] == plan[pair[1]][1]]
    found: set[tuple[bool, ...]] = set()
    for order in itertools.permutations(range(count)):
        place = {operation: at for at, operation in enumerate(order)}
        if all(place[one] < place[two] for one, two in edges):
            found.add(tuple(place[one] < place[two] for one, two in pairs))
    return len(found)


def test_a_long_search_says_on_a_terminal_how_many_orders_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def program() -> None:
        for stream in (streams := [hs.Stream() for _ in range(2)]):
            for _ in range(2):
                stream.call(lambda: None)
        for stream in streams:
            stream.synchronize()

    terminal = Terminal()
    monkeypatch.setattr(sys, "__stderr__", terminal)
    monkeypatch.setattr(prove, "time", SimpleNamespace(monotonic=lambda: 0.0))
    assert str(explore(program, prove=MOST)) == "all 6 orders pass"
    assert terminal.getvalue() == ""  # it took less than two seconds
    seconds = itertools.count(step=3)  # between any two looks at the clock
    monkeypatch.setattr(prove, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    explore(program, prove=MOST)
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "halstream: 1 of up to 6 orders pass, at most about 15 s left"
    assert lines[-1] == "halstream: 6 of up to 6 orders pass"


def test_X2_an_operation_is_held_until_all_that_its_holds_name_has_run() -> None:
    order: list[int] = []
    with schedule("holds 1.1>3.1,1.1>2.1"):
        streams = [hs.Stream() for _ in range(3)]
        for number, stream in enumerate(streams, 1):
            stream.call(order.append, number)
        for stream in streams:
            stream.synchronize()
    assert order == [2, 3, 1]


@pytest.mark.parametrize("prove", [-1, 10**9])
def test_a_number_of_orders_out_of_range_is_refused(prove: int) -> None:
    with pytest.raises(hs.ScheduleError, match="prove is"):
        explore(lambda: None, prove=prove)


def test_the_plugin_says_how_many_orders_there_were(pytester: pytest.Pytester) -> None:
    run = Runner(pytester)
    source = """
    def test_right(): right()
    def test_race(): race()
    """
    result = run(source, "--stream-prove")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "streams: all orders, up to 10,000",
            "Fails under schedule hs1-holds-*",
            "*= orders of streams =*",
            "*::test_right: the only order passes",
        ]
    )
    result = run("import pytest\n@pytest.mark.streams(prove=3)\ndef test_right(): right()")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*::test_right: the only order passes"])
    bad: Any = run("def test_right(): right()", "--stream-prove=x")
    bad.stderr.fnmatch_lines(["*--stream-prove is 'x'; give a whole number"])


@pytest.mark.needs("graphs")
@pytest.mark.parametrize(("joined", "orders"), [(False, 2), (True, 1)])
def test_X10_a_proof_counts_the_orders_of_a_graph(joined: bool, orders: int) -> None:
    seen: set[tuple[int, ...]] = set()

    def program() -> None:
        out: list[int] = []
        main, side = hs.Stream(), hs.Stream()
        with hs.capture(main) as graph:
            side.wait(main)
            main.call(out.append, 1)
            if joined:
                side.wait(main)
            side.call(out.append, 2)
            main.wait(side)
        graph.instantiate().launch(main)
        main.synchronize()
        seen.add(tuple(out))

    explored = explore(program, prove=MOST)
    assert (explored.orders, explored.exhausted) == (orders, True)
    assert len(seen) == orders


@pytest.mark.needs("graphs")
@pytest.mark.parametrize("shared", [True, False])
def test_X10_nodes_conflict_by_their_own_accesses(shared: bool) -> None:
    """The accesses of the launch as a whole do not count."""

    def program() -> None:
        main, side, x, y = hs.Stream(), hs.Stream(), hs.zeros(4), hs.zeros(4)
        hs.Device().synchronize()
        with hs.capture(main) as graph:
            side.wait(main)
            x.fill(1, main)
            (x if shared else y).fill(2, side)
            main.wait(side)
        graph.instantiate().launch(main)
        main.synchronize()

    assert explore(program, prove=MOST).orders == (2 if shared else 1)


@pytest.mark.needs("graphs")
def test_X10_a_token_repeats_the_order_of_a_graphs_branches() -> None:
    out: list[int] = []

    def program() -> None:
        out.clear()
        main, side, other = hs.Stream(), hs.Stream(), hs.Stream()
        with hs.capture(main) as graph:
            side.wait(main)
            main.call(out.append, 1)
            side.call(out.append, 2)
            main.wait(side)
        graph.instantiate().launch(main)
        other.call(int)
        main.synchronize()
        other.synchronize()
        assert out == [1, 2]

    with pytest.raises(AssertionError) as failed:
        explore(program)
    text = "\n".join([str(failed.value), *getattr(failed.value, "__notes__", [])])
    token = re.search(r"schedule\('(hs1-[^']+)'\)", text)[1]  # type: ignore[index]
    for _ in range(20):
        with schedule(token), pytest.raises(AssertionError):
            program()
        assert out == [2, 1]
