"""The examples on the cuda backend, with the imitated driver: each proves there what it does on the host."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import fake_driver
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0

#: Program -> how many statements it proves at least.
PROGRAMS = {
    "acl_streams": 24,
    "cupy_streams": 38,
    "mindspore_streams": 37,
    "paddle_streams": 21,
    "torch_streams": 34,
    "pipeline": 2,
    "overlap": 2,
    "probes": 4,
}
#: Programs for the host device: one whose functions work on device memory (tests/docs/test_example_graph.py), and one
#: of libcuda.so.1 (tests/libcuda).
HOST_ONLY = {"graph", "cuda_numba", "torch_ranks"}
#: Statements about which stream goes first, which a driver does not promise.
HINTS = {"mindspore_streams": 1, "paddle_streams": 4, "torch_streams": 1}


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """Return a file of 1 MiB in which no chunk is like another."""
    path = tmp_path / "samples"
    np.random.default_rng(1).integers(-20_000, 20_000, 1 << 19, np.int16).tofile(path)
    return path


def test_every_example_is_tried() -> None:
    found = {path.stem for path in (ROOT / "examples").glob("[!_]*.py")}
    assert found == set(PROGRAMS) | HOST_ONLY


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_an_example_proves_the_same_on_cuda(name: str, samples: Path) -> None:
    driver = fake_driver.require()
    small = {
        "pipeline": ["--rounds", "1", "--limit", "1", "--chunk", "64"],
        "overlap": [str(samples), "--rounds", "1", "--chunk", "64"],
    }
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py"), *small.get(name, [])],
        env={**os.environ, "HALSTREAM_BACKEND": "cuda", "HALSTREAM_CUDA_LIBRARY": driver},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    shown = ran.stdout + ran.stderr
    assert ran.returncode == 0, shown
    assert "FAIL" not in shown
    assert len(re.findall(r"(?m)^ok   ", ran.stdout)) >= PROGRAMS[name], shown
    hints = re.findall(r"(?m)^--   .*\(on the cuda backend a hint\)$", ran.stdout)
    assert len(hints) == HINTS.get(name, 0), shown
