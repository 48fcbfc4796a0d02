"""Means of synchronisation that are used wrongly are found; used rightly they are not."""

from __future__ import annotations

from collections.abc import Iterator

import halstream as hs
import pytest
from corpus.shapes import SHAPES
from corpus.synchronisation import SYNCHRONISATION, Shape
from halstream._core import _current
from shape_help import fails, found, reaches_explained_stall, report_of, silent, token_of

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

#: How each is found, and by what a suite finds out.
WAYS = ("always", "schedules", "threads", "stall")


@pytest.fixture(autouse=True)
def leave_contexts() -> Iterator[None]:
    yield
    _current.reset()


def by_name(*ways: str) -> pytest.MarkDecorator:
    """Run a test for each of the programs that are found in one of these ways."""
    chosen = [program for program in SYNCHRONISATION if program.found in ways]
    return pytest.mark.parametrize("program", chosen, ids=lambda program: program.name)


def test_there_are_twenty_programs_of_every_dialect() -> None:
    assert len({program.name for program in (*SYNCHRONISATION, *SHAPES)}) == len(SYNCHRONISATION) + len(SHAPES)
    assert len(SYNCHRONISATION) >= 20
    assert {program.dialect for program in SYNCHRONISATION} == {program.dialect for program in SHAPES}
    assert {program.found for program in SYNCHRONISATION} == set(WAYS)


@by_name("always", "schedules")
def test_V1_wrong_synchronisation_is_reported_in_one_run_if_it_can_be(program: Shape) -> None:
    assert found(program) is (program.found == "always")


@by_name("schedules", "threads")
def test_X9_wrong_synchronisation_that_no_check_sees_fails_under_a_schedule(program: Shape) -> None:
    token = token_of(program.broken, threads=program.found == "threads")
    assert token
    assert all(fails(program.broken, token) for _ in range(3))


@by_name("stall")
def test_W1_synchronisation_that_never_comes_is_explained(program: Shape) -> None:
    assert reaches_explained_stall(program)


@by_name("stall")
def test_X9_synchronisation_that_never_comes_ends_under_turns_of_host_threads(program: Shape) -> None:
    assert token_of(program.broken, schedules=2, threads=True)


@by_name(*WAYS)
def test_V1_right_synchronisation_is_not_reported(program: Shape) -> None:
    assert silent(program)


@by_name(*WAYS)
def test_X9_right_synchronisation_passes_fifty_schedules(program: Shape) -> None:
    assert not token_of(program.fixed, threads=program.found == "threads")


def test_V2_a_barrier_too_few_leaves_the_timing_of_host_threads_only() -> None:
    (program,) = (program for program in SYNCHRONISATION if program.name == "one_barrier_for_two_phases")
    assert [finding.category for finding in report_of(program.broken).all] == ["timing"]


@pytest.mark.parametrize("ordered", [True, False])
def test_V2_a_loop_of_queries_orders_as_a_note_only(ordered: bool) -> None:
    stream, x, back = hs.Stream(non_blocking=True), hs.zeros(8), hs.pinned_empty(8)
    with hs.sanitize(on="collect") as report:
        x.copy_to(back, stream)
        while not stream.query():
            pass
        if ordered:
            stream.synchronize()
        hs.host_access(back, "r")
    assert [finding.category for finding in report.all] == ([] if ordered else ["query"])
