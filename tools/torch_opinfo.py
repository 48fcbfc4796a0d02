"""Compares all operators of torch's own database of samples (OpInfo) on 'cuda' with the CPU.

Usage: python tools/torch_opinfo.py [--samples N] [--other-samples N] [--shard I/N] [--seconds S] [--docs] [NAME ...]

For each operator the first N samples in float32, forward and backward, and fewer in its other types. Two
processes share the operators; one that ends or hangs is named and started again behind it. The results are
in build/torch-opinfo.json; --docs writes what differs, with the reasons, into docs/torch.md.
"""

from __future__ import annotations

import argparse
import collections
import json
import queue
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import torch_env

RESULTS = torch_env.BUILD / "torch-opinfo.json"
DOCS = torch_env.ROOT / "docs" / "torch.md"
BEGIN, END = "<!-- opinfo: begin -->\n", "<!-- opinfo: end -->\n"
LIMIT = 300.0  #: seconds for one operator
REACH = {"forward": 0.97, "backward": 0.95}
#: What an outcome is called in the table; the first two are as they should be.
OUTCOMES = ("equal", "ran", "refused", "differs", "raised", "ended")


class Worker:
    """A process of torch_opinfo_worker.py that is given one operator at a time."""

    def __init__(self, python: Path, options: list[str]) -> None:
        self._command = [
            str(python),
            "-W",
            "ignore",
            str(torch_env.ROOT / "tools" / "torch_opinfo_worker.py"),
            *options,
        ]
        self._child: subprocess.Popen[str] | None = None

    def run(self, name: str) -> list[dict[str, Any]]:
        """Return the outcomes of an operator."""
        if self._child is None:
            self._child = subprocess.Popen(
                self._command, env=torch_env.settings(), cwd=torch_env.BUILD, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        killer = threading.Timer(LIMIT, child.kill)
        killer.start()
        try:
            child.stdin.write(name + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            killer.cancel()
        if line:
            return json.loads(line)  # type: ignore[no-any-return]
        code, self._child = child.wait(), None
        return [{"pass": "forward", "dtype": "?", "outcome": "ended", "text": f"the process ended with {code}"}]

    def close(self) -> None:
        if self._child is not None and self._child.stdin is not None:
            self._child.stdin.close()
            self._child.wait(60)


_NAMES = """
from torch.testing._internal.common_methods_invocations import op_db
print(*dict.fromkeys(op.full_name for op in op_db))
"""


def names(python: Path) -> list[str]:
    """Return the operators of the database."""
    command = [python, "-W", "ignore", "-c", _NAMES]
    done = subprocess.run(command, env=torch_env.settings(), cwd=torch_env.BUILD, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.split()


def measure(python: Path, wanted: list[str], options: list[str], seconds: float) -> dict[str, list[dict[str, Any]]]:
    """Run all operators in two processes; return their outcomes by name."""
    todo: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in wanted:
        todo.put(name)
    results: dict[str, list[dict[str, Any]]] = {}
    began = time.monotonic()

    def work() -> None:
        worker = Worker(python, options)
        while time.monotonic() - began < seconds:
            try:
                name = todo.get_nowait()
            except queue.Empty:
                break
            results[name] = worker.run(name)
            bad = [one for one in results[name] if one["outcome"] not in ("equal", "ran")]
            for one in bad[:3]:
                print(f"{name} {one['dtype']} {one['pass']}: {one['outcome']}: {one['text'][:160]}", flush=True)
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    missing = f", {len(wanted) - len(results)} not tried" if len(results) < len(wanted) else ""
    print(f"torch-opinfo: {len(results)} operators in {time.monotonic() - began:.0f} s{missing}")
    return results


def table(results: dict[str, list[dict[str, Any]]]) -> tuple[str, bool]:
    """Return the table of counts, and whether enough is equal."""
    counts: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcomes in results.values():
        for one in outcomes:
            counts[one["pass"], "float32" if one["dtype"] == "float32" else "other types"][one["outcome"]] += 1
    lines = ["| pass | types | samples | " + " | ".join(OUTCOMES) + " |", "|---" * (3 + len(OUTCOMES)) + "|"]
    enough = True
    for (which, types), count in sorted(counts.items(), reverse=True):
        total = sum(count.values())
        right = (count["equal"] + count["ran"]) / total
        if types == "float32":
            enough = enough and right >= REACH[which]
        lines.append(f"| {which} | {types} | {total} | " + " | ".join(str(count[name]) for name in OUTCOMES) + " |")
    return "\n".join(lines) + "\n", enough


def reasons(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the list of what differs: operators with the same reason in one row."""
    rows: dict[str, set[str]] = collections.defaultdict(set)
    for name, outcomes in results.items():
        for one in outcomes:
            if one["outcome"] not in ("equal", "ran"):
                kind = "" if one["dtype"] == "float32" else f" ({one['dtype']})"
                text = re.sub(r"\s+", " ", one["text"]).replace("|", "\\|")
                rows[f"{one['outcome']}: {text[:110]}"].add(name + kind)
    lines = ["| operators | what |", "|---|---|"]
    for text, operators in sorted(rows.items(), key=lambda row: sorted(row[1])):
        shown = sorted(operators)
        lines.append(f"| {', '.join(shown[:6])}{f' and {len(shown) - 6} more' if len(shown) > 6 else ''} | {text} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default=torch_env.PINNED, choices=torch_env.SUPPORTED)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--other-samples", type=int, default=1)
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--python", type=Path, help="an environment with torch, instead of one of torch_env.py")
    given = parser.parse_args()
    python = given.python or torch_env.environment(given.torch)
    torch_env.built(python)
    wanted = given.names or names(python)
    index, of = map(int, given.shard.split("/"))
    options = [str(given.samples), str(given.other_samples)]
    results = measure(python, wanted[index - 1 :: of], options, given.seconds)
    RESULTS.write_text(json.dumps(results, indent=1))
    counts, enough = table(results)
    print(counts)
    if given.docs:
        head, _, rest = DOCS.read_text().partition(BEGIN)
        _, _, tail = rest.partition(END)
        DOCS.write_text(head + BEGIN + "\n" + counts + "\n" + reasons(results) + "\n" + END + tail)
    return 0 if enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
