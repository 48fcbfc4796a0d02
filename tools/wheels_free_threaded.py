"""Builds a wheel for each free-threaded CPython, which has no stable interface: one wheel is for one version.

Usage: python tools/wheels_free_threaded.py [VERSION ...]

Versions are such as 3.14t; without any, all of `VERSIONS`. An interpreter is looked for as in
tools/smoke.py. The wheels land in dist/free-threaded. Each is installed into a fresh environment and
called: the import must turn the GIL on again, with CPython's warning.

Exit code 1 when a build or a call fails, or when none of the interpreters is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import smoke

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "free-threaded"
DIST = ROOT / "dist" / "free-threaded"
VERSIONS = smoke.FREE_THREADED
CALL = """
import sys, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from halstream.torch import cuda
    done, stream = [], cuda.Stream()
    stream.call(done.append, 1)
    stream.synchronize()
texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
assert done == [1] and sys._is_gil_enabled() and any("GIL" in text for text in texts), texts
print("ok", sys.version.split()[0], "free-threaded, with the GIL enabled")
"""


def environment(python: str, version: str, folder: Path, *packages: str) -> str:
    """Return the interpreter of a new environment with these packages."""
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    inside = str(folder / "bin" / "python")
    subprocess.run([*smoke.pip(inside, version), "install", "--quiet", *packages], check=True)
    return inside


def build(python: str, version: str) -> Path:
    """Build the wheel for one interpreter and return its path."""
    inside = environment(python, version, FOLDER / version, "setuptools>=77.0.3")
    base, out = FOLDER / f"{version}-build", FOLDER / f"{version}-out"
    for folder in (base, out):  # setuptools would pack files long deleted
        shutil.rmtree(folder, ignore_errors=True)
    command = [inside, "setup.py", "--quiet", "build", "--build-base", base, "bdist_wheel"]
    command += ["--bdist-dir", base / "wheel", "--dist-dir", out]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "HALSTREAM_WORK": f"_go-{version}"}, check=True)
    (built,) = out.glob("*.whl")
    DIST.mkdir(parents=True, exist_ok=True)
    for old in DIST.glob(f"*-{smoke.tag(version)}-*.whl"):
        old.unlink()
    return Path(shutil.copy(built, DIST))


def call(python: str, version: str, wheel: Path) -> None:
    """Install the wheel into an environment that has nothing else, and call it."""
    folder = FOLDER / "call"
    inside = environment(python, version, folder, "--only-binary", ":all:", str(wheel))
    subprocess.run([inside, "-c", CALL], check=True, cwd=folder, timeout=60)


def main(versions: list[str]) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    made = 0
    for version in versions or VERSIONS:
        python = smoke.find(version)
        if python is None:
            print(f"skipped CPython {version}: not installed", flush=True)
            continue
        wheel = build(python, version)
        print(wheel.relative_to(ROOT), flush=True)
        call(python, version, wheel)
        made += 1
    if not made:
        print("none of these interpreters is installed")
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
