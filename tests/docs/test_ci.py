"""The commands of the CI page do what it says."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
RACE = """
import halstream as hs


def test_race():
    one, two, x = hs.Stream(), hs.Stream(), hs.empty(16)
    x.fill(1, one)
    x.fill(2, two)
"""


@pytest.mark.needs("schedules")
def test_the_commands_of_the_page_find_a_fault(backend: str, tmp_path: Path) -> None:
    page = PAGE.read_text().replace("${{ inputs.schedules }}", "50")
    commands = dict.fromkeys(re.findall(r"(?:run|entry): (pytest .*)", page))  # the action has that of the workflow
    assert len(commands) == 2
    (tmp_path / "test_it.py").write_text(RACE)
    printed = ""
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)], cwd=tmp_path, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 1, done.stdout + done.stderr
        printed += done.stdout
    assert "\n::error file=test_it.py,line=8,title=UnorderedAccess::" in printed
    (one,) = json.loads((tmp_path / "streams.sarif").read_text())["runs"][0]["results"]
    assert one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "test_it.py"


OVERLAP = """
import halstream as hs

def test_race():
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.call(seen.append, 2)
    two.synchronize()
    one.synchronize()
    assert seen == [1, 2]

def test_right():
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.wait(one.record())
    two.call(seen.append, 2)
    two.synchronize()
    assert seen == [1, 2]
"""


@pytest.mark.needs("schedules")
def test_X20_the_campaign_of_the_page_prints_what_is_there(backend: str, tmp_path: Path) -> None:
    section = PAGE.read_text().partition("## Campaigns")[2]
    command, shown = (re.findall(rf"(?ms)^```{name}\n(.*?)^```$", section)[0] for name in ("bash", "text"))
    (tmp_path / "test_overlap.py").write_text(OVERLAP)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    words = shlex.split(command)
    done = subprocess.run([sys.executable, "-m", *words], cwd=tmp_path, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1 and done.stderr == "", done.stdout + done.stderr
    rest = done.stdout
    for line in shown.splitlines():
        found = re.search(".*".join(map(re.escape, line.strip().split("..."))), rest)
        assert found, f"{line!r} is not in {done.stdout}"
        rest = rest[found.end() :]
