"""The list of tests that are left out where a driver has one device: `make test-cuda-one-device` runs the others."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tests_that_are_left_out_exist() -> None:
    lines = (ROOT / "tests" / "second_device.txt").read_text().splitlines()
    names = [line for line in lines if not line.startswith("#")]
    assert names == sorted(set(names)) and names
    for name in names:
        file, _, function = name.partition("[")[0].partition("::")
        for part in function.split("::"):
            if part != "runTest":  # hypothesis makes it
                text = (ROOT / file).read_text()
                assert f"def {part}(" in text or f"{part} =" in text, name
