"""Compares what torch's own databases of samples give on 'cuda' with the CPU.

Usage: python tools/torch_opinfo.py [--database NAME] [--samples N] [--other-samples N] [--shard I/N] [--seconds S]
                                    [--docs] [NAME ...]

The databases are `operators` (OpInfo: for each operator the first N samples in float32, forward and backward, and
fewer in its other types), `functions` (the same of autograd.Function and of custom operators), `modules` (all
samples, forward and backward), `optimizers` (all variants, several steps each) and `compiled` (the operators, forward,
by torch.compile against 'cuda' without it). Two processes share the entries;
one that ends or hangs is named and started again behind it. The results are in build/torch-DATABASE.json; --docs
writes the counts and what differs into docs/torch.md.
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

WORKER = torch_env.ROOT / "tools" / "torch_opinfo_worker.py"
DOCS = torch_env.ROOT / "docs" / "torch.md"
DATABASES = ("operators", "functions", "modules", "optimizers", "compiled")
LIMIT = 300.0  #: seconds for one entry
REACH = {"forward": 0.97, "backward": 0.95, "steps": 0.97, "compiled": 0.95}
#: What an outcome is called in the table.
OUTCOMES = ("equal", "ran", "raised on both", "refused", "differs", "raised", "ended")
RIGHT = OUTCOMES[:3]


class Worker:
    """A process of torch_opinfo_worker.py that is given one entry at a time."""

    def __init__(self, python: Path, options: list[str]) -> None:
        self._command = [str(python), "-W", "ignore", str(WORKER), *options]
        self._child: subprocess.Popen[str] | None = None

    def run(self, name: str) -> list[dict[str, Any]]:
        """Return the outcomes of an entry."""
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


def names(python: Path, database: str) -> list[str]:
    """Return the entries of a database."""
    command = [python, "-W", "ignore", WORKER, database, "--names"]
    done = subprocess.run(command, env=torch_env.settings(), cwd=torch_env.BUILD, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout.splitlines()[-1].split()


def measure(python: Path, wanted: list[str], options: list[str], seconds: float) -> dict[str, list[dict[str, Any]]]:
    """Run all entries in two processes; return their outcomes by name."""
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
            bad = [one for one in results[name] if one["outcome"] not in RIGHT]
            for one in bad[:3]:
                print(f"{name} {one['dtype']} {one['pass']}: {one['outcome']}: {one['text'][:160]}", flush=True)
        worker.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    missing = f", {len(wanted) - len(results)} not tried" if len(results) < len(wanted) else ""
    print(f"torch-opinfo: {len(results)} {options[0]} in {time.monotonic() - began:.0f} s{missing}")
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
        right = sum(count[name] for name in RIGHT) / total
        if types == "float32":
            enough = enough and right >= REACH[which]
        lines.append(f"| {which} | {types} | {total} | " + " | ".join(str(count[name]) for name in OUTCOMES) + " |")
    return "\n".join(lines) + "\n", enough


def reasons(results: dict[str, list[dict[str, Any]]]) -> str:
    """Return the list of what differs: entries with the same reason in one row."""
    rows: dict[str, set[str]] = collections.defaultdict(set)
    for name, outcomes in results.items():
        for one in outcomes:
            if one["outcome"] not in RIGHT:
                kind = "" if one["dtype"] == "float32" else f" ({one['dtype']})"
                text = re.sub(r"\s+", " ", one["text"]).replace("|", "\\|")
                rows[f"{one['outcome']}: {text[:110]}"].add(name + kind)
    lines = ["| entries | what |", "|---|---|"]
    for text, entries in sorted(rows.items(), key=lambda row: sorted(row[1])):
        shown = sorted(entries)
        lines.append(f"| {', '.join(shown[:6])}{f' and {len(shown) - 6} more' if len(shown) > 6 else ''} | {text} |")
    return "\n".join(lines) + "\n" if rows else ""


def write(database: str, text: str) -> None:
    """Put the text between a database's marks in docs/torch.md."""
    begin, end = (f"<!-- {database}: {which} -->\n" for which in ("begin", "end"))
    head, _, rest = DOCS.read_text().partition(begin)
    _, _, tail = rest.partition(end)
    DOCS.write_text(head + begin + "\n" + text + "\n" + end + tail)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--torch", default=torch_env.PINNED, choices=torch_env.SUPPORTED)
    parser.add_argument("--database", default=DATABASES[0], choices=DATABASES)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--other-samples", type=int, default=1)
    parser.add_argument("--shard", default="1/1")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--python", type=Path, help="an environment with torch, instead of one of torch_env.py")
    given = parser.parse_args()
    python = given.python or torch_env.environment(given.torch)
    torch_env.built(python)
    wanted = given.names or names(python, given.database)
    index, of = map(int, given.shard.split("/"))
    options = [given.database, str(given.samples), str(given.other_samples)]
    results = measure(python, wanted[index - 1 :: of], options, given.seconds)
    (torch_env.BUILD / f"torch-{given.database}.json").write_text(json.dumps(results, indent=1))
    counts, enough = table(results)
    print(counts)
    if given.docs:
        differing = reasons(results)
        write(given.database, counts + (f"\n{differing}" if differing else ""))
    return 0 if enough else 1


if __name__ == "__main__":
    raise SystemExit(main())
