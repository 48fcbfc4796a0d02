"""Runs NVIDIA's own Python clients on the look-alike driver, and says what became of their tests.

Usage: python tools/oracle.py [--write] [PYTEST ARGUMENTS FOR tests/oracle_cuda]

It installs cuda-bindings, cuda-core and numba-cuda into build/oracle, which stays for the next run, and puts
the look-alike there as libcuda.so.1. Then it runs the tests of the driver that numba-cuda brings with it, and
tests/oracle_cuda. tools/oracle.toml lists which of numba-cuda's tests fail, and with which text and why; any
other failure is an error, and so is a listed test that passes or is not there. `--write` puts the counts into
docs/reliability.md, and the calls of programs that halstream and the clients run side by side into docs/backends.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import figures
import tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "oracle"
EXPECTED = ROOT / "tools" / "oracle.toml"
#: The clients and what their tests need. Versions are pinned: tools/oracle.toml names tests.
PACKAGES = [
    "cuda-bindings==12.9.7",  # in later ones handles for other processes lack a field that numba-cuda 0.30 reads
    "cuda-core==1.2.2",
    "numba-cuda==0.30.4",
    "numba==0.66.0",  # from 0.68 on it stamps its cache otherwise than numba-cuda 0.30, with which it shares files
    "numpy==2.4.6",
    "nvidia-cuda-nvrtc-cu12==12.9.86",
    "nvidia-cuda-nvcc-cu12==12.9.86",
    "nvidia-nvjitlink-cu12==12.9.86",
    "nvidia-cuda-runtime-cu12==12.9.79",
    "cffi",
    "filecheck",
    "psutil",
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
]
#: Seconds for all tests of a client.
LIMIT = 540


class Outcome(NamedTuple):
    """The tests of a client: how many passed and were skipped, and the output of those that failed."""

    passed: int
    skipped: int
    failed: dict[str, str]


class Group(NamedTuple):
    """Tests that fail for the same reason: what is in their output, and what it means."""

    text: str
    reason: str


def python() -> Path:
    """Return the interpreter of the environment, with the packages in it."""
    inside, done = FOLDER / "bin" / "python", FOLDER / "installed"
    wanted = "\n".join(PACKAGES)
    if not done.exists() or done.read_text() != wanted:
        print(f"oracle: installing into {FOLDER.relative_to(ROOT)}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True)
        pip = [inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *PACKAGES]
        if subprocess.run(pip).returncode:
            raise SystemExit("oracle: pip could not install the clients, see above")
        done.write_text(wanted)
    return inside


def environment() -> dict[str, str]:
    """Return the variables with which a client finds the look-alike, and nothing else, as the driver."""
    place = FOLDER / "driver"
    place.mkdir(exist_ok=True)
    shutil.copy(ROOT / "build" / "fakecuda" / "libfakecuda.so", place / "libcuda.so.1")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("FAKECUDA_", "CUDA_", "NUMBA_"))}
    return env | {"LD_LIBRARY_PATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}


def outcome(report: Path) -> Outcome:
    """Read a report of pytest in JUnit's form."""
    counts: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        texts = [part.text or "" for part in case if part.tag in ("failure", "error")]
        if texts:
            name = f"{case.get('classname')}.{case.get('name')}"
            failed[re.sub(r"^.*?(?=\btest_\w+\.|\btest_\w+$)", "", name)] = "\n".join(texts)
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return Outcome(counts["passed"], counts["skipped"], failed)


def run(name: str, words: list[str | Path], env: dict[str, str]) -> Outcome:
    """Run pytest and return the outcome of its tests."""
    report = FOLDER / f"{name}.xml"
    report.unlink(missing_ok=True)
    command = [python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "--timeout=60", *words]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT)
    (FOLDER / f"{name}.txt").write_text(done.stdout + done.stderr)
    if done.returncode not in (0, 1) or not report.exists():
        raise SystemExit(f"oracle: the tests of {name} did not run:\n{(done.stdout + done.stderr)[-2000:]}")
    return outcome(report)


def numba(env: dict[str, str]) -> Outcome:
    """Run numba-cuda's own tests of its driver layer.

    They are copied, since pytest takes the package's folder "cuda" for NVIDIA's of that name.
    """
    source = next(FOLDER.glob("lib/python*/site-packages/numba_cuda/numba/cuda/tests"))
    suite = FOLDER / "suite"
    shutil.rmtree(suite, ignore_errors=True)
    shutil.copytree(source, suite / "numba_cuda_tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tools" / "oracle_plugin.py", suite)
    words = ["-c", os.devnull, f"--rootdir={suite}", "--import-mode=importlib", "-p", "oracle_plugin"]
    words += ["-n", "2", "--dist", "loadfile", suite / "numba_cuda_tests" / "cudadrv"]
    return run("numba-cuda", words, env | {"PYTHONPATH": str(suite)})


def programs(env: dict[str, str], words: list[str], write: bool) -> Outcome:
    """Run the tests with cuda.core and halstream in one process."""
    env = env | {"PYTHONPATH": str(ROOT / "python"), "HALSTREAM_ORACLE_CUDA": "write" if write else "1"}
    return run("programs", ["--backend=cuda", *(words or ["tests/oracle_cuda"])], env)


def listed(path: Path = EXPECTED) -> dict[str, Group]:
    """Return the tests that are listed as failing."""
    groups = tomllib.loads(path.read_text())["group"]
    return {test: Group(group["text"], group["reason"]) for group in groups for test in group["tests"]}


def judge(found: Outcome, expected: dict[str, Group], folder: str = "build/oracle") -> list[str]:
    """Return what differs from the list."""
    lines = []
    for name, text in sorted(found.failed.items()):
        if name not in expected:
            lines.append(f"{name} fails; its output is in {folder}")
        elif expected[name].text not in text:
            lines.append(f"{name} fails without {expected[name].text!r}, as which it is listed")
    return lines + [
        f"{name} passes, or is not there; take it off the list" for name in expected if name not in found.failed
    ]


def page(suite: Outcome, ours: Outcome) -> list[str]:
    """Return the lines for docs/reliability.md."""
    reasons = Counter(group.reason for group in listed().values())
    lines = ["| tests | passed | skipped by themselves | failed, each listed |", "| --- | ---: | ---: | ---: |"]
    lines.append(f"| of numba-cuda, for its driver layer | {suite.passed} | {suite.skipped} | {len(suite.failed)} |")
    lines.append(
        f"| `tests/oracle_cuda`, cuda.core and halstream | {ours.passed} | {ours.skipped} | {len(ours.failed)} |"
    )
    return [*lines, "", "Why they fail:", "", *(f"- {count}: {reason}" for reason, count in reasons.most_common())]


def main(words: list[str]) -> int:
    write = "--write" in words
    env = environment() if python() else {}
    suite = numba(env)
    print(f"oracle: numba-cuda: {suite.passed} passed, {suite.skipped} skipped, {len(suite.failed)} failed", flush=True)
    ours = programs(env, [word for word in words if word != "--write"], write)
    print(f"oracle: tests/oracle_cuda: {ours.passed} passed, {ours.skipped} skipped, {len(ours.failed)} failed")
    problems = judge(suite, listed()) + [f"{name} fails" for name in sorted(ours.failed)]
    if not ours.passed or not suite.passed:
        problems.append("no test passed")
    if write and not problems:
        figures.put("oracle-cuda", page(suite, ours))
    for line in problems:
        print(f"oracle: {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
