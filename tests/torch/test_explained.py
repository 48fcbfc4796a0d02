"""Pages of `halstream explain` whose examples need torch, and `halstream verify` of tests that use it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from halstream._explain.pages import PAGES

pytestmark = pytest.mark.timeout(300)

RACE = """
import torch

def test_sum():
    side, x = torch.cuda.Stream(), torch.zeros(1000, device="cuda")
    with torch.cuda.stream(side):
        x.add_(1)
    assert x.sum().item() == 1000
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    # An installed halstream is a plug-in of pytest by its entry point; here it is named.
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "-p halstream.pytest_plugin"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=240, env=env)


@pytest.mark.parametrize("code", [code for code, page in PAGES.items() if "torch" in page.command])
def test_the_example_of_a_page_is_reported_with_its_code_and_the_repaired_one_is_not(code: str, tmp_path: Path) -> None:
    page = PAGES[code]
    words = shlex.split(page.command)
    (tmp_path / "example.py").write_text(page.example)
    done = run(tmp_path, *words)
    assert f"\nexplain: halstream explain {code}\n" in done.stdout + done.stderr, done.stdout + done.stderr
    (tmp_path / "example.py").write_text(page.repaired)
    done = run(tmp_path, *words)
    assert done.returncode == 0 and "explain:" not in done.stdout + done.stderr, done.stdout + done.stderr


def test_tests_of_torch_are_verified_and_their_patch_is_proven(tmp_path: Path) -> None:
    (tmp_path / "test_sum.py").write_text(RACE)
    done = run(tmp_path, "halstream", "verify", "test_sum.py", "--torch", "--json", "--schedules", "3")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"]) == (1, "fail"), done.stderr
    codes = {one["code"]: [access["operation"] for access in one["accesses"]] for one in found["findings"]}
    assert codes["unordered-access"] in (["aten::zero_", "aten::add_"], ["aten::add_", "aten::sum"])
    (patch,) = found["patches"]
    assert "wait_stream" in patch["diff"], patch["diff"]
