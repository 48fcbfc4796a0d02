"""The programs of docs/found.md, run as they stand there against the libraries as they were released."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

PAGE = (Path(__file__).resolve().parents[2] / "docs/found.md").read_text()
#: Each program with its report.
FOUND = re.findall(r"(?ms)^```python\n# file: (\w+)\.py\n(.*?)^```\n\n```text\n(.*?)^```$", PAGE)
#: What a program needs beside torch, and what pip is asked for to install it.
LIBRARIES = {
    "offload": ("fairscale", "fairscale==0.4.13"),
    "prefetch": ("basicsr", "--no-deps basicsr==1.4.2"),
    "fabric": ("lightning", "lightning==2.6.6"),
    "graphs_prefetch": ("torch_geometric", "torch_geometric==2.8.1"),
    "batching": ("transformers", "transformers==5.24.0"),
}


def run(folder: Path, name: str, program: str) -> tuple[int, str, str]:
    """Return the exit code, the output and the reports of a program; paths of packages begin with their names."""
    (folder / f"{name}.py").write_text(program)
    command = [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", f"{name}.py"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=environment)
    return done.returncode, done.stdout, re.sub(r"/[^ \n]*/site-packages/", "", done.stderr)


def needs(name: str) -> None:
    """Skip a program whose report names lines of what is not installed."""
    library, words = LIBRARIES.get(name, ("torch", "torch"))
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}: pip install {words}")
    if not version("torch").startswith("2.15."):
        pytest.skip("the reports of the page name lines of torch 2.15")


@pytest.mark.parametrize(("name", "program", "report"), FOUND, ids=[name for name, *_ in FOUND])
def test_the_report_of_the_page_is_printed(tmp_path: Path, name: str, program: str, report: str) -> None:
    needs(name)
    code, _, errors = run(tmp_path, name, program)
    assert code == 1
    assert report in errors + "\n", errors


@pytest.mark.parametrize("name", ["stager", "mixed", "prefetch", "fabric"])
def test_the_line_of_the_report_makes_it_go_away(tmp_path: Path, name: str) -> None:
    needs(name)
    (program, report), *_ = [(program, report) for one, program, report in FOUND if one == name]
    where, place, line = re.findall(rf"fix: (before|after) {name}\.py:(\d+).*\n +(.+)\n", report)[0]
    lines = program.splitlines(True)
    indent = re.match(" *", lines[int(place) - 1])
    assert indent is not None
    lines.insert(int(place) - (where == "before"), f"{indent[0]}{line}\n")
    code, _, errors = run(tmp_path, name, "".join(lines))
    assert (code, "unordered access" in errors) == (0, False), errors


def test_the_page_has_eight_programs_each_with_its_report() -> None:
    assert len(FOUND) == PAGE.count("\n# file: ") == 8
