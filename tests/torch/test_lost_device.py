"""An operator that loses its device under pytest, and in a program that `halstream run` runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import halstream.torch as ht
ht.redirect()
import torch
embedding = torch.nn.Embedding(4, 2).cuda()
wrong = torch.tensor([9], device="cuda")
torch.cuda.synchronize()
def raises(call):
    try:
        value = call()
    except torch.AcceleratorError as exc:
        assert "device-side assert" in str(exc) and "aten::embedding: index out of range" in str(exc), exc
        return
    raise AssertionError(f"{value!r} was handed out")
"""


def test_F33_a_test_that_did_not_look_fails_and_the_next_one_finds_the_device_working(tmp_path: Path) -> None:
    (tmp_path / "test_two.py").write_text(
        BEGIN
        + """
def test_that_loses_the_device():
    embedding(wrong)

def test_that_handles_it():
    embedding(wrong)
    raises(torch.cuda.synchronize)

def test_behind_them():
    assert torch.ones(2, device="cuda").sum().item() == 2
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_two.py"],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "aten::embedding: index out of range" in done.stdout
    assert "The device works again in the next test." in done.stdout


@pytest.mark.parametrize("options", [[], ["--sanitize"]], ids=["plain", "sanitize"])
def test_D7_halstream_run_ends_with_1(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "app.py").write_text(
        "import torch\nembedding = torch.nn.Embedding(4, 2).cuda()\nembedding(torch.tensor([9], device='cuda'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "halstream", "run", "--torch", *options, "app.py"],
        cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ended without a look at the error of cuda:0: aten::embedding" in done.stderr
    assert "index out of range in self (app.py:3 in <module>)" in done.stderr
