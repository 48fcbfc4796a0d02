"""Programs for campaigns on the engines that users install."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

#: Two tests that tell when they begin and wait, the first time, until a file is there.
PROGRAM = """
import os
import pathlib
import time

import halstream as hs
import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(autouse=True)
def held(request):
    name = request.node.originalname
    (HERE / f"begun-{name}-{os.getpid()}").touch()
    end = time.monotonic() + 150
    while not (HERE / "go").exists() and time.monotonic() < end:
        time.sleep(0.01)


def test_right():
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.wait(one.record())
    two.call(seen.append, 2)
    two.synchronize()
    assert seen == [1, 2]


def test_race():
    one, two, seen = hs.Stream(), hs.Stream(), []
    one.call(seen.append, 1)
    two.call(seen.append, 2)
    two.synchronize()
    one.synchronize()
    assert seen == [1, 2]
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a campaign of the program."""
    (tmp_path / "test_it.py").write_text(PROGRAM)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    started = []

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "halstream", "campaign", "test_it.py", *words]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
