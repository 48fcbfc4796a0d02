"""W1 to W4: the corpus's programs that never end, and their twins that do."""

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
    program = next(p for p in (*stuck.STUCK, *stuck.WATCHED) if p.name == {name!r})
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


# Ends where the program stands: threads may still wait for locks that nobody will release.
WATCHED = STUCK.replace("    stuck.release()", "    print(end='', flush=True)\n    import os\n    os._exit(0)")


NATIVE = [program for program in stuck.WATCHED if "native" in program.name]


@pytest.mark.parametrize("program", [p for p in stuck.WATCHED if p not in NATIVE], ids=lambda program: program.name)
def test_W3_a_program_that_never_ends_outside_the_runtime(child: Child, program: stuck.Stuck) -> None:
    run_watched(child, program)


@pytest.mark.parametrize("program", NATIVE, ids=lambda program: program.name)
def test_W4_a_native_function_that_never_ends(child: Child, program: stuck.Stuck) -> None:
    run_watched(child, program)


def run_watched(child: Child, program: stuck.Stuck) -> None:
    """Run a program to its StallError, whose text must name who waits for whom."""
    done = child(WATCHED.format(schedule="parallel", name=program.name), env=FEW)
    assert done.returncode == 0, done.stderr
    chain = ".*".join(map(re.escape, program.chain))
    assert re.search(chain, done.stdout, re.DOTALL | re.IGNORECASE), done.stdout


@pytest.mark.parametrize("name", slow.SLOW)
def test_W2_a_program_that_is_only_slow(child: Child, name: str) -> None:
    done = child(f"from corpus import slow\nslow.SLOW[{name!r}]()", env=FEW)
    assert done.returncode == 0, done.stderr


def test_the_programs_are_twins() -> None:
    assert len(stuck.STUCK) >= 23
    assert len(stuck.WATCHED) >= 14
    both = slow.SLOW.keys() & {program.name for program in (*stuck.STUCK, *stuck.WATCHED)}
    assert len(both) >= 29
