"""``halstream explain``: the pages, and the line at the end of reports that leads to them."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import halstream as hs
import pytest
from halstream._checks import finding
from halstream._cli.commands import app
from halstream._explain.pages import PAGES
from typer.testing import CliRunner

PACKAGE = Path(hs.__file__).parent
#: Pages whose examples need the real torch.
TORCH = {code for code, page in PAGES.items() if "torch" in page.command}
LINE = "explain: halstream explain {}\n"


def test_explain_prints_the_page_of_a_code_and_without_one_a_line_for_each() -> None:
    runner = CliRunner()
    page = runner.invoke(app, ["explain", "leak"])
    assert page.exit_code == 0 and page.output.startswith("# leak\n") and "## Three usual repairs" in page.output
    listed = runner.invoke(app, ["explain"])
    assert listed.exit_code == 0
    assert [line.split()[0] for line in listed.output.splitlines()] == sorted(PAGES)


def test_explain_of_no_code_names_the_closest() -> None:
    done = CliRunner().invoke(app, ["explain", "unordred-access"])
    assert done.exit_code == 2
    assert "did you mean unordered-access?" in done.output


def test_every_code_that_a_report_names_has_a_page() -> None:
    named = set(finding._CODES.values())
    for path in PACKAGE.rglob("*.py"):
        found = re.findall(r'(?m)(?:_page|_PAGE|LOST)"?(?: =|:) "([\w-]+)"|explanation\("([\w-]+)"\)', path.read_text())
        named |= {one or other for one, other in found}
    assert {"leak", "stall-circle", "unsupported-name", "lost-by-compiler", "kernel-bounds"} <= named
    assert named <= PAGES.keys()


@pytest.mark.needs("schedules")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="CPython 3.10 shows no notes of exceptions")
@pytest.mark.parametrize("code", [code for code in PAGES if code not in TORCH])
def test_the_example_of_a_page_is_reported_with_its_code_and_the_repaired_one_is_not(
    code: str, cli: Any, request: pytest.FixtureRequest
) -> None:
    page = PAGES[code]
    if "__global__" in page.example:
        request.getfixturevalue("nvrtc")
    words = shlex.split(page.command)[1:]
    cli.script(page.example, "example.py")
    done = cli(*words)
    assert (done.stdout + done.stderr).endswith(LINE.format(code)), done.stdout + done.stderr
    cli.script(page.repaired, "example.py")
    done = cli(*words)
    assert done.returncode == 0 and "explain:" not in done.stdout + done.stderr, done.stdout + done.stderr


TESTS = """
import halstream as hs

def test_race():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
    x.fill(1, one)
    x.fill(2, two)

def test_again():
    test_race()

def test_order():
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.call(seen.append, 2)
    hs.synchronize()
    assert seen == [1, 2]
"""


@pytest.mark.needs("schedules")
@pytest.mark.parametrize("workers", [0, 2])
def test_pytest_names_each_kind_once_at_the_end(backend: str, pytester: pytest.Pytester, workers: int) -> None:
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("--stream-sanitize", "--stream-schedules=5", "-p", "xdist", f"-n{workers}")
    lines = sorted(line for line in result.outlines if line.startswith("explain: "))
    assert lines == [LINE.format(code).rstrip() for code in ("schedule-failure", "unordered-access")]
