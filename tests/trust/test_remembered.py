"""Tokens that are kept between sessions and tried first."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from plugin_help import Runner

pytestmark = pytest.mark.usefixtures("on_the_host")

EARLIER = "*, a token remembered from an earlier run."
RACED = "def test_race(): race()"
OTHER = "def test_other(): race()"


@pytest.fixture
def on_the_host(backend: str) -> None:
    if backend != "host":
        pytest.skip(f"{backend}: its hardware chooses the order")


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    return Runner(pytester)


def kept(run: Runner) -> dict[str, str]:
    """Return the tokens in pytest's cache by test."""
    file = Path(run.pytester.path, ".pytest_cache/v/halstream/tokens")
    return json.loads(file.read_text()) if file.exists() else {}


def schedules(result: pytest.RunResult) -> list[str]:
    """Return the schedules that a test printed, one for each of its runs."""
    return [line.removeprefix("under ") for line in result.outlines if line.startswith("under ")]


def test_X2_a_failing_schedule_is_tried_first_in_the_next_session(run: Runner) -> None:
    source = """
    def test_race(streams):
        print("\\nunder", streams.schedule)
        race()
    """
    first = run(source, "--stream-schedules=10", "-s")
    first.stdout.no_fnmatch_line(EARLIER)
    (token,) = kept(run).values()
    assert schedules(first)[0] == "fifo" and token.startswith("hs1-holds-")
    again = run.again("--stream-schedules=10", "-s")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines([f"Fails under schedule {token}{EARLIER[1:]}"])
    held, *rest = schedules(again)
    assert held.startswith("holds ") and rest == ["fifo", held], "it is not searched for again"
    assert kept(run) == {"test_it.py::test_race": token}
    run.again("--stream-schedules=10", "--cache-clear").stdout.no_fnmatch_line(EARLIER)


def test_X2_a_token_is_dropped_when_its_test_passes(run: Runner) -> None:
    run(f"{RACED}\n{OTHER}", "--stream-schedules=10")
    assert sorted(kept(run)) == ["test_it.py::test_other", "test_it.py::test_race"]
    run("def test_race(): right()", "--stream-schedules=10").assert_outcomes(passed=1)
    assert sorted(kept(run)) == ["test_it.py::test_other"]


def test_X2_a_test_that_fails_in_every_order_is_not_blamed_on_its_token(run: Runner) -> None:
    run(RACED, "--stream-schedules=10")
    before = kept(run)
    result = run("def test_race():\n    race()\n    assert False\ntest_wrong = test_race", "--stream-schedules=10")
    result.assert_outcomes(failed=2)
    result.stdout.no_fnmatch_line(EARLIER)
    assert kept(run) == before


def test_without_the_cache_nothing_is_remembered_and_nothing_fails(run: Runner) -> None:
    run(RACED, "--stream-schedules=10", "-p", "no:cacheprovider").assert_outcomes(failed=1)
    assert kept(run) == {}


def test_a_damaged_cache_is_no_error(run: Runner) -> None:
    file = Path(run.pytester.path, ".pytest_cache/v/halstream/tokens")
    file.parent.mkdir(parents=True)
    file.write_text('{"test_it.py::test_race": "hs1-nothing", "test_it.py::test_other": 7}')
    result = run(f"{RACED}\n{OTHER}", "--stream-schedules=10")
    result.assert_outcomes(failed=2)
    result.stdout.no_fnmatch_line(EARLIER)
    assert all(token.startswith("hs1-holds-") for token in kept(run).values())


def test_workers_of_xdist_remember_for_later_sessions(run: Runner) -> None:
    pytest.importorskip("xdist")
    run(RACED, "--stream-schedules=10")
    source = f"{RACED}\n{OTHER}\ndef test_right(): right()"
    result = run(source, "--stream-schedules=10", "-n2", plugins="xdist", process=True)
    result.assert_outcomes(failed=2, passed=1)
    assert sum(EARLIER[1:] in line for line in result.outlines) == 1
    assert sorted(kept(run)) == ["test_it.py::test_other", "test_it.py::test_race"]


def test_a_failing_schedule_of_a_script_is_tried_first_in_the_next_run(cli: Any) -> None:
    source = """
        import halstream as hs

        one, two, seen = hs.Stream(), hs.Stream(), []
        one.call(seen.append, 1)
        two.call(seen.append, 2)
        hs.synchronize()
        assert seen == [1, 2]
        """

    def kept() -> int:
        return len(list(cli.folder.glob(".cache/halstream/tokens/*")))

    cli.script(source)
    command = ("run", "--schedules", "6", "--shrink-runs", "6", "prog.py")
    first = cli(*command)
    assert (first.returncode, kept()) == (1, 1), first.stderr
    assert "remembered" not in first.stdout
    again = cli(*command)
    assert again.returncode == 1, again.stderr
    assert re.search(r"Fails under schedule hs1-\S+, a token remembered from an earlier run\.", again.stdout)
    cli.script(source.replace("assert seen ==", "seen =="))
    assert (cli(*command).returncode, kept()) == (0, 0), "it passes, so the token is dropped"
