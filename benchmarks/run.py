"""Measures halstream beside its peers: python -m benchmarks.run [--help].

Every figure comes from several processes; halstream's and the peers' take turns, so that what else the machine does
falls on all alike. Nothing is asserted: the table is for people. A peer that cannot be installed is named with the
reason. The first run installs the peers below build/peers (about 1.5 GiB, most of it Intel's compiler libraries). The
rows of the real torch need the environment of `make test-torch`, and are left out where it is not there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from .peer import ROOT, Peer, PeerAbsentError
from .report import NUMPY, OWN, STREAMS, TORCH, insert, notes, table

sys.path.insert(0, str(ROOT / "tools"))
import torch_env  # type: ignore[import-not-found]

PROCESS_S = 240  # a process that takes longer has hung
IMPORT = "import time; t = time.perf_counter(); import halstream; print((time.perf_counter() - t) * 1e3)"
FIRST = IMPORT.replace("import halstream;", "import halstream; halstream.Stream();")
PROGRAM = "import torch\nprint((torch.ones(4) + 1).sum().item())\n"  # its start is timed


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def run(words: list[str], environment: dict[str, str], limit_s: int = PROCESS_S) -> str:
    """Run a command and return its output.

    Raises
    ------
    PeerAbsentError
        If it fails or hangs, with its last words.
    """
    try:
        done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise PeerAbsentError(f"a process took longer than {limit_s} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise PeerAbsentError(f"a process ended with {done.returncode}: {lines[-1][:200]}")
    return done.stdout


def sheet_of(peer: Peer) -> dict[str, Any]:
    """Measure a peer in a process of its own; of halstream also its imports."""
    found: dict[str, Any] = json.loads(
        run([peer.python, "-m", "benchmarks.child", peer.name], peer.environment).splitlines()[-1]
    )
    if peer.name == OWN:
        for row, program in (("import", IMPORT), ("first", FIRST)):
            taken = [float(run([peer.python, "-c", program], peer.environment)) for _ in range(5)]
            found["rows"][row] = {"": statistics.median(taken)}
    return found


def torch_sheets(python: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Measure the real torch on host streams, also with the sanitizer, and on the CPU."""
    environment = {**torch_env.settings(), "PYTHONWARNINGS": "ignore"}

    def figures(kind: str) -> dict[str, float]:
        output = run([str(python), "-m", "benchmarks.torch_child", kind], environment)
        found: dict[str, float] = json.loads(output.splitlines()[-1])
        return found

    cuda, checked, cpu = figures("cuda"), figures("sanitized"), figures("cpu")
    program = ROOT / "build" / "bench_start.py"
    program.write_text(PROGRAM)
    started = []
    for words in ([str(python), "-m", "halstream", "run", "--torch", str(program)], [str(python), str(program)]):
        taken = []
        for _ in range(3):
            began = time.perf_counter()
            run(words, environment)
            taken.append(time.perf_counter() - began)
        started.append(statistics.median(taken))
    models = ("resnet", "transformer")
    own = {"torch_add": cuda["add"], "torch_start": started[0] - started[1]}
    own |= {f"torch_{model}": cuda[model] for model in models}
    own["torch_block"] = cuda["block"]
    own |= figures("kernels")
    own |= {f"checked_{model}": checked[model] for model in models}
    plain = {"torch_add": cpu["add"], "torch_block": cpu["block"]}
    plain |= {f"{kind}_{model}": cpu[model] for kind in ("torch", "checked") for model in models}
    plain |= figures("interpreted")
    return {row: {"": value} for row, value in own.items()}, {row: {"": value} for row, value in plain.items()}


def machine() -> dict[str, Any]:
    """Describe the machine."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release().partition("-")[0],  # its version, without the name of a build
        "python": platform.python_version(),
        "load": os.getloadavg()[0],
    }


def prepared(peers: list[Peer], absent: dict[str, str]) -> list[Peer]:
    """Install what is missing; return the peers that can be measured."""
    ready = []
    for peer in peers:
        say(f"preparing {peer.title}")
        try:
            peer.install()
            ready.append(peer)
        except PeerAbsentError as exc:
            absent[peer.name] = str(exc)
            say(f"  {exc}")
    return ready


def measure(rounds: int) -> dict[str, Any]:
    """Measure everything in turn."""
    peers = [importlib.import_module(f"benchmarks.peers.{name}").PEER for name in (OWN, *STREAMS)]
    results: dict[str, Any] = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "rounds": rounds,
        "titles": {**{peer.name: peer.title for peer in peers}, NUMPY: "NumPy", TORCH: "torch on the CPU"},
        "packages": sorted({package for peer in peers for package in peer.packages}),
        "absent": {},
        "sheets": {},
    }
    sheets = results["sheets"]
    ready = prepared(peers, results["absent"])
    python = torch_env.folder(torch_env.PINNED) / "bin" / "python"
    if not python.exists():
        results["absent"][TORCH] = "`make test-torch` makes its environment"
    for turn in range(rounds):
        shift = turn % max(1, len(ready))
        for peer in ready[shift:] + ready[:shift]:
            began = time.monotonic()
            try:
                sheets.setdefault(peer.name, []).append(sheet_of(peer))
            except (PeerAbsentError, ValueError, IndexError) as exc:
                results["absent"][peer.name] = f"round {turn + 1}: {exc}"
            say(f"round {turn + 1} of {rounds}: {peer.title}, {time.monotonic() - began:.1f} s")
        if TORCH not in results["absent"]:
            began = time.monotonic()
            try:
                own, plain = torch_sheets(python)
                sheets[OWN][-1]["rows"].update(own)
                sheets.setdefault(TORCH, []).append({"rows": plain, "errors": {}})
            except (PeerAbsentError, ValueError, IndexError) as exc:
                results["absent"][TORCH] = f"round {turn + 1}: {exc}"
            say(f"round {turn + 1} of {rounds}: torch, {time.monotonic() - began:.1f} s")
    numpy = [
        {"rows": {row.removesuffix("_numpy"): found for row, found in sheet["rows"].items() if row.endswith("_numpy")}}
        for sheet in sheets.get(OWN, [])
    ]
    sheets[NUMPY] = [{**sheet, "errors": {}} for sheet in numpy]
    results["load_after"] = os.getloadavg()[0]
    return results


def main() -> None:
    """Measure, store, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="processes of each kind (default 3)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table between the markers of this file")
    parser.add_argument("--again", type=Path, metavar="JSON", help="measure nothing; print stored figures")
    options = parser.parse_args()
    stored = ROOT / "build" / "bench.json"
    if options.again:
        results = json.loads(options.again.read_text())
    else:
        results = measure(options.rounds)
        stored.parent.mkdir(exist_ok=True)
        stored.write_text(json.dumps(results, indent=1) + "\n")
    text = f"{notes(results)}\n\n{table(results)}"
    print(text)
    if options.write:
        insert(options.write, text)


if __name__ == "__main__":
    main()
