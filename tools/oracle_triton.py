"""Runs Triton's own tests on the host device, without a GPU, and says what became of them.

Usage: python tools/oracle_triton.py [--all] [--source REPOSITORY] [--only FILE] [PYTEST ARGUMENTS]

The tests come unchanged from Triton's repository, at the commit that fits the Triton of tools/torch_env.py's torch, and
are kept in build/kernel-judges beside the environment of tools/kernel_judges.py, in which they run. Of each test
function a few parametrizations run, the same ones each time; `--all` runs every one, which takes hours.
tools/oracle_triton.toml lists the tests that fail, with which text and why; a name without brackets stands for all
parametrizations of a function. Any other failure is an error, and so is a listed test that no longer fails.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import kernel_judges
import torch_env
from oracle import Group, Outcome, listed
from oracle_libcuda import counted, together

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = ROOT / "tools" / "oracle_triton.toml"
REPORTS = kernel_judges.FOLDER / "triton-reports"
REPOSITORY = "https://github.com/triton-lang/triton"
#: The last commit of its main branch whose tests were at hand before 3.9.0, which is in torch 2.15.0.
COMMIT = "f4fca2c0bc0e19930d2be76bb06ee7b232b60e86"
#: The files whose tests run kernels that devices of capability 8.0 have, below python/test/unit.
FILES = (
    "language/test_core.py", "test_debug.py", "language/test_annotations.py", "language/test_conversions.py",
    "language/test_decorator.py", "language/test_libdevice.py", "language/test_matmul.py", "language/test_mxfp.py",
    "language/test_pipeliner.py", "language/test_random.py", "language/test_standard.py",
    "language/test_subprocess.py", "language/test_tensor_descriptor.py", "language/test_tuple.py",
    "cuda/test_denorm_cuda.py", "cuda/test_libdevice_cuda.py", "cuda/test_tensor_descriptor_cuda.py",
    "runtime/test_autotuner.py", "runtime/test_bindings.py", "runtime/test_cache.py", "runtime/test_launch.py",
    "runtime/test_specialize.py", "runtime/test_subproc.py",
)  # fmt: skip
#: Parametrizations of each function that run without --all.
SAMPLE = 4
#: Seconds for one test, and for one file.
LIMIT, FILE_LIMIT = 120, 3600


def sources(repository: str) -> Path:
    """Return the folder of the tests, taken out of a repository if it is not there."""
    folder = kernel_judges.FOLDER / f"triton-{COMMIT[:12]}"
    if not folder.exists():
        bare = kernel_judges.FOLDER / "triton.git"
        subprocess.run(["git", "init", "--quiet", "--bare", bare], check=True)
        subprocess.run(["git", "-C", bare, "fetch", "--quiet", "--depth=1", repository, COMMIT], check=True)
        paths = ["pytest.ini", "python/conftest.py", "python/test"]
        content = subprocess.run(["git", "-C", bare, "archive", COMMIT, *paths], check=True, capture_output=True).stdout
        with tarfile.open(fileobj=BytesIO(content)) as archive:
            archive.extractall(folder, filter="data")
    return folder


def run(python: Path, folder: Path, file: str, words: list[str]) -> Outcome:
    """Run the tests of a file."""
    name = re.sub(r"\W+", "_", file)
    report, log = REPORTS / f"{name}.xml", REPORTS / f"{name}.txt"
    report.unlink(missing_ok=True)
    command = [
        python,
        "-m",
        "halstream",
        "run",
        "--torch",
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore",
        f"--rootdir={folder}",
    ]
    command += ["-p", "pytest_timeout", "-p", "halstream.pytest_plugin", "-p", "oracle_triton_plugin", "--stream-torch"]
    command += [f"--timeout={LIMIT}", f"--junitxml={report}", *words, file]
    env = torch_env.settings() | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    env |= {"HALSTREAM_TRITON_AUTOTUNE": "1", "TRITON_CACHE_DIR": str(kernel_judges.FOLDER / "triton-cache")}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tools"), env["PYTHONPATH"]])
    with log.open("w") as output:
        try:
            done = subprocess.run(
                command, cwd=folder / "python" / "test" / "unit", env=env, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, timeout=FILE_LIMIT,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(0, 0, {file: f"not done after {FILE_LIMIT} s"})
    if done.returncode == 5:  # no test is left of this file
        return Outcome(0, 0, {})
    if not report.exists():
        return Outcome(0, 0, {file: log.read_text(errors="replace")})
    outcome = counted(report, file)
    print(
        f"| {file} | {outcome.passed} | {len(outcome.failed)} | {outcome.skipped} |",
        flush=True,
    )
    return outcome


def entry_of(name: str, expected: dict[str, Group]) -> str:
    """Return the entry of the list for a test: it, or its function."""
    return name if name in expected else name.partition("[")[0]


def judge(found: Outcome, expected: dict[str, Group], all_ran: bool) -> list[str]:
    """Return what differs from the list."""
    lines, seen = [], set()
    for name, text in sorted(found.failed.items()):
        entry = entry_of(name, expected)
        seen.add(entry)
        if entry not in expected:
            lines.append(f"{name} fails; its output is in {REPORTS.relative_to(ROOT)}")
        elif expected[entry].text not in text:
            lines.append(f"{name} fails without {expected[entry].text!r}, as which {entry} is listed")
    if all_ran:
        lines += [f"{name} passes, or is not there; take it off the list" for name in expected if name not in seen]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="run every parametrization")
    parser.add_argument("--source", default=REPOSITORY, help="Triton's repository, an address or a folder")
    parser.add_argument("--only", choices=FILES, action="append")
    parser.add_argument("--python", type=Path, help="an environment with torch, instead of one of torch_env.py")
    given, words = parser.parse_known_args()
    torch_python = given.python or torch_env.environment(torch_env.PINNED)
    torch_env.built(torch_python)
    python, folder = kernel_judges.environment(torch_python), sources(given.source)
    REPORTS.mkdir(exist_ok=True)
    sample = [] if given.all else [f"--per-function={SAMPLE}"]
    print("| Triton's tests of | passed | failed | skipped |\n|---|---|---|---|", flush=True)
    with ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as workers:
        found = together(list(workers.map(lambda file: run(python, folder, file, sample + words), given.only or FILES)))
    expected = listed(EXPECTED)
    print(f"oracle-triton: {found.passed} passed, {found.skipped} skipped, {len(found.failed)} failed")
    entries = [entry_of(name, expected) for name in found.failed]
    reasons = Counter(expected[entry].reason for entry in entries if entry in expected)
    for reason, count in reasons.most_common():
        print(f"oracle-triton: {count}: {reason}")
    problems = judge(found, expected, not given.only and not words)
    for line in problems:
        print(f"oracle-triton: {line}")
    return 1 if problems or not found.passed else 0


if __name__ == "__main__":
    sys.exit(main())
