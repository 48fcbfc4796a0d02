"""Programs in processes of their own, each on its own look-alike driver.

Whatever backend the run is for, these tests are about the CUDA backend: they
say which driver a program gets, and how that behaves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from typing import Any

import fake_driver
import pytest
from cuda_help import FAKE, HERE, Program


@pytest.fixture(scope="session")
def run_program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Return a function that runs a program on the look-alike driver.

    ``run_program(source, FAKECUDA_QUEUE="8", timeout=120.0)`` gives the finished
    process; a variable that is None is not set. Warnings are errors in it. One
    that hangs fails the test with the stacks of its threads. The program can
    import `look_alike`, which controls the driver.
    """
    fake_driver.require()
    folder = tmp_path_factory.mktemp("programs")

    def run(
        source: str, /, *, timeout: float = 120.0, exit_code: int | None = 0, **variables: Any
    ) -> subprocess.CompletedProcess[str]:
        env: dict[str, str | None] = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HALSTREAM_", "FAKECUDA_", "CUDA_"))
        }
        env |= {"HALSTREAM_BACKEND": "cuda", "HALSTREAM_CUDA_LIBRARY": str(FAKE), "PYTHONPATH": str(HERE)}
        env |= variables
        script = folder / "program.py"
        script.write_text(textwrap.dedent(source))
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-X", "faulthandler", str(script)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={name: value for name, value in env.items() if value is not None},
            cwd=folder,
            start_new_session=True,
        )
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGABRT)
            output, errors = process.communicate()
            pytest.fail(f"the program hangs\n{output}\n{errors}")
        if exit_code is not None:
            assert process.returncode == exit_code, f"{process.returncode}\n{output}\n{errors}"
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    return run
