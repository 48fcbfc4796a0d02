"""``halstream run --fix=apply`` and assertions of functions on streams under ``--schedules``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from halstream._cli import applied, running
from halstream._cli.commands import app
from typer.testing import CliRunner

pytestmark = pytest.mark.needs("schedules")

LANES = """
def put(x, stream):
    x.fill(2, stream)
"""
PROGRAM = """
import os, sys
import halstream as hs
import lanes

one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
x.fill(1, one)
lanes.put(x, two)
found = x.numpy(two).tolist()
os.chdir(os.sep)
os.environ["SEEN"] = "1"
assert found == [int(sys.argv[1])] * 16
"""
ALONE = """
import os
import halstream as hs

one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
x.fill(1, one)
if not os.path.exists("seen"):
    open("seen", "w").close()
    x.fill(2, two)
hs.synchronize()
"""
ORDER = """
import halstream as hs

one, two, seen = hs.Stream(), hs.Stream(), []
one.call(seen.append, 1)
def check():
    assert seen == [1], "before its input"
two.call(check)
two.synchronize()
one.synchronize()
"""


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*.py*") if path.is_file()}


@pytest.mark.parametrize(
    ("given", "outcome"),
    [
        (["--schedules", "7", "prog.py", "2"], "silent and passes under 7 schedules"),
        (["--schedules", "3", "-m", "prog", "2"], "silent and passes under 3 schedules"),
        (["prog.py", "3"], "still fails: AssertionError"),
    ],
    ids=["script", "module", "wrong nevertheless"],
)
def test_V10_suggested_lines_are_tried_on_copies_of_a_script(
    cli: Any, tmp_path: Path, given: list[str], outcome: str
) -> None:
    (tmp_path / "lanes.py").write_text(LANES)
    cli.script(PROGRAM)
    before = contents(tmp_path)
    result = cli("run", "--sanitize", "--fix=apply", *given)
    assert result.returncode == 1
    assert "\n+two.wait(one.record())\n" in result.stdout
    last = result.stdout.rstrip().splitlines()[-1]
    assert last == f"halstream: the suggested lines, applied to copies: {outcome}", result.stdout + result.stderr
    assert {path: after for path, after in contents(tmp_path).items() if path in before} == before


def test_V10_there_are_fifty_schedules_where_no_number_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wanted: list[int] = []
    monkeypatch.setattr(running, "plain", lambda *args, **more: 0)
    monkeypatch.setattr(applied, "tried", lambda script, args, settings, *rest: wanted.append(settings.schedules))
    monkeypatch.setattr("sys.excepthook", None)  # put back afterwards: the command sets its own
    (tmp_path / "prog.py").touch()
    done = CliRunner().invoke(app, ["run", "--sanitize", "--fix=apply", str(tmp_path / "prog.py")])
    assert (done.exit_code, wanted) == (0, [50]), done.output


def test_V10_lines_of_a_file_in_another_encoding_are_tried(cli: Any, tmp_path: Path) -> None:
    source = '# coding: latin-1\nword = "\xe9"\n' + PROGRAM.replace("assert found", "assert len(word) == 1 and found")
    (tmp_path / "lanes.py").write_text(LANES)
    (tmp_path / "prog.py").write_bytes(source.encode("latin-1"))
    result = cli("run", "--sanitize", "--fix=apply", "--schedules", "2", "prog.py", "2")
    assert "silent and passes under 2 schedules" in result.stdout, result.stdout + result.stderr


def test_V10_lines_without_a_finding_in_a_new_process_are_not_tried(cli: Any) -> None:
    cli.script(ALONE)
    result = cli("run", "--sanitize", "--fix=apply", "prog.py")
    assert result.returncode == 1
    assert "not tried: in a process of its own, without input, nothing is found" in result.stdout, result.stdout


def test_V10_nothing_is_tried_where_nothing_is_unordered(cli: Any) -> None:
    cli.script("import halstream as hs\nhs.Stream().synchronize()\n")
    result = cli("run", "--sanitize", "--fix=apply", "prog.py")
    assert result.returncode == 0
    assert "applied to copies: there are none: nothing unordered was found" in result.stdout, result.stdout


def test_an_assertion_of_a_function_on_a_stream_fails_a_schedule(cli: Any) -> None:
    cli.script(ORDER)
    result = cli("run", "--schedules", "10", "prog.py")
    assert result.returncode == 1
    assert "halstream: the script failed: AssertionError: before its input" in result.stdout, result.stdout
    assert "It fails when the call on stream 2 (two)" in result.stdout
    token = result.stdout.partition("Replay: halstream replay ")[2].split()[0]
    again = cli("replay", token, "prog.py")
    assert again.returncode == 1 and "failed again: AssertionError: before its input" in again.stderr, again.stderr
