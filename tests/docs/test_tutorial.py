"""The commands of the tutorial and the README are run on their files, and print what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = re.compile(r"hs1-\w+-[\w.-]*\w")


class Step(NamedTuple):
    """A command, the files that stand before it, and what must be in its output."""

    command: str
    files: dict[str, str]
    output: list[str]


def steps(page: str) -> list[Step]:
    """Return the commands of a page in order."""
    found: list[Step] = []
    files: dict[str, str] = {}
    torch = False  # programs of the real torch are run by tests/torch
    for language, text in re.findall(r"(?ms)^```(\w*)\n(.*?)^```$", (ROOT / page).read_text()):
        if name := re.match(r"# file: (\S+)\n", text):
            files[name[1]] = text
        elif language == "bash" and files:
            torch = "halstream run --torch" in text
            lines = [line for line in text.splitlines() if line.startswith(("pytest ", "python "))]
            found += [Step(line, dict(files), []) for line in lines]
        elif language == "text" and not torch:
            found[-1].output.extend(text.splitlines())
    return found


def run(step: Step, folder: Path, token: str) -> tuple[int, str]:
    """Run a command in a folder of its own; return its exit code and what it printed."""
    for name, text in step.files.items():
        (folder / name).write_text(text)
    program, *words = shlex.split(TOKEN.sub(token, step.command.replace("hs1-holds-...", token)))
    command = [sys.executable, *(("-m", "pytest", "-p", "no:cacheprovider") if program == "pytest" else ()), *words]
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "200"}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=50)
    return done.returncode, done.stdout + done.stderr


def matches(wanted: str, line: str) -> bool:
    """Whether a printed line is the wanted one, in which ... stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, wanted.strip().split("..."))), line.strip()) is not None


@pytest.mark.parametrize(("page", "failures"), [("README.md", 1), ("docs/tutorial.md", 6)])
def test_commands_print_the_output_on_the_page(page: str, failures: int, tmp_path: Path, backend: str) -> None:
    if backend != "host":
        pytest.skip(f"{backend}: its hardware chooses the order")
    token, failed = "", []
    for number, step in enumerate(steps(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, printed = run(step, folder, token)
        # What prints a report has failed, but for the program that catches it; a replay fails again.
        wrong = bool(step.output or "replay" in step.command) and step.command.startswith("pytest")
        failed.append(code != 0)
        assert (code != 0) == wrong, f"{step.command}\n{printed}"
        rest = printed.splitlines()
        for wanted in step.output:
            found = next((i for i, line in enumerate(rest) if matches(wanted, line)), None)
            assert found is not None, f"{step.command} does not print {wanted!r}\n{printed}"
            rest = rest[found + 1 :]
        if new := TOKEN.search(printed):
            token = new[0]
    assert sum(failed) == failures
