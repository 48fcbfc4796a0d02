"""``halstream campaign``: parts of schedules, answers that count once, and bad input."""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from halstream._campaign import campaign as campaigns
from halstream._campaign.child import CampaignError, session
from halstream._campaign.state import Settings, State
from halstream._cli.commands import app
from halstream._schedules import search
from halstream._schedules.execution import Execution
from typer.testing import CliRunner

SETTINGS = Settings([], 40, 10, 3, 0)
TESTS = ["a", "b"]


class Fake:
    """An engine of which every process is lost that runs a part of `doomed`, so many times."""

    def __init__(self, doomed: tuple[str, int] = ("", 0), times: int = 0) -> None:
        self.doomed, self.times = doomed, times
        self.ran: list[tuple[str, int]] = []

    def run(self, arguments: Sequence[str], slices: Sequence[Any]) -> Iterator[dict[str, Any]]:
        for one in slices:
            key = one["test"], one["first"]
            self.ran.append(key)
            if key == self.doomed and self.times:
                self.times -= 1
                yield {"kind": "lost", "test": key[0], "first": key[1]}
            else:
                yield done(*key, one["schedules"])
                yield done(*key, one["schedules"])  # late, of a worker that was taken as lost

    def close(self) -> None: ...


def done(test: str, first: int, schedules: int = 10, **failure: Any) -> dict[str, Any]:
    common = {"kind": "done", "test": test, "first": first, "schedules": schedules}
    return {**common, "used": True, "skipped": False, **failure}


def new(path: Path, resume: bool = False) -> State:
    state = State(str(path), resume)
    if not resume:
        state.begin(SETTINGS, TESTS)
    return state


def test_X20_the_parts_of_an_exploration_run_its_schedules_each_once() -> None:
    def specs(first: int, count: int) -> list[str]:
        ran = []

        def run(spec: str, trace: bool = False) -> Execution:
            ran.append(spec)
            return Execution(spec, "1.1 2.1 3.1", "", "0" * 16, 20)

        found, explored = search.search(run, search.Settings(count, 3, 7, first=first))
        assert found is None and explored.schedules == first + count
        assert ran[0] == "fifo", "which the others are made from"
        return ran[1:] if first else ran

    whole = specs(0, 40)
    assert len(set(whole)) == 40
    for size in (1, 3, 7, 40):
        assert list(itertools.chain(*(specs(first, min(size, 40 - first)) for first in range(0, 40, size)))) == whole


def test_X20_lost_parts_run_again_and_late_answers_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state, engine = new(path), Fake(("a", 20), times=2)
    campaigns.run(state, engine, 1, "", lambda: None)
    state.close()
    assert engine.ran.count(("a", 20)) == 3 and len(engine.ran) == 8 + 2
    assert [(one.schedules, one.failure) for one in state.tests.values()] == [(40, None)] * 2
    assert path.read_text().count('"done"') == 8 and state.finished


def test_X20_a_part_whose_process_ends_each_time_fails_its_test(tmp_path: Path) -> None:
    state = new(tmp_path / "state")
    campaigns.run(state, Fake(("a", 20), times=3), 1, "", lambda: None)
    state.close()
    failure = state.tests["a"].failure
    assert failure is not None and failure["title"].startswith("the process ended, 3 times") and not failure["token"]
    assert state.tests["b"].schedules == 40 and state.tests["b"].failure is None


def test_X20_a_resumed_campaign_runs_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "state"
    state = new(path)
    for answer in (done("a", 0), done("b", 0), done("b", 30)):
        assert state.add(answer) and not state.add(answer)
    state.close()
    with path.open("a") as file:
        file.write('{"kind": "done", "test": "a", "fir')  # by a process that was killed
    state, engine = new(path, resume=True), Fake()
    state.begin(SETTINGS, TESTS)
    campaigns.run(state, engine, 1, "", lambda: None)
    state.close()
    assert sorted(engine.ran) == [("a", 10), ("a", 20), ("a", 30), ("b", 10), ("b", 20)]
    again = new(path, resume=True)
    again.close()
    assert again.finished and [one.schedules for one in again.tests.values()] == [40, 40]


def test_the_failing_schedule_with_the_lowest_number_counts(tmp_path: Path) -> None:
    state = new(tmp_path / "state")
    for number in (25, 12, 31):
        state.add(done("a", number // 10 * 10, title=f"at {number}", number=number, token="t"))
    state.close()
    assert state.tests["a"].failure == {"title": "at 12", "number": 12, "token": "t"}


def test_a_state_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with pytest.raises(CampaignError, match="no campaign to resume"):
        State(str(path), True)
    assert not path.exists()
    path.write_text("my notes\n")
    with pytest.raises(CampaignError, match="no state file of a campaign"):
        State(str(path), False)
    assert path.read_text() == "my notes\n"
    path.unlink()
    state = new(path)
    with pytest.raises(CampaignError, match="another campaign is running"):
        State(str(path), True)
    state.close()
    with pytest.raises(CampaignError, match="not finished: --resume continues it"):
        State(str(path), False)
    state = new(path, resume=True)
    with pytest.raises(CampaignError, match="another campaign: seed is 0 there, 1 here"):
        state.begin(Settings([], 40, 10, 3, 1), TESTS)
    with pytest.raises(CampaignError, match=r"the tests have changed \(b, c\)"):
        state.begin(SETTINGS, ["a", "c"])
    state.close()


@pytest.mark.needs("schedules")
def test_X20_what_a_killed_process_has_answered_counts_and_the_rest_is_lost(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        """
import os, signal
import halstream as hs

def test_right():
    hs.Stream().nop()

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    parts = [
        {"test": f"test_it.py::{name}", "first": first, "schedules": 5, "depth": 3, "seed": 0, "shrink": False}
        for name, first in (("test_right", 0), ("test_right", 5), ("test_killed", 0), ("test_right", 10))
    ]
    answers = list(session([], parts, folder=str(tmp_path)))
    begun = answers[4]
    answers = [one for one in answers if one["kind"] != "begun"]
    assert [(one["kind"], one["test"][12:], one["first"]) for one in (*answers, begun)] == [
        ("done", "test_right", 0),
        ("done", "test_right", 5),
        ("begun", "test_killed", 0),
    ]
    assert [one["schedules"] for one in answers[:2]] == [5, 5]


def test_bad_input_of_the_command_has_a_sentence_and_code_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    def refused(*words: str) -> str:
        result = CliRunner().invoke(app, ["campaign", *words])
        assert result.exit_code == 2, result.output
        assert os.listdir(tmp_path) == []
        return result.stderr

    for number in ("1.5", "0", "-3", "many", "1e-3", "nan", "1e400", "1e13", ""):
        assert f"--schedules is {number!r}; give a whole number" in refused("--schedules", number)
    assert "needs the package pytest-xdist: pip install pytest-xdist" in refused("--schedules", "1_000_000")
    assert "the engine ray needs the package ray: pip install ray" in refused("--engine", "ray")
    assert "--engine is 'dask'; give xdist or ray" in refused("--engine", "dask")
    assert "the state file no/such/folder cannot be written: No such file" in refused("--state", "no/such/folder")
    assert "there is no campaign to resume" in refused("--resume")


def test_a_campaign_without_tests_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("")
    with pytest.raises(CampaignError, match="pytest ended with exit code 5"):
        campaigns.collect([], str(tmp_path))
