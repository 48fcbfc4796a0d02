"""Programs as text for tests of the sanitizer: run, looked at, mended and run again."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import halstream as hs
from halstream._schedule import schedule

LIMIT = 10.0


def run(path: Path, source: str, spec: str = "fifo", **options: Any) -> Any:
    """Write a program to a file, run it under a schedule and return the report."""
    text = textwrap.dedent(source)
    path.write_text(text)
    with schedule(spec), hs.sanitize(**{"on": "collect", **options}) as report:
        exec(compile(text, str(path), "exec"), {"__name__": "program"})
    return report


def mended(source: str, finding: Any) -> str:
    """Return the program with the line that a finding proposes, at the place that it proposes."""
    from halstream._remedy import remedy

    found = remedy(finding)
    assert found.line and found.place, found
    lines = textwrap.dedent(source).splitlines()
    at = found.place.line - 1
    indentation = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    lines.insert(at if found.where == "before" else at + 1, indentation + found.line)
    return "\n".join(lines) + "\n"
