"""A job of several ranks under `halstream run --torch --sanitize`: what they find is said once, by the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)

RANK = """
import os, signal, sys
import torch
signal.alarm(200)  # a rank outlives a launcher that is killed
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
side = torch.cuda.Stream()

def race():
    x = torch.ones(1024, device="cuda")
    with torch.cuda.stream(side):
        y = x * 2
    return y
"""

ALL = """
race()
if rank == 1:
    with torch.cuda.stream(side):
        z = torch.ones(64, device="cuda")
    z.add_(1)
"""

ENDED = """
if rank == 1:
    race()
    open("raced", "w").close()
    while True:
        signal.pause()
open("raced").close()  # once the other one has opened it
sys.exit(3)
"""


def job(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """Run a program as two ranks by torchrun, as a program of `halstream run`."""
    (folder / "app.py").write_text(RANK + source)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.run(
        [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", *launcher, "app.py"],
        cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip


def test_a_place_that_two_ranks_found_is_one_finding_of_the_job(tmp_path: Path) -> None:
    done = job(tmp_path, ALL)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("unordered access:") == 2, done.stderr
    both, one = done.stderr.split("unordered access:")[1:]
    assert "y = x * 2" in both and "found in ranks 0, 1\n" in both, both
    assert "z.add_(1)" in one and "found in rank 1\n" in one, one


def test_what_a_rank_found_that_the_launcher_ends_is_reported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "raced")
    done = job(tmp_path, ENDED)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("unordered access:") == 1 and "found in rank 1\n" in done.stderr, done.stderr
    assert "exitcode  : 3" in done.stderr, done.stderr


@pytest.mark.parametrize("fault", ["", "wait", "bucket"])
def test_the_example_of_four_ranks_is_right_and_each_of_its_faults_is_named(fault: str) -> None:
    example = Path(__file__).parents[2] / "examples" / "torch_ranks.py"
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4"]
    done = subprocess.run(
        [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", *launcher, example, *filter(None, [fault])],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    if not fault:
        assert (done.returncode, done.stdout) == (0, "all ranks have the same weights\n"), done.stderr
        assert "unordered access" not in done.stderr
        return
    assert done.returncode == 1, done.stderr
    if fault == "wait":
        assert done.stderr.count("unordered access:") == 1, done.stderr
        for text in ("dist.all_reduce(parameter.grad", "optimizer.step()", "found in ranks 0, 1, 2, 3\n"):
            assert text in done.stderr, done.stderr
    else:
        assert "Detected mismatch between collectives on ranks." in done.stderr, done.stderr
        assert "rank 0 is in all_reduce 1 of group default_pg (Float [8, 128])" in done.stderr, done.stderr
        assert "rank 3 is in all_reduce 1 of group default_pg (Float [128, 64])" in done.stderr, done.stderr


def test_a_job_that_is_told_to_end_leaves_no_files(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os, signal, torch\ntorch.ones(1, device='cuda')\nos.kill(os.getpid(), signal.SIGTERM)\n"
    )
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "halstream", "run", "--torch", "--sanitize", "app.py"],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path / "temporary")}, capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert not list((tmp_path / "temporary").glob("halstream-*"))
