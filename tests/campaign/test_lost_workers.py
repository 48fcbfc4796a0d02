"""Campaigns on real engines, of whose two workers one is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Start

NUMBERS = ("--schedules", "40", "--slice", "10", "--workers", "2")


def begun(folder: Path, count: int) -> list[int]:
    """Return the processes that run tests, once there are `count`."""
    end = time.monotonic() + 150
    while time.monotonic() < end:
        files = list(folder.glob("begun-*"))
        if len(files) >= count:
            return [int(file.name.rpartition("-")[2]) for file in files]
        time.sleep(0.02)
    raise AssertionError(f"{files} have begun, not {count}")


def finished(process: subprocess.Popen[str], folder: Path) -> str:
    """Let the tests go on; return what the campaign printed, and compare it with its state file."""
    (folder / "go").touch()
    printed, _ = process.communicate(timeout=150)
    assert process.returncode == 1, printed
    assert "1 failed, 1 passed" in printed and re.search(r"Replay: pytest \S+test_race --stream-replay=hs1-", printed)
    lines = [json.loads(line) for line in (folder / "halstream-campaign.jsonl").read_text().splitlines()]
    done = {(one["test"], one["first"]): one for one in lines if one.get("kind") == "done"}
    assert len(done) == sum(one.get("kind") == "done" for one in lines), "each part is counted once"
    right = {first: one["schedules"] for (test, first), one in done.items() if test.endswith("test_right")}
    assert right == {0: 10, 10: 10, 20: 10, 30: 10}
    total = sum(one["schedules"] for one in done.values())
    assert re.search(rf"^{total} schedules of 2 tests", printed, re.MULTILINE)  # Ray prints, too
    assert lines[-1] == {"kind": "finished"}
    return printed


def test_X20_xdist_runs_the_parts_of_a_killed_worker_again(start: Start, tmp_path: Path) -> None:
    process = start(*NUMBERS)
    victim = begun(tmp_path, 2)[0]
    os.kill(victim, signal.SIGKILL)
    finished(process, tmp_path)


def parent(process: int) -> int:
    """Return the process that started another one, by proc(5)."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("whose", ["pytest", "ray"])
def test_X20_ray_runs_the_parts_of_a_killed_worker_again(whose: str, start: Start, tmp_path: Path) -> None:
    pytest.importorskip("ray")
    process = start(*NUMBERS, "--engine", "ray")
    victim = begun(tmp_path, 2)[0]
    killed = victim if whose == "pytest" else parent(victim)
    if whose == "ray":
        assert b"ray::" in Path(f"/proc/{killed}/cmdline").read_bytes()
    os.kill(killed, signal.SIGKILL)
    finished(process, tmp_path)
