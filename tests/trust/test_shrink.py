"""Shrinking: from a failing order to the fewest departures from fifo, within a budget."""

from __future__ import annotations

import random
from collections.abc import Callable

import hypothesis.strategies as st
import pytest
from halstream._schedules.execution import Execution
from halstream._schedules.shrink import Budget, Shrunk, chain, departures, shrink
from halstream._schedules.token import Hold
from hypothesis import given, settings
from schedule_model import Device, Program


def shrunk(program: Callable[[Device], None], spec: str, **budget: float) -> Shrunk:
    run = Program(program)
    fifo = run("fifo")
    assert fifo.failure is None
    failing = next(e for e in (run(spec.format(seed=seed)) for seed in range(100)) if e.failure)
    return shrink(run, fifo, failing, Budget(**budget))  # type: ignore[arg-type]


def missing_wait(device: Device) -> None:
    """The fifth operation of stream 2 reads what the seventh of stream 1 writes."""
    state = {"value": 0}
    for number in range(1, 10):
        device.op("a", lambda number=number: number == 7 and state.update(value=1))
    for number in range(1, 10):
        device.op("b", lambda number=number: number == 5 and state.update(seen=state["value"]))
    device.sync("b")
    device.sync("a")
    assert state["seen"] == 1


@pytest.mark.parametrize("spec", ["latest", "starve 1", "random {seed}", "pct {seed} 3 40"])
def test_one_hold_is_left_and_it_names_the_two_operations(spec: str) -> None:
    result = shrunk(missing_wait, spec)
    assert result.holds == (Hold(1, 7, 2, 5),)
    assert result.complete
    assert result.first >= 1


def refilled(device: Device) -> None:
    """The host writes a buffer again before the copy from it has run."""
    buffer, copied = [1], []
    device.op("other")
    device.op("copies", lambda: copied.append(buffer[0]))
    buffer[0] = 2
    device.op("other")
    device.sync("copies")
    assert copied == [1]


def test_a_hold_until_a_call_of_the_host() -> None:
    # The copy is call 2; the host's own write shows once call 3 has begun.
    assert shrunk(refilled, "latest").holds == (Hold(2, 1, 0, 3),)


def two_races(device: Device) -> None:
    """It takes two departures at once to fail."""
    state = {"a": 0, "b": 0}
    device.op(1, lambda: state.update(a=1))
    device.op(2, lambda: state.update(seen_a=state["a"]))
    device.op(3, lambda: state.update(b=1))
    device.op(4, lambda: state.update(seen_b=state["b"]))
    for stream in (4, 2, 3, 1):
        device.sync(stream)
    assert state["seen_a"] or state["seen_b"]


def test_two_holds_where_one_is_not_enough() -> None:
    assert set(shrunk(two_races, "latest").holds) == {Hold(1, 1, 2, 1), Hold(3, 1, 4, 1)}


def test_only_the_same_failure_counts() -> None:
    def program(device: Device) -> None:
        seen: list[str] = []
        for name in "abc":
            device.op(name, lambda name=name: seen.append(name))
        for name in "cba":
            device.sync(name)
        if seen[0] == "b":
            raise LookupError("another failure")
        assert seen[0] != "c", seen

    result = shrunk(program, "latest")
    assert result.execution is not None
    assert result.execution.failure is not None
    assert result.execution.failure.type == "AssertionError"
    assert set(result.holds) == {Hold(1, 1, 3, 1), Hold(2, 1, 3, 1)}


def test_the_budget_of_runs_ends_it() -> None:
    result = shrunk(missing_wait, "random {seed}", runs=3)
    assert not result.complete
    assert result.runs == 3


def test_the_budget_of_seconds_ends_it() -> None:
    run = Program(missing_wait)
    fifo, failing = run("fifo"), run("latest")
    clock = iter(range(1000))  # each look takes a second
    result = shrink(run, fifo, failing, Budget(seconds=3.5, clock=lambda: next(clock)))
    assert not result.complete
    assert result.runs <= 3


def test_without_a_budget_nothing_is_run() -> None:
    result = shrunk(missing_wait, "latest", runs=0)
    assert (result.holds, result.execution, result.runs, result.complete) == ((), None, 0, False)


def test_what_holds_do_not_reproduce_is_left_alone() -> None:
    # Fails under latest only: no list of holds brings it about.
    run = Program(lambda device: None)

    def stubborn(spec: str) -> Execution:
        execution = Program(missing_wait)(spec)
        return execution if spec == "latest" else Execution(spec, execution.order)

    fifo, failing = stubborn("fifo"), stubborn("latest")
    result = shrink(stubborn, fifo, failing, Budget())
    assert (result.holds, result.execution) == ((), None)
    assert result.complete
    assert run.specs == []


def test_a_long_program_shrinks_in_few_runs() -> None:
    def program(device: Device) -> None:
        state = {"value": 0}
        rest = random.Random(5)
        for number in range(200):
            for stream in rest.sample(range(5), 5):

                def function(number: int = number, stream: int = stream) -> None:
                    if (stream, number) == (1, 100):
                        state["value"] = 1
                    elif (stream, number) == (3, 101):
                        state["seen"] = state["value"]

                device.op(stream, function)
        for stream in range(5):
            device.sync(stream)
        assert state["seen"]

    run = Program(program)
    fifo = run("fifo")
    failing = next(e for e in map(run, (f"random {seed}" for seed in range(50))) if e.failure)
    result = shrink(run, fifo, failing, Budget(seconds=1e9))
    assert len(result.holds) == 1
    assert result.complete
    hold = result.holds[0]
    assert (hold.number, hold.after) == (101, 102)


def test_departures_of_fifo_itself_are_none() -> None:
    run = Program(missing_wait)
    fifo = run("fifo")
    assert departures(fifo.items, fifo.items) == ()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["random", "pct", "latest", "starve"]))
def test_departures_bring_about_the_order_that_they_were_taken_from(seed: int, kind: str) -> None:
    draw = random.Random(seed)

    def program(device: Device) -> None:
        rest = random.Random(seed)
        made = []
        for _ in range(12):
            after = rest.sample(made, min(len(made), rest.randrange(2)))
            made.append(device.op(rest.randrange(3), after=after))
            if rest.random() < 0.1:
                device.sync(rest.randrange(3))
        for stream in range(3):
            device.sync(stream)

    run = Program(program)
    spec = {"random": f"random {seed}", "pct": f"pct {seed} 3 30", "starve": f"starve {draw.randrange(3) + 1}"}
    fifo, other = run("fifo"), run(spec.get(kind, kind))
    holds = departures(fifo.items, other.items) or chain(fifo.items, other.items)
    again = run("holds " + ",".join(map(str, holds))) if holds else fifo
    assert again.items == other.items
