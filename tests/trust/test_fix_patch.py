"""The lines that would order what was found, as one patch: from pytest, from the command line, and applied."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from halstream._checks import formats, results
from plugin_help import Runner
from sanitize_help import PROGRAM
from sanitize_help import run as run_program

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

TESTS = """
    import lanes
    def test_unordered():
        one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
        x.fill(1, one)
        x.fill(2, two)
    def test_of_another_file(): lanes.work()
"""
LANES = """
import halstream as hs

def work():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
    x.fill(1, one)
    x.fill(2, two)
"""


@pytest.fixture
def run(pytester: pytest.Pytester) -> Runner:
    """Return a function that runs tests, after the functions of `RACE`, with options."""
    return Runner(pytester)


def patched(folder: Path, patch: str) -> None:
    """Apply a patch to the files of a folder."""
    if shutil.which("git") is None:
        pytest.skip("git, which applies the patch, is not installed")
    done = subprocess.run(["git", "apply", "-"], input=patch.encode(), cwd=folder, capture_output=True, timeout=60)
    assert done.returncode == 0, f"{done.stderr.decode()}\n{patch}"


def patch_of(path: Path, program: str) -> str:
    """Return the patch for what is found in a program."""
    found = [results.of_finding(finding) for finding in run_program(path, program).all]
    printed: list[str] = []
    formats.write([formats.target("diff")], found, path.parent, printed.append)
    return "".join(printed).lstrip("\n")


def test_pytest_prints_the_lines_of_all_tests_as_one_patch(run: Runner) -> None:
    (run.pytester.path / "lanes.py").write_text(LANES)
    result = run(TESTS, "--stream-sanitize", "--stream-fix=diff", process=True)
    result.assert_outcomes(failed=2)
    lines = result.outlines
    begin = lines.index("--- a/lanes.py")
    patch = "\n".join(line for line in lines[begin:] if line.startswith(("---", "+++", "@@", " ", "+", "-", "\\")))
    assert patch.count("\n+    two.wait(one.record())") == 2, patch
    patched(run.pytester.path, patch + "\n")
    run.again("--stream-sanitize", process=True).assert_outcomes(passed=2)


def test_pytest_writes_the_patch_to_a_file(run: Runner) -> None:
    (run.pytester.path / "lanes.py").write_text(LANES)
    run(TESTS, "--stream-sanitize", "--stream-report=diff:fixes.patch", process=True).assert_outcomes(failed=2)
    patched(run.pytester.path, (run.pytester.path / "fixes.patch").read_text())
    run.again("--stream-sanitize", process=True).assert_outcomes(passed=2)


def test_a_run_without_findings_has_an_empty_patch(run: Runner) -> None:
    options = ("--stream-sanitize", "--stream-report=diff:fixes.patch", "--stream-fix=diff")
    result = run("def test_it(): right()", *options, process=True)
    result.assert_outcomes(passed=1)
    assert (run.pytester.path / "fixes.patch").read_text() == "" and "+++" not in result.stdout.str()


def test_the_command_line_prints_a_patch(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    result = cli("run", "--sanitize", "--fix", "diff", "program.py")
    assert result.returncode == 1, result.stderr
    patched(tmp_path, result.stdout.lstrip("\n"))
    assert "    a.wait(b.record())\n    x.fill(1, a)\n    b.wait(a.record())\n" in (tmp_path / "program.py").read_text()
    assert cli("run", "--sanitize", "program.py").returncode == 0


@pytest.mark.parametrize(
    ("given", "why"), [(("--fix", "merge"), "--fix is 'merge'"), (("--fix", "apply"), "--sanitize")]
)
def test_the_command_line_refuses_what_it_cannot_do(cli: Any, tmp_path: Path, given: list[str], why: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    result = cli("run", *given, "program.py")
    assert result.returncode == 2 and why in result.stderr, result.stderr


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.rstrip("\n"), id="no line feed at the end"),
        pytest.param(
            lambda text: text.replace("x =", "# a form feed \f and \u2028\nx ="), id="other ends of lines in it"
        ),
        pytest.param(lambda text: "# coding: utf-8\n# ä" + text, id="not ASCII"),
    ],
)
def test_a_patch_fits_the_bytes_of_the_file(tmp_path: Path, change: Any) -> None:
    path = tmp_path / "program.py"
    patched(tmp_path, patch_of(path, change(PROGRAM)))
    after = path.read_text(encoding="utf-8")
    assert "\n    b.wait(a.record())\n    x.fill(2, b)" in after, after
    assert not run_program(tmp_path / "again.py", after).all


def test_lines_with_carriage_returns_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    text = PROGRAM.replace("\n", "\r\n")
    path.write_bytes(text.encode())
    found = [results.of_finding(finding) for finding in run_program(tmp_path / "same.py", PROGRAM).all]
    for one in found:
        one["changes"] = [{**change, "file": str(path)} for change in one["changes"]]
    printed: list[str] = []
    formats.write([formats.target("diff")], found, tmp_path, printed.append)
    (tmp_path / "fixes.patch").write_bytes("".join(printed).lstrip("\n").encode())
    patched(tmp_path, (tmp_path / "fixes.patch").read_bytes().decode())
    after = path.read_bytes()
    assert b"\r\n    b.wait(a.record())\r\n" in after and after.count(b"\n") == after.count(b"\r\n")
