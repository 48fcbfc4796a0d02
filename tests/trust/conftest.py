"""Fixtures of the tools' tests: the command line in processes of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


class Cli:
    """Runs the command line in a folder of its own; every run has a limit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def script(self, source: str, name: str = "prog.py") -> str:
        """Write a program; return its name for the command line."""
        (self.folder / name).write_text(textwrap.dedent(source))
        return name

    def start(self, *args: str, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start ``python -m halstream``; it is ended with the test."""
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "halstream", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=self.folder,
            env={**os.environ, "COLUMNS": "200", "XDG_CACHE_HOME": f"{self.folder}/.cache", **(env or {})},
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def __call__(
        self, *args: str, env: dict[str, str] | None = None, limit: float = 150.0
    ) -> subprocess.CompletedProcess[str]:
        """Run ``python -m halstream`` to its end."""
        process = self.start(*args, env=env)
        try:
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
            pytest.fail(f"the command hangs\n{output}\n{errors}")
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def end(self) -> None:
        """Kill what is left."""
        for process in self._started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture(scope="module")
def shared_cli(backend: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Like `cli`, for what several tests of a module look at."""
    cli = Cli(tmp_path_factory.mktemp("cli"))
    yield cli
    cli.end()


@pytest.fixture
def cli(backend: str, tmp_path: Path) -> Iterator[Cli]:
    """Return a function that runs the command line."""
    cli = Cli(tmp_path)
    yield cli
    cli.end()


@pytest.fixture
def hide(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, str]]:
    """Return a function that gives an environment in which packages are missing."""

    def hide(*packages: str) -> dict[str, str]:
        folder = tmp_path_factory.mktemp("hidden")
        for package in packages:
            message = f"No module named {package!r}"
            (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError({message!r}, name={package!r})\n")
        return {"PYTHONPATH": str(folder)}

    return hide
