"""Fixtures of the tests of libascendcl.so: the library, and programs compiled against it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ascend_help import COMPILERS, INSTALLED, PROGRAMS, ROOT, Compiled, Run


@pytest.fixture(scope="session")
def library() -> Path:
    """The folder with libascendcl.so, built from the tree as it is."""
    (ROOT / "build").mkdir(exist_ok=True)
    with (ROOT / "build" / "ascend.lock").open("w") as lock:  # the processes of a run take turns
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(["make", "-s", "acl-library"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return INSTALLED


@pytest.fixture(scope="session")
def compiled(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Return a function that compiles a program in one way, once in a run."""
    folder = tmp_path_factory.mktemp("ascend")
    made: dict[tuple[Path, str], Path] = {}

    def compiled(source: Path, way: str = "c") -> Path:
        target = made.get((source, way))
        if target is None:
            command, *options = COMPILERS[way]
            if shutil.which(command) is None:
                pytest.skip(f"{command} is not installed")
            target = folder / f"{source.stem}-{way.replace('+', 'x').replace(' ', '-')}"
            flags = ["-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{library}/include", "-I", str(PROGRAMS)]
            link = [f"-L{library}/lib", f"-Wl,-rpath,{library}/lib", "-x", "none", "-lascendcl", "-pthread"]
            words = [command, *options, *flags, str(source), "-o", str(target), *link]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr
            made[source, way] = target
        return target

    return compiled


@pytest.fixture
def run(library: Path) -> Run:
    """Return a function that runs a program on the host device, in an environment without halstream's Python."""

    def run(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HALSTREAM_", "PYTHON"))}
        settings = {
            "HALSTREAM_BACKEND": "host",
            "TSAN_OPTIONS": f"suppressions={library}/share/tsan.supp",
            "LSAN_OPTIONS": f"suppressions={library}/share/lsan.supp:print_suppressions=0",
        }
        return subprocess.run(
            list(map(str, words)), capture_output=True, text=True, timeout=150, env={**kept, **settings, **(env or {})}
        )

    return run
