"""The program of docs/paddle.md, in both of its forms."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import Child

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "paddle.md").read_text()
PROGRAM, OUTPUT = (
    re.search(rf"(?ms)^```{language}\n(.*?)^```$", PAGE)[1]  # type: ignore[index]
    for language in ("python", "text")
)


def test_the_program_prints_what_the_page_says(child: Child) -> None:
    done = child(PROGRAM)
    assert done.stdout == OUTPUT, done.stderr


def test_it_runs_under_schedules(child: Child) -> None:
    text = PROGRAM.replace("import halstream.paddle.plugin  # first\n", "")
    done = child(text, "-m", "halstream", "run", "--paddle", "--schedules", "3")
    assert done.returncode == 0, done.stdout + done.stderr
