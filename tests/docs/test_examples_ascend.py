"""The programs of the dialects on the Ascend backend, with the imitated library: they prove what they do elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import fake_driver
import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0

#: Program -> how many statements it proves at least, and how many are about which stream goes first.
PROGRAMS = {"acl": (24, 0), "cupy": (38, 0), "mindspore": (39, 1), "paddle": (21, 4), "torch": (34, 1)}


def test_every_dialect_has_a_program() -> None:
    assert {path.stem.removesuffix("_streams") for path in (ROOT / "examples").glob("*_streams.py")} == set(PROGRAMS)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_program_proves_the_same_on_ascend(name: str) -> None:
    library = fake_driver.require("ascend-fake")
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}_streams.py")],
        env={**os.environ, "HALSTREAM_BACKEND": "ascend", "HALSTREAM_ASCEND_LIBRARY": library},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    shown = ran.stdout + ran.stderr
    assert ran.returncode == 0, shown
    proven, hints = PROGRAMS[name]
    assert len(re.findall(r"(?m)^ok   ", ran.stdout)) >= proven, shown
    assert len(re.findall(r"(?m)^--   .*\(on the ascend backend a hint\)$", ran.stdout)) == hints, shown
