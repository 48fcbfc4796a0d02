"""Runs programs over other projects' code, unmodified, on the real torch without a GPU.

Usage: python tools/torch_programs.py [PROGRAM ...]   (default: all of tests/torch/programs)

Their packages go into an environment of their own, build/torch-programs, which uses the torch of
tools/torch_env.py. Each program compares what it computes on 'cuda' with the CPU, under the sanitizer.
One whose packages cannot be installed is named; it is an error if none can be.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import torch_env

FOLDER = torch_env.BUILD / "torch-programs"
PROGRAMS = torch_env.ROOT / "tests" / "torch" / "programs"
LIMIT = 600


def packages(program: Path) -> list[str]:
    """Return what the first line of a program names: ``# needs: transformers``."""
    return program.read_text().splitlines()[0].removeprefix("# needs:").split()


def environment(python: Path) -> Path:
    """Return the interpreter of the environment; `python` is that of the torch that it uses."""
    mine = FOLDER / "bin" / "python"
    if not mine.exists():
        subprocess.run([python, "-m", "venv", FOLDER], check=True)
        (site,) = FOLDER.glob("lib/python*/site-packages")
        (torch,) = python.parents[1].glob("lib/python*/site-packages")
        (site / "torch-env.pth").write_text(f"{torch}\n")
    return mine


def run(python: Path, program: Path) -> str:
    """Run a program; return '' or how it failed."""
    install = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *packages(program)]
    done = subprocess.run(install, capture_output=True, text=True)
    if done.returncode:
        return "not installed: " + (done.stderr.strip().splitlines() or ["pip failed"])[-1]
    command = [python, "-m", "halstream", "run", "--torch", "--sanitize", str(program)]
    env = {**torch_env.settings(), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        done = subprocess.run(command, cwd=FOLDER, env=env, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"not done after {LIMIT} s"
    return "" if done.returncode == 0 else "\n".join((done.stdout + done.stderr).strip().splitlines()[-40:])


def main(wanted: list[str]) -> int:
    programs = sorted(PROGRAMS.glob("*.py"))
    unknown = set(wanted) - {program.stem for program in programs}
    if unknown:
        raise SystemExit(f"torch-programs: no program {', '.join(sorted(unknown))}")
    base = torch_env.environment(torch_env.PINNED)
    torch_env.built(base)
    python = environment(base)
    failed = 0
    for program in programs:
        if wanted and program.stem not in wanted:
            continue
        began = time.monotonic()
        problem = run(python, program)
        failed += bool(problem)
        state = "FAILED" if problem else "as on the CPU, no unordered access"
        print(f"{program.stem}: {state} ({time.monotonic() - began:.0f} s)", flush=True)
        if problem:
            print(problem, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
