"""Waits in C that can never end: they return, and the report names who waits for whom, with the program's lines."""

from __future__ import annotations

import re
import signal

import pytest
from ascend_help import PROGRAMS, Compiled, Run

LINES = (PROGRAMS / "stalls.c").read_text().splitlines()
CALL = next(number for number, line in enumerate(LINES, 1) if "int code = aclrtSynchronizeStream" in line)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("lock", "the function take_the_lock ("),
        ("event", "is not recorded, and nobody is left who could record it"),
        ("value", "is not what the stream waits for, and nobody is left who could write it"),
        ("report", "no thread takes the reports of this stream"),
        ("callback", "the function take_the_lock ("),
        ("pause", "waits for a signal"),
    ],
)
def test_N16_a_wait_that_can_never_end_returns_with_a_report(compiled: Compiled, run: Run, how: str, says: str) -> None:
    done = run(compiled(PROGRAMS / "stalls.c"), how)
    assert done.returncode == 4, done.stderr
    for text in (done.stderr, done.stdout):  # on its own, and what aclGetRecentErrMsg returns
        assert "this wait can never end" in text
        assert says in text
        assert "the main thread waits for stream" in text
        assert f"stalls.c:{CALL}, in main" in text


@pytest.mark.parametrize(
    ("how", "says"),
    [
        (
            "locks",
            [
                r"the function take_in_order .*, waits for a lock that the function take_in_reverse .* holds",
                r"the function take_in_reverse .*, waits for a lock that the function take_in_order .* holds",
                r"Take these locks in the same order on every thread\.",
            ],
        ),
        (
            "holder",
            [
                r"the function take_the_other_lock \(.*\), on thread \d+, waits for a lock that thread \d+ holds",
                r"thread \d+ waits for a lock that the main thread holds",
                r"A function must not wait for a thread that waits for the function's stream\.",
            ],
        ),
    ],
)
def test_N16_a_report_follows_locks_to_the_threads_that_hold_them(
    compiled: Compiled, run: Run, how: str, says: list[str]
) -> None:
    done = run(compiled(PROGRAMS / "stalls.c"), how)
    assert done.returncode == 4, done.stderr
    assert re.search(".*\n.*".join(says), done.stderr, re.DOTALL), done.stderr


@pytest.mark.parametrize("how", ["abort", "destroy"])
def test_N16_no_other_call_waits_for_a_function_that_never_ends(compiled: Compiled, run: Run, how: str) -> None:
    done = run(compiled(PROGRAMS / "stalls.c"), how)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "this wait can never end" in done.stderr
    assert "the function take_the_lock (" in done.stderr


def test_N16_a_schedule_hides_no_such_wait(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "stalls.c"), "event", env={"HALSTREAM_SCHEDULE": "latest"})
    assert done.returncode == 4, done.stderr
    assert "nobody is left who could record it" in done.stderr


@pytest.mark.parametrize("how", ["slow", "thread", "signal", "limit", "each"])
def test_N16_a_wait_that_may_end_is_left_alone(compiled: Compiled, run: Run, how: str) -> None:
    done = run(compiled(PROGRAMS / "stalls.c"), how)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_N16_reports_can_be_turned_off(compiled: Compiled, run: Run) -> None:
    program = compiled(PROGRAMS / "stalls.c")
    done = run("timeout", "-s", "KILL", "2", program, "event", env={"HALSTREAM_STALL": "0"})
    assert done.returncode == -signal.SIGKILL or done.returncode == 128 + signal.SIGKILL, done.stderr
    assert "never end" not in done.stderr
