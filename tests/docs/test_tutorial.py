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
    """A command, the files that stand before it, and the samples of its output."""

    command: str
    files: dict[str, str]
    samples: list[list[str]]


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
            found[-1].samples.append(text.splitlines())
    return found


def run(step: Step, folder: Path, token: str) -> tuple[int, str]:
    """Run a command in a folder of its own; return its exit code and what it printed."""
    for name, text in step.files.items():
        (folder / name).write_text(text)
    program, *words = shlex.split(TOKEN.sub(token, step.command.replace("hs1-holds-...", token)))
    # Only this package's plugin: to import those that happen to be installed here takes longer than the tests.
    pytest_command = ("-m", "pytest", "-p", "halstream", "-p", "no:cacheprovider")
    command = [sys.executable, *(pytest_command if program == "pytest" else ()), *words]
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "COLUMNS": "200", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    env.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


def matches(wanted: str, line: str) -> bool:
    """Whether a printed line is the wanted one, in which ... stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, wanted.strip().split("..."))), line.strip()) is not None


def end_of(sample: list[str], printed: list[str]) -> int | None:
    """Return the number of printed lines up to the end of a sample, None if it is not there.

    Its lines stand one after another in what was printed, but for a line ``...``, which stands for any lines.
    """
    parts: list[list[str]] = [[]]
    for line in sample:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    end = 0
    for part in parts:
        starts = range(end, len(printed) - len(part) + 1)
        found = next((i for i in starts if all(map(matches, part, printed[i:]))), None)
        if found is None:
            return None
        end = found + len(part)
    return end


def test_a_sample_that_drops_a_line_is_no_output() -> None:
    printed = ["a", "b 1", "c", "d"]
    assert end_of(["b ...", "c"], printed) == 3
    assert end_of(["a", "...", "d"], printed) == 4
    assert end_of(["a", "c"], printed) is None
    assert end_of(["c", "b 1"], printed) is None


@pytest.mark.timeout(300)  # a process of pytest for each command
@pytest.mark.parametrize(("page", "failures"), [("README.md", 1), ("docs/tutorial.md", 6), ("docs/adopt.md", 1)])
def test_commands_print_the_output_on_the_page(page: str, failures: int, tmp_path: Path, backend: str) -> None:
    if backend != "host":
        pytest.skip(f"{backend}: its hardware chooses the order")
    if page == "docs/adopt.md" and sys.version_info < (3, 11):
        pytest.skip("CPython 3.10 gives the names of methods without their classes")
    token, failed = "", []
    for number, step in enumerate(steps(page)):
        folder = tmp_path / str(number)
        folder.mkdir()
        code, printed = run(step, folder, token)
        # What prints a report has failed, but for the program that catches it; a replay fails again.
        wrong = bool(step.samples or "replay" in step.command) and step.command.startswith("pytest")
        failed.append(code != 0)
        assert (code != 0) == wrong, f"{step.command}\n{printed}"
        rest = printed.splitlines()
        for sample in step.samples:
            end = end_of(sample, rest)
            shown = "\n".join(sample)
            assert end is not None, (
                f"{step.command} does not print these lines one after another:\n{shown}\n\n{printed}"
            )
            rest = rest[end:]
        if new := TOKEN.search(printed):
            token = new[0]
    assert sum(failed) == failures


def test_the_first_command_reports_in_a_clone_with_nothing_else_installed(tmp_path: Path, backend: str) -> None:
    if backend != "host":
        pytest.skip(f"{backend}: its hardware chooses the order")
    step = next(step for step in steps("README.md") if step.samples)
    # There pytest finds the project's own settings, which may need no plug-in that the README does not install.
    settings = f" -c {shlex.quote(str(ROOT / 'pyproject.toml'))} --rootdir={shlex.quote(str(tmp_path))}"
    code, printed = run(step._replace(command=step.command + settings), tmp_path, "")
    assert code == 1, printed
    assert end_of(step.samples[0], printed.splitlines()) is not None, printed
