"""Asks a driver what its documentation leaves open: python -m benchmarks.gpu.probes [--help].

Each question runs in a process of its own, because some may leave the driver in
a bad state, and has a time limit. The answers are data, printed as one object
of JSON; nothing here judges them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import answers, answers_holds, answers_order
from .driver import AbsentError, Driver

ANSWERS = answers.ANSWERS | answers_order.ANSWERS | answers_holds.ANSWERS
ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


def ask(name: str, library: str) -> dict[str, Any]:
    """Ask one question in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.gpu.probes", "--one", name, "--library", library]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {"failed": f"no answer within {LIMIT_S} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return {"failed": f"the process ended with {done.returncode}: {last[:300]}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> int:
    """Ask all questions, or the one that is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu.probes", description=__doc__.split("\n\n")[0])
    parser.add_argument("--library", default="", help="a driver library other than libcuda.so.1")
    parser.add_argument("--one", choices=list(ANSWERS), help="ask one question in this process")
    parser.add_argument("--output", type=Path, help="where the answers go, beside standard output")
    options = parser.parse_args()
    try:
        driver = Driver(options.library)
        if options.one:
            print(json.dumps(ANSWERS[options.one](driver)))
            return 0
    except AbsentError as exc:
        print(exc, file=sys.stderr)
        return 2
    found = {}
    for name, function in ANSWERS.items():
        question = (function.__doc__ or "").splitlines()[0]
        found[name] = {"question": question, "answer": ask(name, options.library)}
        print(f"{name}: {question} {json.dumps(found[name]['answer'])[:300]}", file=sys.stderr, flush=True)
    text = json.dumps({"device": driver.describe(), "answers": found}, indent=1)
    if options.output:
        options.output.write_text(text + "\n")
    print(text)
    return 1 if any("failed" in entry["answer"] for entry in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
