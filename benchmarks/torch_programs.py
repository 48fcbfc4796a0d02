"""Measures steps of programs of other projects beside plain torch: python -m benchmarks.torch_programs --help.

For each program of tests/torch/programs that has a step in torch_program_steps.py: the processor time of a step, as
medians of processes that take turns, its ratio to the same step of plain torch on the CPU, and what the second
thousand of 2,000 steps adds to the process's memory. Needs the environment of `make torch-programs`. Nothing is
asserted.
"""

from __future__ import annotations

import argparse
import json
import statistics
from typing import Any

from .report import aligned
from .run import run, say, torch_env
from .torch_program_steps import PROGRAMS

LIMIT_S = 1200  # for a process; 2,000 steps take a minute on an idle machine
KINDS = ("cpu", "cuda", "sanitized")
PYTHON = torch_env.BUILD / "torch-programs" / "bin" / "python"


def figure(name: str, kind: str) -> float:
    """Return what a process measured."""
    words = [str(PYTHON), "-W", "ignore", "-m", "benchmarks.torch_program_steps", name, kind]
    found: float = json.loads(run(words, torch_env.settings(), LIMIT_S).splitlines()[-1])
    return found


def line(name: str, rounds: int) -> list[str]:
    """Return a program's line of the table."""
    found: list[dict[str, Any]] = [{kind: figure(name, kind) for kind in KINDS} for _ in range(rounds)]
    times = {kind: statistics.median(one[kind] for one in found) for kind in KINDS}
    ratios = [f"{times[kind] / times['cpu']:.2f}" for kind in ("cuda", "sanitized")]
    return [name, *(f"{times[kind]:.1f}" for kind in KINDS), *ratios, f"{figure(name, 'memory'):+.1f}"]


def main() -> None:
    """Measure the programs, and print the table."""
    names = [program.__name__ for program in PROGRAMS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*names, []], metavar="NAME", help="programs; all if none is named")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind")
    given = parser.parse_args()
    heads = [
        "program",
        "plain torch, ms",
        "host streams, ms",
        "sanitized, ms",
        "÷ plain",
        "sanitized ÷ plain",
        "memory, MiB",
    ]
    lines = [heads]
    for name in given.names or names:
        lines.append(line(name, given.rounds))
        say("  ".join(lines[-1]))
    print(aligned(lines))


if __name__ == "__main__":
    main()
