"""Runs every check that needs no running program, and says which ones failed.

Usage: python tools/lint.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import module_state

ROOT = Path(__file__).resolve().parent.parent
# Pinned, so that a newer release cannot make an unchanged tree fail.
STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"
LINES = 400
CODE = {".go", ".py", ".pyi", ".c", ".h", ".sh"}


def files() -> list[Path]:
    """Return every file that git knows or would add."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def long_files(paths: list[Path]) -> list[str]:
    """Return the files over the limit that docs/rationale.md gives no reason for.

    A reason is a line that names the file in backquotes and says "lines".
    """
    rationale = ROOT / "docs" / "rationale.md"
    text = rationale.read_text() if rationale.exists() else ""
    allowed = {m for line in text.splitlines() if "lines" in line for m in re.findall(r"`([^`]+)`", line)}
    wrong = []
    for path in paths:
        name = str(path.relative_to(ROOT))
        if path.suffix in CODE:
            count = path.read_text().count("\n")
            if count > LINES and name not in allowed:
                wrong.append(f"{name} has {count} lines, more than {LINES}; docs/rationale.md gives no reason")
    return wrong


def gofmt(paths: list[Path]) -> list[str]:
    """Return the Go files that gofmt would change."""
    go = [str(p.relative_to(ROOT)) for p in paths if p.suffix == ".go"]
    if not go:
        return []
    tool = shutil.which("gofmt") or "gofmt"
    done = subprocess.run([tool, "-l", *go], cwd=ROOT, capture_output=True, text=True)
    return [f"gofmt would change {name}" for name in done.stdout.split()] + done.stderr.splitlines()


def main() -> int:
    python = sys.executable
    commands = [
        [python, "-m", "ruff", "check", "."],
        [python, "-m", "ruff", "format", "--check", "."],
        [python, "-m", "mypy"],
        [python, "tools/stubs.py", "--check"],
        [python, "tools/mutants.py", "--check"],
        ["go", "vet", "./..."],
        ["go", "run", STATICCHECK, "./..."],
    ]
    failed = []
    for command in commands:
        print("lint:", " ".join(command).replace(python, "python"), flush=True)
        if subprocess.run(command, cwd=ROOT).returncode:
            failed.append(" ".join(command[-2:]))
    paths = files()
    for problem in [*gofmt(paths), *long_files(paths), *module_state.check()]:
        print(f"lint: {problem}")
        failed.append(problem)
    print(f"lint: {'failed: ' + '; '.join(failed) if failed else 'clean'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
