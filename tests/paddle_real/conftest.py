"""Tests of the real Paddle on the host device: `make paddle-programs` installs it and runs them.

Those in this process share one import of Paddle; what concerns the process itself (exit, fork, refusals) runs in
a process of its own.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import halstream as hs
import pytest

# Elsewhere Paddle is not installed, and importing it takes seconds.
collect_ignore_glob = [] if os.environ.get("HALSTREAM_PADDLE_TESTS") else ["test_*"]

Child = Callable[..., CompletedProcess[str]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "paddle_real" in item.path.parts:
            item.add_marker(pytest.mark.filterwarnings("ignore"))  # Paddle's own, from its import on


@pytest.fixture(scope="session")
def imported() -> Any:
    """Import the plug-in and then Paddle, once for all tests of the process."""
    importlib.import_module("halstream.paddle.plugin")
    return importlib.import_module("paddle")


@pytest.fixture
def paddle(imported: Any) -> Iterator[Any]:
    """Return Paddle on its default device and stream, with a seed, and nothing pending after the test."""
    imported.set_device("custom_cpu")
    imported.seed(7)
    before = imported.device.current_stream()
    yield imported
    imported.device.set_stream(before)
    imported.set_device("custom_cpu")
    imported.device.synchronize()


@pytest.fixture
def held(hold: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that holds a stream of Paddle until its gate is opened, at the latest after the test."""
    return lambda stream: hold(hs.Stream.from_handle(stream.stream_base.raw_stream))


@pytest.fixture
def child(tmp_path: Any) -> Child:
    """Return a function that runs a program in a process of its own."""

    def run(text: str, *command: str, **variables: str) -> CompletedProcess[str]:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text))
        words = [sys.executable, "-W", "ignore", *command, str(path)]
        return subprocess.run(
            words, capture_output=True, text=True, timeout=240, env={**os.environ, **variables}, cwd=tmp_path
        )

    return run
