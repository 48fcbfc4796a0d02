"""Installs the real Paddle into environments of their own and runs tests/paddle_real there.

Usage: python tools/paddle_env.py [VERSION ...] [--only-install | --bench] [PYTEST ARGUMENTS]

Without a version it is all that are supported. An environment, build/paddle-VERSION, stays for the next run, and so do
the compiled libraries (build/paddle-cache). With --bench the costs of the plug-in are measured instead.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
#: The versions that are supported, each with its latest patch; the last one is what mutants are run on.
SUPPORTED = ("3.0.0", "3.2.2", "3.3.1")
TESTING = ("numpy", "pytest", "pytest-timeout", "hypothesis", "setuptools", "typer", "rich", "perfetto")


def interpreter(version: str) -> Path:
    """Return where the interpreter of a version's environment is, or will be."""
    return BUILD / f"paddle-{version}" / "bin" / "python"


def environment(version: str) -> Path:
    """Return the interpreter of the environment for a version, installed if it is not there."""
    python = interpreter(version)
    installed, packages = python.parents[1] / "installed", "\n".join(TESTING)
    if installed.exists() and installed.read_text() == packages:
        return python
    began = time.monotonic()
    print(f"paddle: installing {version} into {python.parents[1].relative_to(ROOT)}", flush=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parents[1]], check=True)
    command = [python, "-m", "pip", "install", "--quiet", "--retries", "10", "--only-binary", ":all:"]
    if subprocess.run([*command, f"paddlepaddle=={version}", *TESTING]).returncode:
        raise SystemExit(f"paddle: pip could not install paddlepaddle {version}, see above")
    installed.write_text(packages)
    print(f"paddle: installed in {time.monotonic() - began:.0f} s", flush=True)
    return python


def settings(tree: Path = ROOT) -> dict[str, str]:
    """Return the environment variables of programs that use a tree's package."""
    # Nothing else of the tree is on the path: its folder paddle/ would pass for a package.
    path = os.pathsep.join([str(tree / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": path, "HALSTREAM_CACHE_DIR": str(BUILD / "paddle-cache"), "HALSTREAM_PADDLE_TESTS": "1"}
    return {**os.environ, **own}


def main(words: list[str]) -> int:
    versions = [word for word in words if re.fullmatch(r"\d+\.\d+\.\d+", word)] or list(SUPPORTED)
    rest = [word for word in words if word not in versions]
    failed = []
    for version in versions:
        python = environment(version)
        if "--only-install" in rest:
            continue
        tests = [python, "-m", "pytest", "tests/paddle_real", "-q", "-o", "faulthandler_timeout=280", *rest]
        bench = [python, "-W", "ignore", "benchmarks/paddle_plugin.py"]
        print(f"paddle: {version}: compiling the operators, where that was not done", flush=True)
        # Before the tests, whose time limits are for tests: on a slow machine this takes minutes.
        compiles = [python, "-W", "ignore", "-c", "import halstream.paddle.plugin; import paddle"]
        if subprocess.run(compiles, cwd=ROOT, env=settings()).returncode:
            failed.append(version)
            continue
        print(f"paddle: {version}", flush=True)
        if subprocess.run(bench if "--bench" in rest else tests, cwd=ROOT, env=settings()).returncode:
            failed.append(version)
    if failed:
        print(f"paddle: failed with {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
