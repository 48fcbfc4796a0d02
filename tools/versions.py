"""Runs the test suite on every supported CPython, with the wheel that users install.

Usage: python tools/versions.py WHEEL [--quick] [--only VERSION ...] [-- PYTEST ARGUMENTS]

For each version it makes an environment in build/versions, which is used
again the next time, and installs the wheel there. Interpreters are looked for
as in tools/smoke.py; one that is not found is named in the summary. `--quick`
runs the tests that depend most on the interpreter, as CI does.

A version such as 3.14t is a free-threaded CPython. It is run only when `--only` names it, with the wheel
that tools/wheels_free_threaded.py made for it.

Exit code 1 when the suite fails anywhere or no interpreter was found.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from smoke import FREE_THREADED, VERSIONS, find, pip, tag

ROOT = Path(__file__).resolve().parent.parent
FREE_THREADED_WHEELS = ROOT / "dist" / "free-threaded"
#: What the tests use beside the extras of the package.
TESTS_USE = ["pytest-xdist", "pytest-randomly", "pytest-asyncio", "setuptools>=77.0.3", "build"]
#: Packages that appear late, or never, for an interpreter; tests skip what needs them.
OPTIONAL = ["numba", "cffi"]
#: Tests that look into frames, bytecode, threads, the buffer protocol and the end of the process.
QUICK = [
    "tests/conformance",
    "tests/process",
    "tests/protocols",
    *(f"tests/trust/test_{name}.py" for name in ("stall_blocked", "sanitize_names", "leaks", "cli_info")),
]


def environment(python: str, version: str, wheel: Path) -> str:
    """Return the interpreter of an environment with the wheel in it."""
    folder = ROOT / "build" / "versions" / version
    inside = str(folder / "bin" / "python")
    new = not (folder / "complete").exists()
    if new:
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    # Nothing is compiled: for an interpreter that newer packages have no wheels for, an older one is taken.
    install = [*pip(inside, version), "install", "--quiet", "--only-binary", ":all:"]
    if new:
        subprocess.run([*install, f"{wheel}[cli,cuda,plot,test]", *TESTS_USE], check=True)
        for name in OPTIONAL:
            subprocess.run([*install, name], check=False)
        (folder / "complete").touch()
    subprocess.run([*install, "--force-reinstall", "--no-deps", wheel], check=True)
    return inside


def parted(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the words before and after the first `--`; argparse loses them after an option with many values."""
    end = words.index("--") if "--" in words else len(words)
    return words[:end], words[end + 1 :]


def wheel_for(version: str, wheel: Path) -> Path | None:
    """Return the wheel of a version: `wheel`, unless it is a free-threaded one."""
    if version not in FREE_THREADED:
        return wheel.resolve()
    return next(FREE_THREADED_WHEELS.glob(f"*-{tag(version)}-*.whl"), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--quick", action="store_true", help="only the tests that depend most on the interpreter")
    parser.add_argument("--only", nargs="+", default=VERSIONS, metavar="VERSION", help="default: all that are found")
    own, words = parted(sys.argv[1:])
    options = parser.parse_args(own)
    words = words or ["-n", str(min(8, os.cpu_count() or 1))]
    results = []
    for version in options.only:
        python = find(version)
        if python is None:
            results.append((version, "not run: no such interpreter", 0.0))
            continue
        wheel = wheel_for(version, options.wheel)
        if wheel is None:
            results.append((version, "not run: no wheel in dist/free-threaded, make wheel-free-threaded", 0.0))
            continue
        begin = time.monotonic()
        inside = environment(python, version, wheel)
        print(f"== CPython {version}: {python}", flush=True)
        command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, *(QUICK if options.quick else [])]
        # The import would enable the GIL with a warning, and a warning is an error in the tests.
        env = {**os.environ, "PYTHON_GIL": "1"} if version in FREE_THREADED else None
        code = subprocess.run(command, cwd=ROOT, env=env).returncode
        results.append((version, f"failed ({code})" if code else "passed", time.monotonic() - begin))
    for version, outcome, seconds in results:
        print(f"CPython {version}: {outcome}" + (f" in {seconds:.0f} s" if seconds else ""))
    outcomes = [outcome for _, outcome, _ in results]
    return 0 if "passed" in outcomes and not any(o.startswith("failed") for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
