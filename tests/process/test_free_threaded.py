"""A free-threaded CPython: the package needs the GIL, says so, and works with it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig

import pytest

pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded interpreter"
)

USE = """
import sys
from halstream.torch import cuda
done, stream = [], cuda.Stream()
stream.call(done.append, 1)
stream.synchronize()
print(done, sys._is_gil_enabled())
"""


def python(*options: str, setting: str = "", program: str = USE) -> subprocess.CompletedProcess[str]:
    """Run a program without the settings of this process for the GIL and for warnings."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHON_GIL", "PYTHONWARNINGS")}
    if setting:
        env["PYTHON_GIL"] = setting
    command = [sys.executable, *options, "-c", program]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


def test_the_import_enables_the_gil_with_one_warning() -> None:
    done = python()
    assert (done.returncode, done.stdout.strip()) == (0, "[1] True"), done.stderr
    assert done.stderr.count("RuntimeWarning") == 1 and "halstream._core._handles" in done.stderr


def test_with_the_gil_from_the_start_there_is_no_warning() -> None:
    done = python("-W", "error", setting="1")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "[1] True", "")


@pytest.mark.parametrize(("options", "setting"), [((), "0"), (("-X", "gil=0"), "")])
def test_without_the_gil_the_import_is_refused(options: tuple[str, ...], setting: str) -> None:
    done = python(*options, setting=setting)
    assert done.returncode == 1
    assert "ImportError: halstream needs Python's global lock (GIL); start Python without" in done.stderr


def test_threads_that_run_when_the_gil_is_enabled_go_on() -> None:
    done = python(
        program="""
import sys, threading
begun, stop, counts = threading.Barrier(5), threading.Event(), [0] * 4
def work(i):
    begun.wait(30)
    while not stop.is_set():
        counts[i] += 1
threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(4)]
for thread in threads:
    thread.start()
begun.wait(30)
import halstream as hs
ran = []
streams = [hs.Stream() for _ in range(8)]
for n in range(2000):
    streams[n % 8].call(ran.append, n)
for stream in streams:
    stream.synchronize(timeout=30)
stop.set()
for thread in threads:
    thread.join(30)
print(sorted(ran) == list(range(2000)), all(counts), sys._is_gil_enabled())
"""
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True True True"), done.stderr
