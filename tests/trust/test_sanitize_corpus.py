"""The corpus in one run each: every broken program is reported, no twin is."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import halstream as hs
import pytest
from corpus import PROGRAMS, Program
from halstream._core import _current
from halstream._schedules.block import schedule

pytestmark = pytest.mark.needs("schedules")

CHECKED = [program for program in PROGRAMS if program.sanitize]


@pytest.fixture(autouse=True)
def leave_contexts() -> Iterator[None]:
    yield
    _current.reset()


@pytest.mark.parametrize("program", CHECKED, ids=lambda p: p.name)
def test_a_broken_program_is_reported_in_one_run_that_passes(backend: str, program: Program) -> None:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        program.broken()
    assert report, f"{program.name}: nothing was found"
    for finding in report:
        assert finding.dialect == ("" if program.dialect == "core" else program.dialect), finding.text
        assert f"{program.name}.py:" in finding.text, "its own lines are shown"
        assert finding.fix and "<stream" not in finding.fix, finding.text


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("spec", ["fifo", "latest", "random 1", "parallel"])
def test_its_twin_is_not(backend: str, program: Program, spec: str) -> None:
    run = contextlib.nullcontext() if spec == "parallel" else schedule(spec)
    with run, hs.sanitize(on="collect", threads=spec == "parallel") as report:
        program.fixed()
    assert not report.all, f"{program.name}:\n{report}"


@pytest.mark.parametrize("program", CHECKED, ids=lambda p: p.name)
def test_a_broken_program_is_reported_whether_it_fails_or_not(backend: str, program: Program) -> None:
    for spec in ("latest", "random 7"):
        with schedule(spec), hs.sanitize(on="collect") as report, contextlib.suppress(AssertionError):
            program.broken()
        assert report, f"{program.name} under {spec}: nothing was found"
