"""Runs programs over other projects' code, unmodified, on the real torch without a GPU.

Usage: python tools/torch_programs.py [PROGRAM ...]   (default: all of tests/torch/programs)

Their packages go into an environment of their own, build/torch-programs, which uses the torch of
tools/torch_env.py. Each program compares what it computes on 'cuda' with the CPU, under the sanitizer: it must
be right and without a report. Then it runs again with one wait of the package deleted: the sanitizer must
report that, and some schedule must give wrong numbers. A table says what was found; the exit code is 0 if all
of it holds. The first lines of a program say what it needs:

    # needs: PACKAGE ...                 installed with what they depend on
    # alone: PACKAGE ...                 installed without it, from source if there is no wheel
    # module: MODULE                     where the wait is
    # without: LINE                      the wait: each such line of the module
    # nothing to delete: REASON          instead of it
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch_env

FOLDER = torch_env.BUILD / "torch-programs"
PROGRAMS = torch_env.ROOT / "tests" / "torch" / "programs"
WITHOUT = torch_env.ROOT / "tools" / "torch_without.py"
LIMIT = 600
SCHEDULES = 12


class Outcome(NamedTuple):
    """What a run of a program gave; `problem` is '' if that is as it should be."""

    found: str
    problem: str = ""


def said(program: Path, key: str) -> str:
    """Return what the head of a program says."""
    head = f"# {key}:"
    lines = (line for line in program.read_text().splitlines() if line.startswith(head))
    return next(lines, head).removeprefix(head).strip()


def environment(python: Path) -> Path:
    """Return the interpreter of the environment; `python` is that of the torch that it uses."""
    mine = FOLDER / "bin" / "python"
    if not mine.exists():
        subprocess.run([python, "-m", "venv", FOLDER], check=True)
        (site,) = FOLDER.glob("lib/python*/site-packages")
        (torch,) = python.parents[1].glob("lib/python*/site-packages")
        (site / "torch-env.pth").write_text(f"{torch}\n")
    return mine


def install(python: Path, program: Path) -> str:
    """Install what a program needs; return '' or why not."""
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    for key, options in (("needs", ["--only-binary", ":all:"]), ("alone", ["--no-deps", "--no-build-isolation"])):
        packages = said(program, key).split()
        if packages:
            done = subprocess.run([*pip, *options, *packages], capture_output=True, text=True)
            if done.returncode:
                return (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    return ""


def halstream(python: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit code (124: not done in time) and what a command printed."""
    command = [str(python), "-W", "ignore", "-m", "halstream", "run", "--torch", *arguments]
    env = {**torch_env.settings(), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        done = subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return 124, f"not done after {LIMIT} s"
    return done.returncode, done.stdout + done.stderr


def tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-40:])


def unmodified(python: Path, program: Path) -> Outcome:
    code, text = halstream(python, "--sanitize", str(program))
    return Outcome("right, no report") if code == 0 else Outcome("FAILED", tail(text))


def without(python: Path, program: Path) -> tuple[Outcome, Outcome]:
    """Return what the sanitizer and the schedules say with the wait deleted."""
    module, line = said(program, "module"), said(program, "without")
    if not line:
        reason = said(program, "nothing to delete")
        nothing = Outcome(f"nothing to delete: {reason}" if reason else "-", "" if reason else "no wait is named")
        return nothing, Outcome("-")
    arguments = (str(WITHOUT), module, line, str(program))
    code, text = halstream(python, "--sanitize", *arguments)
    deleted = "torch_without: " in text and "torch_without: 0 lines deleted" not in text
    seen = code != 0 and "unordered access" in text
    if not deleted:
        return Outcome("NOT DELETED", f"no such line in {module}: {line}\n{tail(text)}"), Outcome("-")
    sanitizer = Outcome("reported") if seen else Outcome("NOT REPORTED", tail(text))
    code, text = halstream(python, "--schedules", str(SCHEDULES), "--timeout", "120", *arguments)
    schedules = Outcome("wrong numbers found") if code == 1 else Outcome("NOTHING FOUND", tail(text))
    return sanitizer, schedules


def main(wanted: list[str]) -> int:
    programs = sorted(PROGRAMS.glob("*.py"))
    unknown = set(wanted) - {program.stem for program in programs}
    if unknown:
        raise SystemExit(f"torch-programs: no program {', '.join(sorted(unknown))}")
    base = torch_env.environment(torch_env.PINNED)
    torch_env.built(base)
    python = environment(base)
    rows, failed = [], False
    for program in programs:
        if wanted and program.stem not in wanted:
            continue
        began = time.monotonic()
        problem = install(python, program)
        if problem:
            outcomes: tuple[Outcome, ...] = (Outcome("NOT INSTALLED", problem),)
        else:
            outcomes = (unmodified(python, program), *without(python, program))
        rows.append((program.stem, f"{time.monotonic() - began:.0f} s", *(outcome.found for outcome in outcomes)))
        print("  ".join(rows[-1]), flush=True)
        for outcome in outcomes:
            failed = failed or bool(outcome.problem)
            if outcome.problem:
                print(outcome.problem, flush=True)
    heads = ("program", "time", "unmodified", "without one wait: sanitizer", "schedules")
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for row in rows:
        print("| " + " | ".join([*row, *[""] * (len(heads) - len(row))]) + " |")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
