"""HALSTREAM_SCHEDULE chooses the order of operations in programs in C."""

from __future__ import annotations

import pytest
from ascend_help import PROGRAMS, Compiled, Run


def test_N11_a_schedule_gives_the_same_order_each_time(compiled: Compiled, run: Run) -> None:
    program = compiled(PROGRAMS / "turns.c")

    def order(schedule: str, *words: str) -> str:
        done = run(program, *words, env={"HALSTREAM_SCHEDULE": schedule})
        assert done.returncode == 0 and done.stdout.endswith("\ndone\n"), done.stderr
        return done.stdout.partition("\n")[0]

    schedules = [f"random {seed}" for seed in range(20, 50)]
    orders = [order(text) for text in schedules]
    assert len(set(orders)) > 2
    assert [order(text) for text in schedules] == orders
    for letters in orders:
        assert [c for c in letters if c.islower()] == list("abc")
        assert [c for c in letters if c.isupper()] == list("ABC")
    assert {order(text, "wait") for text in schedules[:10]} == {"abcABC"}
    assert order("starve 1") == "ABCabc"


@pytest.mark.parametrize("schedule", ["random 3", "latest"])
@pytest.mark.parametrize("name", ["waits", "events", "functions", "orders", "threads"])
def test_N11_rules_hold_under_schedules(compiled: Compiled, run: Run, name: str, schedule: str) -> None:
    """Their functions wait for the host, which goes on although the device moves only during calls."""
    # Nobody waits for a function until it counts as stuck because of its time.
    settings = {"HALSTREAM_SCHEDULE": schedule, "HALSTREAM_STALL_S": "86400"}
    done = run(compiled(PROGRAMS / f"{name}.c"), env=settings)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_N11_the_sanitizer_reports_under_a_schedule(compiled: Compiled, run: Run) -> None:
    settings = {"HALSTREAM_SCHEDULE": "random 1", "HALSTREAM_SANITIZE": "1"}
    program = compiled(PROGRAMS / "unordered.c")
    assert run(program, "no wait", env=settings).returncode == 66
    assert run(program, "wait", env=settings).returncode == 0


def test_N11_a_text_that_is_no_schedule_is_refused(compiled: Compiled, run: Run) -> None:
    done = run(compiled(PROGRAMS / "turns.c"), env={"HALSTREAM_SCHEDULE": "sometimes"})
    assert done.returncode == 1
    assert '"sometimes" is no schedule: choose parallel, fifo' in done.stderr
