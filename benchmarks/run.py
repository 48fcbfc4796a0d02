"""Measures halstream beside its peers: python -m benchmarks.run [--help].

Every figure comes from several processes; halstream's and the peers' take
turns, so that what else the machine does falls on all alike. Nothing is
asserted: the table is for people. A peer that cannot be installed is named
with the reason. The first run installs the peers below build/peers (about
1.5 GiB, most of it Intel's compiler libraries).
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import command
from .peer import ROOT, Peer, PeerAbsentError
from .report import OWN, insert, notes, tables

NAMES = (OWN, "intel", "pocl", "iree", "asyncio_loop", "thread_queue", "floor")
PROCESS_S = 120  # a process that takes longer has hung
IMPORTS = 2  # for each round
IMPORT = "import sys, time; t = time.perf_counter(); import {0}; print(time.perf_counter() - t, 'numpy' in sys.modules)"
FIRST = "import time; t = time.perf_counter(); import halstream; halstream.Stream(); print(time.perf_counter() - t)"


def say(text: str) -> None:
    """Show progress."""
    print(text, file=sys.stderr, flush=True)


def run(peer: Peer, words: list[str]) -> str:
    """Run a peer's interpreter and return its output.

    Raises
    ------
    PeerAbsentError
        If it fails or hangs, with its last words.
    """
    try:
        done = subprocess.run(
            [peer.python, *words], cwd=ROOT, env=peer.environment, capture_output=True, text=True, timeout=PROCESS_S
        )
    except subprocess.TimeoutExpired:
        raise PeerAbsentError(f"a process took longer than {PROCESS_S} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        raise PeerAbsentError(f"a process ended with {done.returncode}: {lines[-1][:200]}")
    return done.stdout


def imports(peer: Peer, once: dict[str, list[float]]) -> bool:
    """Time imports in fresh processes; return whether NumPy came along."""
    numpy = False
    for _ in range(IMPORTS if peer.module else 0):
        seconds, loaded = run(peer, ["-c", IMPORT.format(peer.module)]).split()
        once.setdefault("import", []).append(float(seconds) * 1e3)
        numpy |= loaded == "True"
    if peer.name == OWN:
        once.setdefault("import_first", []).append(float(run(peer, ["-c", FIRST])) * 1e3)
    return numpy


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


def wheel() -> list[float]:
    """Return the size of the newest wheel in MiB."""
    wheels = sorted((ROOT / "dist").glob("halstream-*.whl"), key=lambda path: path.stat().st_mtime)
    return [wheels[-1].stat().st_size / 2**20] if wheels else []


def measure(rounds: int, names: list[str]) -> dict[str, Any]:
    """Install what is missing, then take turns."""
    peers = [importlib.import_module(f"benchmarks.peers.{name}").PEER for name in NAMES]
    results: dict[str, Any] = {
        "machine": machine(),
        "date": time.strftime("%Y-%m-%d"),
        "rounds": rounds,
        "command": "make bench",
        "titles": {peer.name: peer.title for peer in peers},
        "packages": sorted({package for peer in peers for package in peer.packages if peer.name in names}),
        "absent": {name: "not asked for" for name in NAMES if name not in names},
        "sheets": {},
        "once": {peer.name: {} for peer in peers if peer.name != "floor"},
        "numpy": False,
    }
    ready = []
    for peer in peers:
        if peer.name in names:
            say(f"preparing {peer.title}")
            try:
                peer.install()
                if peer.module:
                    run(peer, ["-c", IMPORT.format(peer.module)])  # compiles its modules
                ready.append(peer)
            except PeerAbsentError as exc:
                results["absent"][peer.name] = str(exc)
                say(f"  {exc}")
    for turn in range(rounds):
        shift = turn % max(1, len(ready))
        for peer in ready[shift:] + ready[:shift]:
            start = time.monotonic()
            try:
                sheet: dict[str, Any] = {}
                for part in (peer.name, *peer.parts):
                    found = json.loads(run(peer, ["-m", "benchmarks.child", part]).splitlines()[-1])
                    for kind, entries in found.items():
                        sheet.setdefault(kind, {}).update(entries)
                results["sheets"].setdefault(peer.name, []).append(sheet)
                numpy = imports(peer, results["once"].get(peer.name, {}))
                results["numpy"] |= numpy and peer.name == OWN
            except (PeerAbsentError, ValueError, IndexError) as exc:
                results["absent"][peer.name] = f"round {turn + 1}: {exc}"
                say(f"  {peer.title}: {exc}")
            say(f"round {turn + 1} of {rounds}: {peer.title}, {time.monotonic() - start:.1f} s")
    results["once"][OWN]["wheel"] = wheel()
    results["load_after"] = os.getloadavg()[0]
    return results


def main() -> None:
    """Measure, store, print."""
    options = command.parser("benchmarks.run", __doc__, 5, NAMES, ROOT / "build" / "bench.json").parse_args()
    results = command.figures(options, lambda: measure(options.rounds, options.only))
    text = f"{notes(results)}\n\n{tables(results)}"
    print(text)
    if options.write:
        insert(options.write, text)


if __name__ == "__main__":
    main()
