"""Tests that are refused by name, since their streams share a hardware queue (tests/queues.py)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

PROGRAM = """
    import sys

    import pytest
    from fakecuda_help import Driver, LIBRARY

    driver = Driver(LIBRARY)
    driver.cuInit(0)
    driver.context()
    held, waiting, event = driver.stream(), driver.stream(), driver.event()


    @pytest.fixture
    def collision():
        hold = driver.hold(held)
        assert driver.cuEventRecord(event, waiting) == 0
        assert driver.cuEventSynchronize(event) == 0
        yield
        hold.value = 1
        assert driver.cuStreamSynchronize(held) == 0


    def test_first():
        hold = driver.hold(held)
        driver.cuEventRecord(event, waiting)
        driver.cuEventSynchronize(event)
        hold.value = 1
        assert driver.cuStreamSynchronize(held) == 0


    def test_in_a_fixture(collision):
        pass


    def test_failure(collision):
        raise ValueError("a defect")


    def test_alone():
        assert driver.cuEventRecord(event, waiting) == 0
        assert driver.cuEventSynchronize(event) == 0


    def test_child(collision_in_a_child):
        pass


    @pytest.fixture
    def collision_in_a_child():
        import subprocess

        program = "from test_program import *; import test_program; test_program.test_first()"
        assert subprocess.run([sys.executable, "-c", program]).returncode == 0
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest writes about the program."""
    folder = tmp_path_factory.mktemp("refused")
    (folder / "test_program.py").write_text(textwrap.dedent(PROGRAM))
    (folder / "pytest.ini").write_text("[pytest]\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("FAKECUDA_", "PYTEST_"))}
    env |= {"FAKECUDA_PROFILE": "silicon", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    env["PYTHONPATH"] = os.pathsep.join(map(str, (folder, TESTS, TESTS / "fakecuda")))
    command = [sys.executable, "-m", "pytest", "-vra", "-p", "queues", "-p", "no:randomly", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, str(folder)], cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["first", "in_a_fixture", "child"])
def test_a_test_that_passes_only_since_a_stream_was_moved_apart_is_refused_by_name(output: str, name: str) -> None:
    reason = r"refused: stream \d+ waits behind held stream \d+ in hardware queue 1 of 1 \(device 0, priority 0\)"
    assert re.search(rf"SKIPPED .*{reason}: test_program\.py::test_{name}\n", output), output
    assert f"test_{name} SKIPPED" in output


def test_a_test_that_fails_though_it_was_moved_apart_fails(output: str) -> None:
    assert "test_failure FAILED" in output
    assert "until they were moved apart" in output and "ValueError: a defect" in output


def test_a_test_without_such_a_wait_counts_also_after_others(output: str) -> None:
    assert "test_alone PASSED" in output
    assert "with 1 hardware queues: 1 passed, 3 refused by name" in output
