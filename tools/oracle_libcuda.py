"""Runs numba-cuda's own tests of kernels on libcuda.so.1 over the host device, and says what became of them.

Usage: python tools/oracle_libcuda.py [PYTEST ARGUMENTS]

It installs numba-cuda and NVIDIA's compilers into build/oracle-libcuda, which stays for the next run. Each file of
numba_cuda/numba/cuda/tests/cudapy runs in a process of its own. After a fault of a kernel CUDA's context is lost, and
the tests behind it in the file fail, too: each test that fails runs once more, alone. tools/oracle_libcuda.toml lists
those that fail then, with which text and why; any other failure is an error, and so is a listed test that passes or is
not there. With arguments only those tests run, for example `-k reduce`. Tests of tests/libcuda that need numba-cuda run
first, with the same interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import oracle
from oracle import Outcome, judge, listed

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "oracle-libcuda"
EXPECTED = ROOT / "tools" / "oracle_libcuda.toml"
#: Those of tools/oracle.py, what kernels of these tests include and compare with, and the extra cli of halstream.
PACKAGES = [
    *oracle.PACKAGES,
    *("nvidia-cuda-cccl-cu12==12.9.27", "ml_dtypes==0.6.0", "scipy==1.17.1"),
    *("typer", "rich", "perfetto"),  # of halstream run
]
#: Seconds for a file, and for a test alone.
LIMIT, ALONE = 900, 150


def python() -> Path:
    """Return the interpreter of the environment, with the packages in it."""
    oracle.FOLDER, oracle.PACKAGES = FOLDER, PACKAGES
    return oracle.python()


def suite() -> Path:
    """Copy the tests: pytest takes the package's folder "cuda" for NVIDIA's of that name."""
    source = next(FOLDER.glob("lib/python*/site-packages/numba_cuda/numba/cuda/tests"))
    folder = FOLDER / "suite"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder / "numba_cuda_tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tools" / "oracle_plugin.py", folder)
    return folder


def environment(folder: Path) -> dict[str, str]:
    """Return the variables with which a program finds halstream and its driver."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "NUMBA_", "HALSTREAM_"))}
    path = os.pathsep.join([str(folder), str(ROOT / "python")])
    return env | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def run(folder: Path, target: str, words: list[str], limit: int) -> Outcome:
    """Run pytest on a file or a test; one that ends its process fails."""
    name = re.sub(r"\W+", "_", target)
    report, log = FOLDER / "reports" / f"{name}.xml", FOLDER / "reports" / f"{name}.txt"
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--stream-cuda"]
    command += ["-c", os.devnull, f"--rootdir={folder}", "--import-mode=importlib", "-p", "oracle_plugin"]
    command += [f"--junitxml={report}", f"--timeout={ALONE}", *words, target]
    try:
        done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired as exc:
        return Outcome(0, 0, {target: f"not done after {limit} s\n{exc.stdout!r}"})
    log.write_bytes(done.stdout + done.stderr)
    if done.returncode == 5:  # no test is left of this file
        return Outcome(0, 0, {})
    if not report.exists():
        return Outcome(0, 0, {target: log.read_text(errors="replace")})
    return counted(report, target)


def counted(report: Path, target: str) -> Outcome:
    """Read a report; tests have the names by which pytest runs them."""
    counts: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        texts = [f"{part.get('message')}\n{part.text}" for part in case if part.tag in ("failure", "error")]
        if texts:
            classname = (case.get("classname") or "").rpartition(".")[2]
            inside = f"::{classname}" if classname and not classname.startswith("test_") else ""
            failed[f"{target.partition('::')[0]}{inside}::{case.get('name')}"] = "\n".join(texts)
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return Outcome(counts["passed"], counts["skipped"], failed)


def together(outcomes: list[Outcome]) -> Outcome:
    failed = {name: text for one in outcomes for name, text in one.failed.items()}
    return Outcome(sum(one.passed for one in outcomes), sum(one.skipped for one in outcomes), failed)


def numba(words: list[str]) -> Outcome:
    """Run the files, and then each test that failed alone."""
    folder = suite()
    files = sorted(path.relative_to(folder).as_posix() for path in folder.glob("numba_cuda_tests/cudapy/test_*.py"))
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 2) // 2 + 1)) as workers:
        first = together(list(workers.map(lambda file: run(folder, file, words, LIMIT), files)))
        print(f"oracle-libcuda: {first.passed} passed, {len(first.failed)} failed; those run alone", flush=True)
        again = together(list(workers.map(lambda test: run(folder, test, words, ALONE + 60), sorted(first.failed))))
    failed = {name.removeprefix("numba_cuda_tests/cudapy/"): text for name, text in again.failed.items()}
    return Outcome(first.passed + again.passed, first.skipped + again.skipped, failed)


def own() -> int:
    """Run the tests of this tree that need numba-cuda; return their exit code."""
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={ALONE}"]
    command += ["-k", "numba", "tests/libcuda"]
    return subprocess.run(command, cwd=ROOT, env=environment(FOLDER), timeout=LIMIT).returncode


def main(words: list[str]) -> int:
    if own() != 0:
        print("oracle-libcuda: tests of tests/libcuda failed, see above")
        return 1
    found = numba(words)
    print(f"oracle-libcuda: numba-cuda: {found.passed} passed, {found.skipped} skipped, {len(found.failed)} failed")
    expected = listed(EXPECTED)
    for reason, count in Counter(expected[name].reason for name in found.failed if name in expected).most_common():
        print(f"oracle-libcuda: {count}: {reason}")
    problems = judge(found, expected, "build/oracle-libcuda/reports")
    if words:  # only some of the tests
        problems = [line for line in problems if "take it off" not in line]
    for line in problems:
        print(f"oracle-libcuda: {line}")
    return 1 if problems or not found.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
