"""Installs the real torch, numba, cupy and paddle, and does the round trips with them.

Usage: python tools/interop.py [LIBRARY ...] [torch-versions]   (default: all of them)

`torch-versions` runs tests/torch with each version of torch that is supported, one after the other, by
tools/torch_env.py; only the environment of the version that CI tests stays.

They go into an environment of their own, build/interop, which stays for the
next run. One that cannot be installed is named, and its tests are skipped; it
is an error if none can be. Where pip finds only the CUDA build of torch, that
is several GB; a smaller one can be chosen by pip's own settings, for example
the environment variable PIP_EXTRA_INDEX_URL.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch_env

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "interop"
LIBRARIES = {"torch": ["torch"], "numba": ["numba"], "cupy": ["cupy-cuda12x"], "paddle": ["paddlepaddle"]}
VERSIONS = "torch-versions"
TESTING = ["numpy", "ml_dtypes", "pytest", "pytest-timeout"]


def install(packages: list[str]) -> str:
    """Install wheels; return pip's last words if that fails."""
    command = [FOLDER / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stderr.strip().splitlines() or ["pip failed"])[-1] if done.returncode else ""


def torch_versions() -> list[str]:
    """Run tests/torch with each supported version of torch; return those with which it failed."""
    failed = []
    for version in torch_env.SUPPORTED:
        print(f"interop: tests/torch with torch {version}", flush=True)
        command = [sys.executable, ROOT / "tools" / "torch_env.py", "--torch", version, "-q"]
        command += [] if version == torch_env.PINNED else ["--remove"]
        if subprocess.run(command).returncode:
            failed.append(version)
    return failed


def main(wanted: list[str]) -> int:
    unknown = set(wanted) - {*LIBRARIES, VERSIONS}
    if unknown:
        raise SystemExit(f"interop: no library {', '.join(sorted(unknown))}; there are {', '.join(LIBRARIES)}")
    failed = round_trips([name for name in wanted or LIBRARIES if name != VERSIONS]) if wanted != [VERSIONS] else 0
    if not wanted or VERSIONS in wanted:
        broken = torch_versions()
        print(f"interop: tests/torch {'failed with torch ' + ', '.join(broken) if broken else 'passed with all'}")
        failed = failed or (1 if broken else 0)
    return failed


def round_trips(wanted: list[str]) -> int:
    """Install libraries and run tests/interop_real with them."""
    if not (FOLDER / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", FOLDER], check=True)
    problem = install(TESTING)
    if problem:
        raise SystemExit(f"interop: {problem}")
    absent = {}
    for name in wanted:
        print(f"interop: installing {name}", flush=True)
        problem = install(LIBRARIES[name])
        if problem:
            absent[name] = problem
    # The package as it is in this tree; its extension fits every Python.
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "HALSTREAM_INTEROP": "1"}
    tests = [FOLDER / "bin" / "python", "-m", "pytest", "tests/interop_real"]
    failed = subprocess.run(tests, cwd=ROOT, env=env).returncode
    for name, problem in absent.items():
        print(f"interop: {name} could not be installed: {problem}")
    return failed or (1 if len(absent) == len(wanted) else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
