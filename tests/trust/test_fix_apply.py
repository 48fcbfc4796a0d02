"""``--stream-fix=apply``: the suggested lines, tried on copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_help import Runner

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

LANES = """
import halstream as hs

def work():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
    x.fill(1, one)
    x.fill(2, two)
    return x.numpy(two).tolist()
"""
TESTS = """
    import lanes
    STATE = []

    def test_right(): right()

    def test_silenced():
        assert lanes.work() == [2] * 16

    def test_wrong_nevertheless():
        assert lanes.work() == [3] * 16

    def test_state():
        if STATE:
            lanes.work()
"""
CONFTEST = """
import pytest

def pytest_addoption(parser):
    parser.addoption("--state", action="store_true")

@pytest.fixture(autouse=True)
def state(request):
    request.module.STATE[:] = [1] * request.config.getoption("--state")
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.py*") if path.is_file()}


def test_V10_suggested_lines_are_tried_on_copies_and_each_test_has_its_outcome(run: Runner) -> None:
    folder = run.pytester.path
    (folder / "lanes.py").write_text(LANES)
    run.pytester.makeconftest(CONFTEST)
    options = ("--stream-sanitize", "--state", "-q")
    run(TESTS, *options, process=True)  # with all bytecode written
    before = contents(folder)
    result = run(TESTS, *options, "--stream-fix=apply", process=True)
    result.assert_outcomes(failed=3, passed=1)
    result.stdout.fnmatch_lines(
        [
            "+    two.wait(one.record())",
            "*test_it.py::test_silenced: silent and passes under 50 schedules",
            "*test_it.py::test_wrong_nevertheless: still fails: *",
            "*assert*",
            "*test_it.py::test_state: not tried: *nothing is found in it without the lines*it needs state*",
        ]
    )
    result.stdout.no_fnmatch_line("*test_right: *")
    assert contents(folder) == before, "the program's files and bytecode stay as they are"
