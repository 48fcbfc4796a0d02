"""Random programs with a wait too few, as source, and what becomes of them with the suggested lines."""

from __future__ import annotations

import linecache
from pathlib import Path

import halstream as hs
from halstream._checks import results
from halstream._checks.patch import changed
from halstream._schedules.block import schedule
from hypothesis import HealthCheck, given, settings
from test_sanitize_programs import CELLS, EVENTS, LIMIT, Op, programs, racy

HEAD = f"""import halstream as hs
import numpy as np
s0, s1 = hs.Stream.from_handle(0, 0), hs.Stream(0)
s2, s3 = hs.Stream(0, non_blocking=True), hs.Stream(0, non_blocking=True)
{", ".join(f"e{i}" for i in range(EVENTS))} = {", ".join(["hs.Event()"] * EVENTS)}
block, scratch = hs.empty({CELLS}, np.uint8), hs.empty(4096, np.uint8)
"""


def source(program: list[Op]) -> str:
    """Return a program as text, a line for each call."""
    lines = [_line(number, op) for number, op in enumerate(program)]
    ends = [f"s{i}.synchronize(timeout={LIMIT})" for i in range(4)]
    return HEAD + "\n".join([*lines, *ends]) + "\n"


def _line(number: int, op: Op) -> str:
    s, e = f"s{op.stream}", f"e{op.event}"
    reads, writes = (f"block[{begin}:{end}]" for begin, end in (op.reads, op.writes))
    size = op.reads[1] - op.reads[0]
    return {
        "write": f"{writes}.fill({number % 256}, {s})",
        "read": f"scratch[{number * CELLS}:{number * CELLS + size}].copy_from({reads}, {s})",
        "copy": f"{writes}.copy_from({reads}, {s})",
        "record": f"{s}.record({e})",
        "wait": f"{s}.wait({e})",
        "wait stream": f"{s}.wait_stream(s{op.event})",
        "sync stream": f"{s}.synchronize(timeout={LIMIT})",
        "host read": f'hs.host_access({reads}, "r")',
        "host write": f'hs.host_access({writes}, "w")',
    }[op.kind]


def report_of(path: Path, text: str) -> hs.Report:
    """Run a program and return what is found."""
    path.write_text(text)
    linecache.checkcache()
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        exec(compile(text, str(path), "exec"), {"__name__": "program"})
    return report


def silenced(folder: Path, program: list[Op], number: int) -> bool:
    """Whether nothing is found in a program, and it ends, with all lines that are suggested for it."""
    path = folder / f"program{number}.py"
    found = [results.of_finding(finding) for finding in report_of(path, source(program))]
    assert found, "the program has a race"
    if not all(one["changes"] for one in found):
        return False
    ((_, after),) = changed(found).values()
    try:
        return not report_of(folder / f"program{number}_fixed.py", after)
    except hs.HalError:
        return False


def tried(folder: Path, count: int) -> list[bool]:
    """Return for each of so many random programs, from each of which a wait was taken out, whether it is silenced."""
    outcomes: list[bool] = []

    @settings(max_examples=4 * count, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(programs())
    def each(program: list[Op]) -> None:
        for i in [i for i, op in enumerate(program) if op.orders]:
            less = program[:i] + program[i + 1 :]
            if len(outcomes) < count and racy(less):
                outcomes.append(silenced(folder, less, len(outcomes)))
                return

    each()
    return outcomes
