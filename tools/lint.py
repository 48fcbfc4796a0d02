"""Runs every check that needs no running program, and says which ones failed.

Usage: python tools/lint.py [--rest]

With --rest without those for which .pre-commit-config.yaml has hooks of their own.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import docstrings
import error_pages
import imports
import includes
import module_state
from source_files import source_files

ROOT = Path(__file__).resolve().parent.parent
# Pinned, so that a newer release cannot make an unchanged tree fail.
STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"
# Percent of the public names of halstream whose types a type checker knows without inferring them.
KNOWN_TYPES = 98.0


def gofmt(paths: list[Path]) -> list[str]:
    """Return the Go files that gofmt would change."""
    go = [str(p.relative_to(ROOT)) for p in paths if p.suffix == ".go"]
    if not go:
        return []
    tool = shutil.which("gofmt") or "gofmt"
    done = subprocess.run([tool, "-l", *go], cwd=ROOT, capture_output=True, text=True)
    return [f"gofmt would change {name}" for name in done.stdout.split()] + done.stderr.splitlines()


def unknown_types() -> list[str]:
    """Return what keeps the public types below `KNOWN_TYPES`, and nothing if they are not below it."""
    if importlib.util.find_spec("pyright") is None:
        return ["pyright is not installed: install the extra dev"]
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable]
    command += ["--verifytypes", "halstream", "--ignoreexternal", "--outputjson"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    try:
        found = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        return [f"pyright failed: {(done.stderr or done.stdout).strip()}"]
    known = 100 * found["completenessScore"]
    print(f"lint: pyright knows {known:.2f} % of the public types, {KNOWN_TYPES} % are required", flush=True)
    if known >= KNOWN_TYPES:
        return []
    unknown = [symbol["name"] for symbol in found["symbols"] if not symbol["isTypeKnown"]]
    return [f"only {known:.2f} % of the public types are known; not those of {', '.join(unknown[:20])}"]


def main() -> int:
    python = sys.executable
    commands = [
        [python, "tools/mutants.py", "--check"],
        [python, "tools/mutants.py", "--torch", "--check"],
        ["go", "run", STATICCHECK, "./..."],
    ]
    if "--rest" not in sys.argv[1:]:
        commands = [
            [python, "-m", "ruff", "check", "."],
            [python, "-m", "ruff", "format", "--check", "."],
            [python, "-m", "mypy"],
            ["go", "vet", "./..."],
            *commands,
        ]
    failed = []
    for command in commands:
        print("lint:", " ".join(command).replace(python, "python"), flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(" ".join(command[-2:]))
    paths = source_files()
    problems = [
        *gofmt(paths),
        *module_state.check(),
        *imports.check(),
        *includes.check(),
        *docstrings.check(),
        *error_pages.check(),
    ]
    for problem in [*problems, *unknown_types()]:
        print(f"lint: {problem}")
        failed.append(problem)
    print(f"lint: {'failed: ' + '; '.join(failed) if failed else 'clean'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
