"""The corpus: every broken program is found, its twin never."""

from __future__ import annotations

import re
from collections.abc import Callable

import halstream as hs
import pytest
from corpus import PROGRAMS, Program
from halstream.testing import explore, schedule

LUCKY = [program for program in PROGRAMS if program.schedule]
UNORDERED = [program for program in PROGRAMS if program.sanitize]


def names(program: Program) -> str:
    return program.name


@pytest.fixture(autouse=True)
def on_the_host(backend: str) -> None:
    if backend != "host":
        pytest.skip(f"{backend}: its hardware chooses the order")


def test_there_are_programs_of_every_kind_and_dialect() -> None:
    assert len(LUCKY) >= 20 and len({program.kind for program in UNORDERED}) >= 16
    assert {program.dialect for program in PROGRAMS} >= {"torch", "paddle", "mindspore", "cupy", "acl"}


@pytest.mark.parametrize("program", PROGRAMS, ids=names)
@pytest.mark.parametrize("how", ["parallel", "fifo"])
def test_what_is_broken_passes_by_luck(program: Program, how: str) -> None:
    if not program.schedule:
        pytest.skip("fails without any luck")
    if how == "parallel":
        program.broken()
    else:
        with schedule("fifo"):
            program.broken()


def failing(function: Callable[[], None], **options: int) -> AssertionError | None:
    try:
        explore(function, **options)
    except AssertionError as exc:
        return exc
    return None


def text_of(exc: BaseException) -> str:
    """Return an exception with what was added to it, on every version of Python."""
    return "\n".join([str(exc), *getattr(exc, "__notes__", ())])


@pytest.mark.parametrize("program", LUCKY, ids=names)
def test_X2_fifty_schedules_find_what_luck_hides(program: Program) -> None:
    exc = failing(program.broken, schedules=50)
    assert exc is not None, "no schedule of fifty makes it fail"
    text = text_of(exc)
    token = re.search(r"hs1-[\w.-]*\w", text)
    assert token, text
    for _ in range(3):
        with pytest.raises(AssertionError), schedule(token[0]):
            program.broken()
    assert f"{program.name}.py" in text, "it does not name a line of the program"


@pytest.mark.parametrize("program", PROGRAMS, ids=names)
def test_X2_fifty_schedules_find_nothing_in_its_twin(program: Program) -> None:
    tried = explore(program.fixed, schedules=50)
    assert tried.schedules == 50


@pytest.mark.parametrize("program", UNORDERED, ids=names)
def test_V1_one_run_in_the_order_of_the_calls_is_enough(program: Program) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        program.broken()
    assert report.races or report.refills, "nothing was reported"
    assert f"{program.name}.py" in str(report), "it does not name a line of the program"


@pytest.mark.parametrize("how", ["fifo", "latest", "parallel"])
@pytest.mark.parametrize("program", PROGRAMS, ids=names)
def test_V1_its_twin_is_never_reported(program: Program, how: str) -> None:
    run = schedule(how) if how != "parallel" else hs.Stream()
    with run, hs.sanitize(on="collect", threads=how == "parallel") as report:
        program.fixed()
    assert not report.races and not report.refills, str(report)


def test_exploring_inside_what_is_explored_is_refused(backend: str) -> None:
    def program() -> None:
        explore(lambda: None, schedules=2)

    with pytest.raises(hs.ScheduleError, match="explore one of the two"):
        explore(program, schedules=2)
    explore(lambda: None, schedules=2)  # the refusal leaves nothing behind
