"""Fixtures of the tests of libcuda.so.1: the library for compiled programs, and programs compiled against it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from libcuda_help import LIBRARY, PROGRAMS, ROOT, Compiled, Run


@pytest.fixture(scope="session")
def library() -> Path:
    """The folder with libcuda.so.1 and what it loads, built from the tree as it is."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "cuda.lock").open("w") as lock:  # the processes of a run take turns
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-s", "cuda-library"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return LIBRARY


@pytest.fixture(scope="session")
def compiled(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Return a function that compiles a program, once in a run."""
    folder = tmp_path_factory.mktemp("libcuda")

    def compiled(name: str) -> Path:
        target = folder / name
        if not target.exists():
            if shutil.which("gcc") is None:
                pytest.skip("gcc is not installed")
            flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
            link = [f"-L{library}", "-l:libcuda.so.1", "-Wl,--allow-shlib-undefined"]
            if name.startswith("runtime"):
                front = library / "front"
                link = [f"-L{front}", "-l:libhalstream_cudart.so", f"-Wl,-rpath,{front}"]
            words = ["gcc", *flags, str(PROGRAMS / f"{name}.c"), "-o", str(target), *link]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
        return target

    return compiled


@pytest.fixture
def run(library: Path) -> Run:
    """Return a function that runs a program, in an environment without halstream's Python."""

    def run(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HALSTREAM_", "PYTHON"))}
        given = {**kept, "LD_LIBRARY_PATH": str(library), "HALSTREAM_HOST_DEVICES": "2", **env}
        return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=100, env=given)

    return run


@pytest.fixture
def halstream() -> Run:
    """Return a function that calls the command line."""

    def halstream(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "halstream", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, env={**os.environ, **env})

    return halstream
