"""W1, W2: the corpus's programs that never end, and their twins that do."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus import slow, stuck

pytestmark = pytest.mark.needs("stalls")

Child = Callable[..., subprocess.CompletedProcess[str]]

TESTS = str(Path(__file__).resolve().parent.parent)

# Where fewer threads make the program smaller and no different.
FEW = {"HALSTREAM_HOST_THREADS": "3", "PYTHONPATH": TESTS}

STUCK = """
    from corpus import stuck
    import halstream as hs
    from halstream import _native
    _native.schedule_set({schedule!r})
    program = next(p for p in stuck.STUCK if p.name == {name!r})
    try:
        program.run()
    except hs.StallError as exc:
        print(exc)
    stuck.release()
    hs.synchronize(timeout=20)
"""

# Under these every program gets stuck; others may run what helps first.
SCHEDULES = ("parallel", "fifo")


@pytest.mark.parametrize("program", stuck.STUCK, ids=lambda program: program.name)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_W1_a_program_that_never_ends(child: Child, schedule: str, program: stuck.Stuck) -> None:
    done = child(STUCK.format(schedule=schedule, name=program.name), env=FEW)
    assert done.returncode == 0, done.stderr
    chain = ".*".join(map(re.escape, program.chain))
    assert re.search(chain, done.stdout, re.DOTALL | re.IGNORECASE), done.stdout


@pytest.mark.parametrize("name", slow.SLOW)
def test_W2_a_program_that_is_only_slow(child: Child, name: str) -> None:
    done = child(f"from corpus import slow\nslow.SLOW[{name!r}]()", env=FEW)
    assert done.returncode == 0, done.stderr


def test_the_programs_are_twins() -> None:
    assert {program.name for program in stuck.STUCK} <= slow.SLOW.keys()
    assert len(stuck.STUCK) >= 12
