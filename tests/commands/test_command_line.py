"""What all commands have in common: where they print, what their help says, and what they refuse first."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from halstream._cli.commands import app
from typer.testing import CliRunner

COMMANDS = ["--version", "--help", "info", "info --json", "doctor --no-imports", "doctor --no-imports --json",
            "lint --rules", "lint prog.py", "run --schedules 2 prog.py"]  # fmt: skip


def shell(line: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a shell, which sets where its output goes."""
    (folder / "prog.py").write_text("import sys")
    words = f"{sys.executable} -m halstream {line}"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", words],
        capture_output=True, text=True, timeout=60, cwd=folder, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_a_sentence(tmp_path: Path, command: str, unbuffered: str) -> None:
    done = shell(f"{command} > /dev/full", tmp_path, PYTHONUNBUFFERED=unbuffered)
    assert done.returncode == 1
    assert done.stderr == "halstream: stdout cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_nobody_reads_is_no_error(tmp_path: Path, command: str) -> None:
    closed = shell(f"{command} >&-", tmp_path)
    assert (closed.returncode, closed.stdout, closed.stderr) == (0, "", "")
    assert shell(f"{command} | head -1", tmp_path).stderr == ""


def test_an_error_of_something_else_than_printing_is_not_taken_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*words: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(importlib.import_module("halstream._lint.run"), "files", fail)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # the commands set their own
    monkeypatch.setattr(sys, "argv", ["halstream", "lint", str(tmp_path)])
    with pytest.raises(OSError, match="No space left"):
        app()


def test_the_help_says_what_it_is_for_and_names_options() -> None:
    runner = CliRunner()
    text = " ".join(runner.invoke(app, ["--help"]).output.split())
    assert "Find missing waits between GPU streams, without a GPU." in text
    assert "(not with --schedules)" in runner.invoke(app, ["run", "--help"], env={"COLUMNS": "200"}).output


@pytest.mark.parametrize("words", [["nope.py"], ["tests/nope"], ["prog.py", "nope.py::test_it[a/b]", "-k", "no/path"]])
def test_a_campaign_of_a_file_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    (tmp_path / "prog.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)  # no engine is installed
    done = CliRunner().invoke(app, ["campaign", "--", *words])
    (path,) = (word.partition("::")[0] for word in words if "nope" in word)
    assert (done.exit_code, done.stderr) == (2, f"halstream: there is no file or folder {path!r}\n")
    assert os.listdir(tmp_path) == ["prog.py"]


@pytest.mark.parametrize("words", [["prog.py", "-k", "no/path"], ["package.tests", "--pyargs"]])
def test_a_campaign_leaves_to_pytest_what_may_be_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    (tmp_path / "prog.py").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "needs the package pytest-xdist" in CliRunner().invoke(app, ["campaign", "--", *words]).stderr


def test_a_token_is_not_of_a_compiled_program_that_does_not_use_the_library() -> None:
    program = shutil.which("true")
    if program is None or Path(program).read_bytes()[:4] != b"\x7fELF":
        pytest.skip("there is no compiled program here that does nothing")
    done = CliRunner().invoke(app, ["replay", "hs1-fifo-00000000-cd", program])
    assert (done.exit_code, done.stderr.startswith("halstream: it passed, but nothing is known")) == (2, True)
