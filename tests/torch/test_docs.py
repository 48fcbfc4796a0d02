"""The programs in README.md and in the pages about the real torch, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/race.md", "docs/torch.md", "docs/kernels.md", "docs/standins.md"]


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", (ROOT / page).read_text())


def program(page: str) -> str:
    """Return the program of a page."""
    (found,) = (text for text in blocks(page, "python") if text.startswith("# file: train.py\n"))
    return found.removeprefix("# file: train.py\n")


def report(page: str) -> str:
    """Return the report of the sanitizer that a page shows for it."""
    (found,) = (text for text in blocks(page, "text") if "train.py:" in text)
    return found


def run(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(source)
    command = [sys.executable, "-m", "halstream", "run", "--torch", *options, "train.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=os.environ)


def test_the_program_of_the_tutorial_prints_what_the_page_shows(tmp_path: Path) -> None:
    done = run(tmp_path, program("docs/torch.md"))
    assert (done.returncode, done.stdout) == (0, "0 0.0\n1 1.0\n2 2.0\n"), done.stderr
    assert done.stdout in blocks("docs/torch.md", "text")


@pytest.mark.parametrize("page", PAGES)
def test_the_sanitizer_prints_the_report_of_the_page(tmp_path: Path, page: str) -> None:
    source = "".join(line for line in program(page).splitlines(True) if "wait_stream" not in line)
    done = run(tmp_path, source, "--sanitize")
    assert done.returncode == 1
    assert report(page) in done.stderr + "\n", done.stderr


def test_the_line_of_the_report_makes_it_go_away(tmp_path: Path) -> None:
    source = program("README.md")
    place, line = re.findall(r"fix: before train\.py:(\d+)\n +(.+)\n", report("README.md"))[0]
    lines = source.splitlines(True)
    indent = re.match(" *", lines[int(place) - 1])
    assert indent is not None
    lines.insert(int(place) - 1, f"{indent[0]}{line}\n")
    done = run(tmp_path, "".join(lines), "--sanitize")
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert re.fullmatch(r"0 0\.\d+\n1 0\.\d+\n2 0\.\d+\n", done.stdout), done.stdout


def test_the_report_about_reading_too_early_is_that_of_the_page(tmp_path: Path) -> None:
    (source,) = (text for text in blocks("docs/torch.md", "python") if text.startswith("# file: early.py\n"))
    (tmp_path / "early.py").write_text(source.removeprefix("# file: early.py\n"))
    command = [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", "early.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240, env=os.environ)
    (shown,) = (text for text in blocks("docs/torch.md", "text") if "early.py:" in text)
    assert done.returncode == 1 and shown in done.stderr + "\n", done.stderr


def test_the_other_programs_of_the_pages_run(tmp_path: Path) -> None:
    for text in blocks("docs/torch.md", "python") + blocks("docs/standins.md", "python"):
        if "# file: " not in text:
            done = subprocess.run(
                [sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, timeout=240
            )
            assert done.returncode == 0, done.stderr


def tasks() -> dict[str, tuple[str, str]]:
    """Return the programs of torch on the page of first tasks, each with the report that stands behind it."""
    page = (ROOT / "docs" / "tasks.md").read_text()
    command = r"```bash\nhalstream run --torch --sanitize \1\n```"
    found = re.findall(rf"(?ms)^```python\n# file: (\w+\.py)\n(.*?)^```\n\n{command}\n\n```text\n(.*?)^```$", page)
    return {name: (source, shown) for name, source, shown in found}


def sanitized(folder: Path, name: str, source: str) -> subprocess.CompletedProcess[str]:
    (folder / name).write_text(source)
    command = [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", name]
    env = {**os.environ, "TRITON_DEFAULT_FP_FUSION": "1"}  # Triton warns where it is unset
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=env)


@pytest.mark.parametrize("name", ["prefetch.py", "serve.py", "scale.py"])
def test_a_first_task_prints_its_report_and_the_line_of_the_report_repairs_it(tmp_path: Path, name: str) -> None:
    source, shown = tasks()[name]
    done = sanitized(tmp_path, name, source)
    assert done.returncode == 1 and shown in done.stderr + "\n", done.stderr
    (where, place, line) = re.findall(rf"fix: (before|after) {name}:(\d+).*\n +(.+)\n", shown)[0]
    lines, at = source.splitlines(True), int(place) - 1
    indent = re.match(" *", lines[at])
    assert indent is not None
    lines.insert(at + (where == "after"), f"{indent[0]}{line}\n")
    done = sanitized(tmp_path, name, "".join(lines))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_a_project_is_set_up_and_its_change_verified_as_the_page_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tasks.md").read_text()
    for name, text in re.findall(r"(?ms)^```(?:toml|python)\n# file: (pyproject\.toml|tests/\S+)\n(.*?)^```$", page):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (shown,) = re.findall(r"(?ms)^```text\n(proven patch.*?)^```$", page)
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p halstream.pytest_plugin"}
    for code, words in ((0, ["init", "--yes"]), (1, ["verify", "tests/test_loader.py"])):
        command = [sys.executable, "-m", "halstream", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, env=env)
        assert done.returncode == code, done.stdout + done.stderr
    assert "stream_torch = true" in (tmp_path / "pyproject.toml").read_text()
    assert shown in done.stdout, done.stdout


@pytest.mark.parametrize("name", ["buckets.py", "groups.py"])
def test_the_ranks_of_the_programs_end_with_the_text_of_the_page(tmp_path: Path, name: str) -> None:
    (source,) = (text for text in blocks("docs/ranks.md", "python") if text.startswith(f"# file: {name}\n"))
    (shown,) = (text for text in blocks("docs/ranks.md", "text") if f"{name}:" in text)
    (tmp_path / name).write_text(source.removeprefix(f"# file: {name}\n"))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "--log-dir=logs", "--redirects=3"]
    done = subprocess.run(
        [sys.executable, "-m", "halstream", "run", "--torch", *launcher, name],
        cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    (log,) = (tmp_path / "logs").glob("**/0/stderr.log")
    said = log.read_text().replace("[rank0]: ", "").replace(f"{tmp_path}{os.sep}", "")
    assert done.returncode == 1 and shown.rstrip("\n") in said, f"{done.stderr}\n{said}"
