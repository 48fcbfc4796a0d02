"""Measures how many of the programs after public bug reports (tests/races) are reported, in each mode.

Usage: python tools/torch_races.py [--docs] [--python PATH]

One process for each mode runs all of them on the real torch without a GPU, and one more under torch's own sanitizer
of streams. --docs writes the table into docs/trust.md, and the reports of the programs of docs/races.md behind them.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch_env

sys.path.insert(0, str(torch_env.ROOT / "tests"))

from races import MODES, PATTERNS, RACES

TRUST = torch_env.ROOT / "docs" / "trust.md"
PAGE = torch_env.ROOT / "docs" / "races.md"
BEGIN, END = "<!-- races: begin -->\n", "<!-- races: end -->\n"
CSAN = "csan"  # as races.modes calls it, which needs torch
HEADS = {"fifo": "in order", "threads": "on threads", "pages": "in order, pages", CSAN: "torch's csan"}
LIMIT = 600  #: seconds for one mode

#: A program of the page with the report that is printed for it.
SHOWN = re.compile(r"(?ms)^```python\n# file: (\w+\.py)\n(.*?)^```\n\n```text\n(.*?)^```\n")


def measured(python: Path, mode: str) -> dict[str, dict[str, bool]]:
    """Return by name of a program whether it was `found` in a mode, and its twin `wrong`ly reported."""
    done = subprocess.run(
        [python, "-W", "ignore", "-m", "races", mode],
        cwd=torch_env.ROOT / "tests", env=torch_env.settings(), capture_output=True, text=True, timeout=LIMIT,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"torch-races: {mode}: {done.stderr}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["name"]: row for row in rows}


def table(results: dict[str, dict[str, dict[str, bool]]]) -> str:
    """Return the figures by pattern, and those of the repaired programs in the last row."""
    modes = list(results)
    lines = ["| what is wrong | programs | " + " | ".join(HEADS[mode] for mode in modes) + " | mended |"]
    lines.append("|---" * (3 + len(modes)) + "|")
    for pattern, what in PATTERNS.items():
        names = [race.name for race in RACES if race.pattern == pattern]
        counts = [str(sum(results[mode][name]["found"] for name in names)) for mode in modes]
        counts.append(str(sum(results["fifo"][name]["mended"] for name in names)))
        lines.append(f"| {what} | {len(names)} | " + " | ".join(counts) + " |")
    for title, key in (("**all reported**", "found"), ("**repaired programs reported**", "wrong")):
        counts = [str(sum(row[key] for row in results[mode].values())) for mode in modes]
        counts.append(str(sum(row["mended"] for row in results["fifo"].values())) if key == "found" else "")
        lines.append(f"| {title} | {len(RACES)} | " + " | ".join(counts) + " |")
    return "\n".join(lines) + "\n"


def write_table(text: str) -> None:
    """Put the table between its marks in docs/trust.md."""
    head, _, rest = TRUST.read_text().partition(BEGIN)
    TRUST.write_text(head + BEGIN + "\n" + text + "\n" + END + rest.partition(END)[2])


def report(python: Path, name: str, source: str) -> str:
    """Return the report that the command prints for a program."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_text(source)
        command = [python, "-W", "ignore", "-m", "halstream", "run", "--torch", "--sanitize", name]
        done = subprocess.run(command, cwd=folder, env=torch_env.settings(), capture_output=True, text=True)
    found = re.search(r"(?ms)^unordered access: .*?\n(?=\n|\Z)", done.stderr)
    if found is None:
        raise SystemExit(f"torch-races: {name} of docs/races.md is not reported:\n{done.stderr}")
    return found[0]


def write_reports(python: Path) -> None:
    """Put the reports behind the programs of docs/races.md."""

    def shown(match: re.Match[str]) -> str:
        name, source, _ = match.groups()
        return f"```python\n# file: {name}\n{source}```\n\n```text\n{report(python, name, source)}```\n"

    PAGE.write_text(SHOWN.sub(shown, PAGE.read_text()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default=torch_env.PINNED, choices=torch_env.SUPPORTED)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--python", type=Path, help="an environment with torch, instead of one of torch_env.py")
    given = parser.parse_args()
    python = given.python or torch_env.environment(given.torch)
    if not given.python:
        torch_env.built(python)
    results = {mode: measured(python, mode) for mode in (*MODES, CSAN)}
    text = table(results)
    print(text)
    if given.docs:
        write_table(text)
        write_reports(python)
    wrong = [
        f"{race.name} in {mode}"
        for race in RACES
        for mode in MODES
        if results[mode][race.name]["found"] != (mode in race.modes) or results[mode][race.name]["wrong"]
    ]
    for one in wrong:
        print(f"torch-races: {one}: not as tests/races says")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
