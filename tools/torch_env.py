"""Installs the real torch into an environment of its own, builds the module for it and runs tests/torch there.

Usage: python tools/torch_env.py [--torch VERSION] [--only-install | --remove] [PYTEST ARGUMENTS]

The environment, build/torch-VERSION, stays for the next run, and so do the compiled module
(build/torch-cache) and its object files (build/torch-objects). On x86_64 PyPI has torch for CUDA only,
which is 5 GB installed; a smaller one can be chosen by pip's own settings, for example
PIP_EXTRA_INDEX_URL. No GPU is needed or used. With --remove the environment is deleted afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
#: The version that CI tests; the others that are supported are tested by naming them.
PINNED = "2.15.0"
SUPPORTED = ("2.13.0", "2.14.0", PINNED)
#: Beside torch: what the tests need, and what torch's own database of operators does.
TESTING = (
    "numpy", "pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "typer", "rich", "setuptools", "expecttest",
    "nvidia-ml-py", "bitsandbytes", "transformers==5.24.0",
)  # fmt: skip


def folder(version: str) -> Path:
    """Return where the environment for a version is, or will be."""
    return BUILD / f"torch-{version}"


def environment(version: str) -> Path:
    """Return the interpreter of the environment for a version, installed if it is not there."""
    place = folder(version)
    python, installed, packages = place / "bin" / "python", place / "installed", "\n".join(TESTING)
    if installed.exists() and installed.read_text() == packages:
        return python
    began = time.monotonic()
    print(f"torch: installing {version} into {place.relative_to(ROOT)}", flush=True)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
    command = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--retries",
        "10",
        "--only-binary",
        ":all:",
        f"torch=={version}",
        *TESTING,
    ]
    if subprocess.run(command).returncode:
        raise SystemExit(f"torch: pip could not install torch {version}, see above")
    installed.write_text(packages)
    print(f"torch: installed in {time.monotonic() - began:.0f} s", flush=True)
    return python


def settings(tree: Path = ROOT) -> dict[str, str]:
    """Return the environment variables of programs that use a tree's package."""
    # Nothing else of the tree is on the path: its folder torch/ would pass for a package.
    path = os.pathsep.join([str(tree / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"PYTHONPATH": path, "HALSTREAM_CACHE_DIR": str(tree / "build" / "torch-cache")}
    own["HALSTREAM_TORCH_TESTS"] = "1"
    own["HALSTREAM_TORCH_OBJECTS"] = str(BUILD / "torch-objects")
    own["HALSTREAM_TORCH_INSTEAD_OF_GPU"] = "1"  # what is run is halstream's device, on any machine
    others = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    return {**others, **own}


def built(python: Path) -> None:
    """Build the module for the environment's torch."""
    began = time.monotonic()
    done = subprocess.run([python, "-m", "halstream", "build-torch"], cwd=BUILD, env=settings())
    if done.returncode:
        raise SystemExit("torch: the module could not be built, see above")
    print(f"torch: the module is ready after {time.monotonic() - began:.0f} s", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default=PINNED, choices=SUPPORTED)
    parser.add_argument("--only-install", action="store_true")
    parser.add_argument("--remove", action="store_true")
    given, rest = parser.parse_known_args()
    try:
        python = environment(given.torch)
        built(python)
        if given.only_install:
            return 0
        command = [python, "-m", "pytest", "tests/torch", "-n", "2", "-o", "faulthandler_timeout=280", *rest]
        return subprocess.run(command, cwd=ROOT, env=settings()).returncode
    finally:
        if given.remove:
            shutil.rmtree(folder(given.torch), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
