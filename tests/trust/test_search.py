"""The search: which schedules are tried, what is confirmed, and what is said of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from halstream import ScheduleError
from halstream._schedules.execution import Execution, Failure, first_difference
from halstream._schedules.explain import nondeterminism
from halstream._schedules.search import MOST, Settings, derived, plans, search
from halstream._schedules.token import Token, parse_spec
from schedule_model import Device, Program


def right(device: Device) -> None:
    """Two streams with a wait between them."""
    seen: list[int] = []
    first = device.op("a", lambda: seen.append(1))
    device.op("b", lambda: seen.append(2), after=[first])
    device.sync("b")
    assert seen == [1, 2]


def wrong(device: Device) -> None:
    """The same without the wait."""
    seen: list[int] = []
    device.op("a", lambda: seen.append(1))
    device.op("b", lambda: seen.append(2))
    device.sync("b")
    device.sync("a")
    assert seen == [1, 2]


def test_a_correct_program_runs_under_as_many_schedules_as_requested() -> None:
    run = Program(right)
    found, explored = search(run, Settings(50))
    assert found is None
    assert (explored.schedules, explored.streams) == (50, 2)
    assert len(run.specs) == len(set(run.specs)) == 50
    assert run.specs[:5] == ["fifo", "latest", "earliest", "starve 1", "starve 2"]


def test_random_and_pct_take_turns_with_all_depths() -> None:
    run = Program(right)
    search(run, Settings(50, depth=3))
    kinds = [parse_spec(spec) for spec in run.specs[5:]]
    assert {kind for kind, _ in kinds} == {"random", "pct"}
    assert {numbers[1] for kind, numbers in kinds if kind == "pct"} == {1, 2, 3}
    steps = Program(right)("fifo").steps
    assert {numbers[2] for kind, numbers in kinds if kind == "pct"} == {steps}


def test_equal_settings_give_equal_schedules_and_other_seeds_others() -> None:
    def specs(**settings: int) -> list[str]:
        run = Program(right)
        search(run, Settings(30, **settings))
        return run.specs

    assert specs(seed=4) == specs(seed=4)
    assert specs(seed=4)[5:] != specs(seed=5)[5:]


def test_derived_seeds_are_many_and_short() -> None:
    seeds = [derived(seed, number) for seed in range(20) for number in range(200)]
    assert len(set(seeds)) == len(seeds)
    assert max(seeds) < 2**31


def test_one_schedule_is_fifo() -> None:
    run = Program(wrong)
    found, explored = search(run, Settings(1))
    assert (found, explored.schedules, run.specs) == (None, 1, ["fifo"])


def test_a_program_without_streams_runs_once() -> None:
    run = Program(lambda device: None)
    assert search(run, Settings(50))[1].schedules == 1
    assert run.specs == ["fifo"]


def test_only_a_few_streams_are_starved() -> None:
    order = " ".join(f"{stream}.{number}" for stream in range(1, 9) for number in range(1, stream + 1))
    specs = list(itertools.islice(plans(Settings(), Execution("fifo", order)), 6))
    assert specs[2:] == ["starve 5", "starve 6", "starve 7", "starve 8"]


def test_a_failure_is_confirmed_shrunk_and_has_a_token_that_replays_it() -> None:
    run = Program(wrong)
    found, _ = search(run, Settings())
    assert found is not None
    assert found.original == "latest"
    assert found.tried == 2
    assert found.execution.spec == "holds 1.1>2.1"
    assert found.shrunk is not None
    assert found.shrunk.complete
    again = run(Token.parse(str(found.token)).spec)
    assert again.failure == found.execution.failure
    assert again.fingerprint[:8] == found.token.fingerprint


def test_what_fails_under_fifo_is_not_shrunk() -> None:
    def program(device: Device) -> None:
        device.op("a")
        raise AssertionError("always")

    run = Program(program)
    found, _ = search(run, Settings())
    assert found is not None
    assert set(run.specs) == {"fifo"}
    assert (found.shrunk, found.execution.spec) == (None, "fifo")


def test_without_a_shrinking_budget_the_schedule_stays_as_it_is() -> None:
    found, _ = search(Program(wrong), Settings(shrink_runs=0))
    assert found is not None
    assert found.execution.spec == "latest"
    assert found.shrunk is not None
    assert not found.shrunk.complete


def counting(program: Callable[[Device, int], None]) -> Program:
    """Return a program that is told how often it has run before."""
    count = itertools.count()
    return Program(lambda device: program(device, next(count)))


def test_a_failure_that_does_not_repeat_is_reported_as_not_deterministic() -> None:
    def program(device: Device, count: int) -> None:
        device.op("a")
        assert count != 0

    found, _ = search(counting(program), Settings())
    assert found is not None
    assert found.difference.startswith("with the same calls in the same order one run failed with AssertionError: ")
    assert found.difference.endswith("and the other passed")


def test_other_calls_each_time_are_not_deterministic() -> None:
    def program(device: Device, count: int) -> None:
        for _ in range(count % 2 + 1):
            device.op("a")
        raise LookupError

    found, _ = search(counting(program), Settings())
    assert found is not None
    assert "one run made 2 calls and the other 1: call 2, 'call' on stream 1 by thread 1" in found.difference


@pytest.mark.parametrize("good", [1, 3])
def test_a_failure_that_earlier_runs_made_is_no_schedules(good: int) -> None:
    """The first runs pass, whatever the schedule, and all later ones fail."""

    def program(device: Device, count: int) -> None:
        device.op("a")
        device.sync("a")
        assert count < good

    found, _ = search(counting(program), Settings())
    assert found is not None
    assert (found.differs, found.shrunk) == ("fifo", None)
    assert found.difference.startswith("with the same calls in the same order one run passed and the other failed")
    assert "two runs under the schedule fifo differ" in nondeterminism(found)


def test_a_failure_under_fifo_that_stops_coming_is_not_deterministic() -> None:
    def program(device: Device, count: int) -> None:
        device.op("a")
        assert count >= 2

    found, _ = search(counting(program), Settings())
    assert found is not None
    assert found.difference.endswith("and the other passed")


def test_what_only_the_first_run_does_is_allowed_for() -> None:
    def program(device: Device, count: int) -> None:
        if count == 0:
            device.op("cache")  # all later runs find it
        device.op("a")
        raise LookupError

    found, _ = search(counting(program), Settings())
    assert found is not None
    assert found.difference == ""
    assert len(found.execution.calls.splitlines()) == 1


def test_a_failure_that_does_not_depend_on_the_schedule_is_not_run_again() -> None:
    run = Program(lambda device: None)

    def program(spec: str, trace: bool = False) -> Execution:
        run(spec)
        return Execution(spec, "h1", "1 nop 1", "0" * 16, 1, Failure("Failed", search=False))

    found, _ = search(program, Settings())
    assert found is not None
    assert found.shrunk is None
    assert run.specs == ["fifo"]


@pytest.mark.parametrize(
    ("settings", "error", "reason"),
    [
        ({"schedules": 0}, ScheduleError, "schedules is 0; give 1 to 100000 (with none nothing would be run)"),
        ({"schedules": -3}, ScheduleError, "schedules is -3"),
        ({"schedules": MOST + 1}, ScheduleError, "schedules is 100001; give 1 to 100000"),
        ({"schedules": 2.0}, TypeError, "schedules must be a whole number, not 2.0"),
        ({"schedules": True}, TypeError, "schedules must be a whole number"),
        ({"depth": 0}, ScheduleError, "depth is 0; give 1 to 64"),
        ({"depth": 65}, ScheduleError, "depth is 65"),
        ({"seed": -1}, ScheduleError, "seed is -1"),
        ({"shrink_runs": -1}, ScheduleError, "shrink_runs is -1"),
        ({"shrink_seconds": -1.0}, ScheduleError, "shrink_seconds is -1.0"),
        ({"shrink_seconds": float("nan")}, ScheduleError, "shrink_seconds is nan"),
        ({"shrink_seconds": "1"}, TypeError, "shrink_seconds must be a number"),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error) as caught:
        Settings(**settings)
    assert reason in str(caught.value)


def run_of(calls: str, order: str = "", failure: Failure | None = None) -> Execution:
    return Execution("fifo", order, calls.replace(",", "\n"), "0" * 16, 1, failure)


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            run_of("1 call 1,1 open gate 0"),
            run_of("1 call 1,1 call 2"),
            "call 2 of the host was 'open gate' by thread 1 in one run and 'call' on stream 2 by thread 1 in the other",
        ),
        (run_of("1 call 1"), run_of(""), "one run made 1 call and the other 0: call 1, 'call' on stream 1 by thread"),
        (
            run_of("1 call 1", "h1 1.1#3"),
            run_of("1 call 1", "1.1#3 h1"),
            "call 1 of the host came in one run where operation 1 of stream 1 came in the other",
        ),
        (run_of("", "h1 1.1"), run_of("", "h1"), "operation 1 of stream 1 is only in one of the runs"),
        (
            run_of("", failure=Failure("LookupError", text="gone\nmore")),
            run_of(""),
            "with the same calls in the same order one run failed with LookupError: gone and the other passed",
        ),
        (run_of("1 call 1", "h1"), run_of("1 call 1", "h1"), ""),
    ],
)
def test_the_first_difference_of_two_runs_is_named(first: Execution, second: Execution, text: str) -> None:
    assert first_difference(first, second).startswith(text)
    assert bool(text) != first.same(second)


def test_failures_are_the_same_by_type_and_for_assertions_by_place() -> None:
    def failure(number: int, kind: type[Exception] = AssertionError) -> Failure:
        try:
            if number == 1:
                raise kind("one")
            raise kind("two")
        except kind as exc:
            return Failure.of(exc)

    assert failure(1) == failure(1)
    assert failure(1) != failure(2)
    assert failure(1, LookupError) == failure(2, LookupError)
    assert failure(1, LookupError) != failure(1, KeyError)
    assert str(failure(2, LookupError)) == "LookupError: two"


def test_an_exception_without_a_text_is_a_failure_like_others() -> None:
    class Silent(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "cannot be had" in Failure.of(Silent()).text
