"""Runs cupy's own tests of graphs on halstream.cupy, and says what became of each.

Usage: python tools/oracle_cupy.py [PYTEST ARGUMENTS]

pip downloads the source of cupy into build/oracle-cupy, where it stays for the next run. Its file
tests/cupy_tests/cuda_tests/test_graph.py runs unchanged, with tools/cupy_standin.py in the place of cupy,
on the host device and on the look-alike of CUDA's driver. tools/oracle_cupy.toml lists the tests that
fail, and with which text and why; any other failure is an error, and so is a listed test that passes or
is not there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from oracle import Outcome, judge, listed, outcome

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "oracle-cupy"
EXPECTED = ROOT / "tools" / "oracle_cupy.toml"
#: The look-alike driver.
LOOK_ALIKE = ROOT / "build" / "fakecuda" / "libfakecuda.so"
VERSION = "14.2.0"
SUITE = Path("tests", "cupy_tests", "cuda_tests", "test_graph.py")
#: Seconds for all tests, and for the download.
LIMIT, DOWNLOAD = 300, 600


def suite() -> Path:
    """Return the file with cupy's tests, which is downloaded if it is not there yet.

    pip has no command that only unpacks a source. After a download it asks the source for its name, for
    which cupy needs more than is installed here; that may fail, and what was unpacked stays all the same.
    """
    kept = FOLDER / VERSION / SUITE.name
    if not kept.exists():
        work = FOLDER / "download"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-clean", "--no-build-isolation"]
        pip += ["--no-binary", "cupy", "--dest", str(work), f"cupy=={VERSION}"]
        env = os.environ | {"TMPDIR": str(work)}
        done = subprocess.run(pip, env=env, capture_output=True, text=True, timeout=DOWNLOAD)
        found = next(work.glob(f"*/cupy_*/{SUITE}"), None)
        if found is None:
            raise SystemExit(f"oracle-cupy: pip has unpacked no source of cupy {VERSION}:\n{done.stderr[-2000:]}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(found, kept)
        shutil.rmtree(work)
    return kept


def run(backend: str, words: list[str]) -> Outcome:
    """Run cupy's tests on a backend."""
    file, report = suite(), FOLDER / f"{backend}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={file.parent}", "-p", "cupy_standin"]
    command += ["-p", "no:cacheprovider", f"--junitxml={report}", str(file), *words]
    path = os.pathsep.join([str(ROOT / "tools"), str(ROOT / "python")])
    env = os.environ | {"PYTHONPATH": path, "HALSTREAM_BACKEND": backend, "HALSTREAM_CUDA_LIBRARY": str(LOOK_ALIKE)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LIMIT)
    (FOLDER / f"{backend}.txt").write_text(done.stdout + done.stderr)
    if done.returncode not in (0, 1) or not report.exists():
        raise SystemExit(f"oracle-cupy: the tests did not run:\n{(done.stdout + done.stderr)[-2000:]}")
    return outcome(report)


def main(words: list[str]) -> int:
    expected, problems = listed(EXPECTED), []
    for backend in ("host", "cuda"):
        found = run(backend, words)
        print(f"oracle-cupy: {backend}: {found.passed} passed, {found.skipped} skipped, {len(found.failed)} failed")
        problems += [f"{backend}: {line}" for line in judge(found, expected, "build/oracle-cupy")]
        if not found.passed:
            problems.append(f"{backend}: no test passed")
    for name, group in sorted(expected.items()):
        print(f"oracle-cupy: {name} fails: {group.reason}")
    for line in problems:
        print(f"oracle-cupy: {line}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
