"""`halstream run` on compiled programs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ascend_help import PROGRAMS, Compiled

pytest.importorskip("typer", reason="the extra cli is not installed")

Halstream = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def halstream() -> Halstream:
    """Return a function that calls the command line."""

    def halstream(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "halstream", *map(str, words)]
        given = {**os.environ, "HALSTREAM_BACKEND": "host", **env}
        return subprocess.run(command, capture_output=True, text=True, timeout=50, env=given)

    return halstream


def test_N12_a_failing_order_is_found_and_repeated(compiled: Compiled, halstream: Halstream) -> None:
    program = compiled(PROGRAMS / "turns.c")
    done = halstream("run", "--schedules", "60", program, "assert")
    assert done.returncode == 1, done.stderr
    assert "the program ended with exit code 3, in run " in done.stderr
    again, replayed = done.stderr.splitlines()[-2:]
    assert re.fullmatch(rf"HALSTREAM_SCHEDULE='random \d+' {re.escape(str(program))} assert", again)
    for _ in range(3):
        repeated = subprocess.run(again, shell=True, capture_output=True, text=True, timeout=50)
        assert (repeated.returncode, repeated.stdout) == (3, done.stdout)
    words = replayed.split()
    assert words[:2] == ["halstream", "replay"]
    repeated = halstream(*words[1:])
    assert (repeated.returncode, repeated.stdout) == (3, done.stdout)
    assert "the program failed again" in repeated.stderr
    other = halstream("replay", words[2], program, "wait")
    assert other.returncode == 2
    assert "it passed, but the token is of a program that made other calls" in other.stderr


def test_N12_a_program_that_waits_passes(compiled: Compiled, halstream: Halstream) -> None:
    done = halstream("run", "--schedules", "20", "--sanitize", compiled(PROGRAMS / "turns.c"), "wait")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert "the program passed under 20 schedule(s)" in done.stderr


@pytest.mark.parametrize("schedules", [(), ("--schedules", "2")])
def test_N12_a_finding_is_a_failure(compiled: Compiled, halstream: Halstream, schedules: tuple[str, ...]) -> None:
    done = halstream("run", "--sanitize", *schedules, compiled(PROGRAMS / "unordered.c"), "no wait")
    assert done.returncode == 1, done.stderr
    assert "unordered access" in done.stdout + done.stderr


def test_N12_exit_codes_are_the_programs(compiled: Compiled, halstream: Halstream) -> None:
    done = halstream("run", compiled(PROGRAMS / "ends.c"), "exit")
    assert (done.returncode, done.stdout) == (7, "done\n"), done.stderr


def test_N12_options_for_scripts_are_refused(compiled: Compiled, halstream: Halstream) -> None:
    done = halstream("run", "--leaks", compiled(PROGRAMS / "turns.c"))
    assert done.returncode == 2
    assert "--leaks is for scripts in Python" in done.stderr


def test_N17_a_trace_has_the_operations_and_their_places(
    compiled: Compiled, halstream: Halstream, tmp_path: Path
) -> None:
    written = tmp_path / "trace.pftrace"
    done = halstream("trace", "-o", written, compiled(PROGRAMS / "turns.c"), "wait")
    assert (done.returncode, done.stdout) == (0, "abcABC\ndone\n"), done.stderr
    assert f"the trace is in {written}" in done.stderr
    data = written.read_bytes()
    for text in (b"call", b"wait", b"turns.c", b"main"):
        assert text in data, text
