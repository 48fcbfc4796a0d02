"""Runs the test suite on every supported CPython, with the wheel that users install.

Usage: python tools/versions.py WHEEL [--quick] [-- PYTEST ARGUMENTS]

For each version it makes an environment in build/versions, which is used
again the next time, and installs the wheel there. Interpreters are looked for
as in tools/smoke.py; one that is not found is named in the summary. `--quick`
runs the tests that depend most on the interpreter, as CI does.

Exit code 1 when the suite fails anywhere or no interpreter was found.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from smoke import VERSIONS, find

ROOT = Path(__file__).resolve().parent.parent
#: What the tests use beside the extras of the package.
TESTS_USE = ["cffi", "pytest-xdist", "pytest-randomly", "pytest-asyncio", "setuptools>=77.0.3", "build"]
#: Packages that appear late for a new interpreter; tests skip what needs them.
OPTIONAL = ["numba"]
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
    if not (folder / "complete").exists():
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        install(inside, [f"{wheel}[cli,cuda,plot,test]", *TESTS_USE])
        for name in OPTIONAL:
            install(inside, ["--only-binary", ":all:", name], check=False)
        (folder / "complete").touch()
    install(inside, ["--force-reinstall", "--no-deps", str(wheel)])
    return inside


def install(python: str, words: list[str], check: bool = True) -> None:
    """Install packages into an environment by the pip of the running interpreter."""
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, *words], check=check)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--quick", action="store_true", help="only the tests that depend most on the interpreter")
    parser.add_argument("--only", nargs="+", default=VERSIONS, metavar="VERSION", help="default: all that are found")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    options = parser.parse_args()
    words = options.pytest or ["-n", str(min(8, os.cpu_count() or 1))]
    results = []
    for version in options.only:
        python = find(version)
        if python is None:
            results.append((version, "not run: no such interpreter", 0.0))
            continue
        begin = time.monotonic()
        inside = environment(python, version, options.wheel.resolve())
        print(f"== CPython {version}: {python}", flush=True)
        command = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, *(QUICK if options.quick else [])]
        code = subprocess.run(command, cwd=ROOT).returncode
        results.append((version, f"failed ({code})" if code else "passed", time.monotonic() - begin))
    for version, outcome, seconds in results:
        print(f"CPython {version}: {outcome}" + (f" in {seconds:.0f} s" if seconds else ""))
    outcomes = [outcome for _, outcome, _ in results]
    return 0 if "passed" in outcomes and not any(o.startswith("failed") for o in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
