"""What ``halstream verify`` and the process of the tests tell each other, as plain data; it needs no pytest."""

from __future__ import annotations

from typing import Literal, TypedDict

from .._checks.results import Result

__all__ = ["Answer", "Patch", "Request"]

Outcome = Literal["passed", "failed", "skipped"]


class Request(TypedDict):
    """What the command wants."""

    changed: list[str] | None  #: choose the tests that these files are about; None: those of the arguments
    files: list[str]  #: all Python files of the project
    top: str  #: its folder
    schedules: int
    answer: str  #: the file for the answer
    progress: str  #: the file for what is being done, in a line


class Patch(TypedDict):
    """Lines that were tried: with them the tests are silent and pass under all schedules."""

    diff: str
    files: list[str]
    tests: list[str]


class Answer(TypedDict):
    """What came of it."""

    code: int  #: pytest's
    root: str
    files: list[str] | None  #: the test files that were chosen; None where the arguments name them
    outcomes: dict[str, Outcome]
    failures: dict[str, str]  #: of tests, and of files that cannot be collected: the text
    uncollected: list[str]  #: files that cannot be collected
    results: list[Result]
    patches: list[Patch]
    unproven: dict[str, str]  #: tests with findings and without a proven patch, and why
