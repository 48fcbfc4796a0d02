"""How many calls of the driver an operation makes, counted by the look-alike driver."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import fake_driver
import pytest

ROOT = Path(__file__).resolve().parents[2]
DIALECTS = ("torch", "cupy", "paddle", "mindspore", "core")
#: Wait of a stream for a stream: a record of a pooled event on one, a wait on the other.
EXPECTED = {"record": 1, "wait": 1, "query": 1, "wait_stream": 2, "record_none": 1, "with": 0}
LIMIT_S = 50


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    """Calls for each execution, by dialect and operation."""
    driver = fake_driver.require()
    output = tmp_path_factory.mktemp("calls") / "counts.json"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks.calls",
            "--count",
            "--library",
            driver,
            "--output",
            str(output),
        ],
        cwd=ROOT,
        # As many devices as by default, whatever the tests around this one have.
        env={name: value for name, value in os.environ.items() if not name.startswith(("FAKECUDA_", "HALSTREAM_"))},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts: dict[str, dict[str, float]] = json.loads(output.read_text())["counts"]
    return counts


@pytest.mark.parametrize("operation", EXPECTED)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_operation_makes_no_more_calls_than_it_needs(
    counted: dict[str, dict[str, float]], dialect: str, operation: str
) -> None:
    if (dialect, operation) == ("cupy", "wait_stream"):
        assert operation not in counted[dialect], "cupy has no wait for a stream; its row is new"
        return
    assert counted[dialect][operation] == EXPECTED[operation]
