"""Runs everything that needs a GPU on a machine that has one, and writes down what came out.

Usage: python tools/gpu.py [--pack] [--only STEP ...] [--jobs N] [--suite-limit S] [--library LIBRARY] [--output FILE]

``--pack`` puts the wheel, the conformance suite as a program and the raw calls
into build/gpu; that needs Go and no GPU (``make gpu-pack``). Copy the tree with
build/gpu to the machine with the GPU and run it there without ``--pack``: it
needs Python with NumPy and pytest, no Go, no network, no rights. The results go
to docs/results, or with a library that is no driver to build/.

The exit code is 0 if all that could run went well, 1 if a step failed, and 2
if there is no driver or no device.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import _gpu_steps as steps

ROOT = steps.ROOT
sys.path.insert(0, str(ROOT))

from benchmarks.gpu.driver import AbsentError, Driver  # noqa: E402

RESULTS = ROOT / "docs" / "results"


def pack() -> int:
    """Put together what the other machine cannot make."""
    wheels = sorted((ROOT / "dist").glob("halstream-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        print("gpu: dist/ holds no wheel; make wheel makes it, and make gpu-pack does all", file=sys.stderr)
        return 1
    shutil.rmtree(steps.PACK, ignore_errors=True)
    steps.PACK.mkdir(parents=True)
    shutil.copy(wheels[-1], steps.PACK)
    subprocess.run(["go", "test", "-c", "-o", str(steps.PACK / "cuda.test"), "./cuda"], cwd=ROOT, check=True)
    subprocess.run(["go", "build", "-o", str(steps.PACK / "rawcall"), "./benchmarks/rawcall"], cwd=ROOT, check=True)
    files = sorted(path for path in steps.PACK.iterdir() if path.is_file())
    contents = {
        "commit": _git("rev-parse", "HEAD"),
        "changed": bool(_git("status", "--porcelain")),
        "go": subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout.strip(),
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
    }
    (steps.PACK / "pack.json").write_text(json.dumps(contents, indent=1) + "\n")
    size = sum(path.stat().st_size for path in files) / 2**20
    print(f"gpu: {', '.join(path.name for path in files)} in {steps.PACK} ({size:.0f} MiB)")
    return 0


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()


def packed() -> dict[str, Any]:
    """Return what the pack says of itself, nothing without one."""
    path = steps.PACK / "pack.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def target(device: dict[str, Any], fake: bool) -> Path:
    """Return where the results go: a file that is not there yet."""
    folder = ROOT / "build" / "results" if fake else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^a-z0-9]+", "-", device["devices"][0]["name"].lower()).strip("-")
    stem, number = f"{name}-{time.strftime('%Y-%m-%d')}", 1
    path = folder / f"{stem}.json"
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.json"
    return path


def versions() -> dict[str, str]:
    """Return the versions of what the steps may use."""
    from importlib import metadata

    names = ("numpy", "pytest", "pytest-timeout", "hypothesis", "torch", "cupy", "cuda-core", "numba-cuda")
    found = {"python": platform.python_version()}
    for distribution in metadata.distributions():
        name = distribution.name
        # CuPy's distributions are named after the version of CUDA.
        if name and (name.lower() in names or name.lower().startswith("cupy-cuda")):
            found[name.lower()] = distribution.version
    return found


def table(outcomes: dict[str, steps.Outcome]) -> str:
    """Return the outcomes as text."""
    width = max(len(name) for name in outcomes)
    return "\n".join(
        f"{name:{width}}  {found['outcome']:7}  {found['seconds']:7.1f} s  {found['detail']}"
        for name, found in outcomes.items()
    )


def main() -> int:
    """Pack, or run the steps."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pack", action="store_true", help="only put together what the GPU's machine needs")
    parser.add_argument("--only", nargs="+", choices=list(steps.STEPS), metavar="STEP", help="only these steps")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes of each step that measures nothing")
    seconds = "for each suite in Python, in seconds"
    parser.add_argument("--suite-limit", type=float, default=steps.SUITE_S, metavar="S", help=seconds)
    parser.add_argument("--library", default="", help="a driver library other than libcuda.so.1")
    parser.add_argument("--output", type=Path, help="where the results go")
    folder = ROOT / "build" / "gpu-run"
    parser.add_argument("--folder", type=Path, default=folder, help="where the steps run; emptied first")
    options = parser.parse_args()
    if options.pack:
        return pack()
    library = str(Path(options.library).resolve()) if os.sep in options.library else options.library
    try:
        driver = Driver(library)
    except AbsentError as exc:
        print(f"gpu: {exc} Nothing was run on silicon.", file=sys.stderr)
        return 2
    device = driver.describe()
    results: dict[str, Any] = {
        "device": device,
        "silicon": not driver.fake,
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "machine": {"kernel": platform.release(), "cores": len(os.sched_getaffinity(0))},
        "versions": versions(),
        "pack": packed(),
        "steps": {},
    }
    path = options.output or target(device, driver.fake)
    bench = steps.Bench(
        options.folder.resolve(), library, driver.fake, jobs=max(1, options.jobs), suite_s=options.suite_limit
    )
    chosen = options.only or list(steps.STEPS)
    needed = {"install", *chosen} if set(chosen) - {"conformance", "sanitizer", "look-alike", "probes"} else set(chosen)

    def take(name: str) -> None:
        results["steps"][name] = steps.take(name, steps.STEPS[name], bench)
        path.write_text(json.dumps(results, indent=1) + "\n")  # after each: the machine may be taken away

    names = [name for name in steps.STEPS if name in needed]
    if bench.jobs > 1:
        beside = [name for name in names if name in steps.TOGETHER]
        if "install" in names:
            take("install")
        with ThreadPoolExecutor(len(beside) or 1) as pool:
            list(pool.map(take, beside))
        names = [name for name in names if name not in ("install", *beside)]
    for name in names:
        take(name)
    print(f"\n{device['devices'][0]['name']}, driver {device['driver']}, {len(device['devices'])} devices")
    print(table(results["steps"]))
    print(f"written to {path}")
    return 1 if any(found["outcome"] == steps.FAILED for found in results["steps"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
