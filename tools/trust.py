"""Measures the tools for trust and writes the table of docs/trust.md.

Usage: python tools/trust.py [--quick] [--write] [--section NAME ...]

Every figure is what was measured in this run beside what is asked for; a
figure that is missed is marked, and the exit code is 1 then. ``--quick`` takes
a tenth of the repetitions. ``--write`` puts the table into docs/trust.md.
``--section`` measures the named sections only, and leaves the others' rows.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "trust")]

import halstream as hs  # noqa: E402
from corpus import PROGRAMS, Program, slow, stuck  # noqa: E402
from fix_help import tried  # noqa: E402
from halstream import _native  # noqa: E402
from halstream._schedules.explore import _Program  # noqa: E402
from halstream._schedules.isolation import RunIsolation  # noqa: E402
from halstream._schedules.replay import replay_changed  # noqa: E402
from halstream._schedules.token import Token  # noqa: E402
from halstream.testing import explore, schedule  # noqa: E402
from trust_commands import command_table  # noqa: E402
from trust_reports import many_findings, pages_cost  # noqa: E402
from trust_rows import Figure, all_of, least_of, passes, repeat, table, within  # noqa: E402
from trust_shapes import BY_SHAPE, SYNCHRONISING  # noqa: E402

LUCKY = [program for program in PROGRAMS if program.schedule]
RANDOM = ROOT / "tests" / "trust" / "test_sanitize_programs.py"
UNORDERED = [program for program in PROGRAMS if program.sanitize]
START, END = "<!-- figures: written by make trust -->\n", "<!-- end of figures -->\n"
#: The name of the table that compares the commands, and where it stands.
COMMANDS = "Commands"
COMMANDS_START, COMMANDS_END = "<!-- commands: written by make trust -->\n", "<!-- end of commands -->\n"


# -- sanitizer ----------------------------------------------------------------


def reported(function: Callable[[], None]) -> bool:
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        function()
    return bool(report.races or report.refills)


def sanitizer_corpus(quick: bool) -> list[Figure]:
    found = sum(reported(program.broken) for program in UNORDERED)
    wrong = sum(reported(program.fixed) for program in PROGRAMS)
    return [
        all_of("broken programs of the corpus reported, one `fifo` run each", found, len(UNORDERED)),
        all_of("their twins not reported", len(PROGRAMS) - wrong, len(PROGRAMS)),
    ]


def sanitizer_random(quick: bool) -> list[Figure]:
    command = [sys.executable, "-m", "pytest", "-q", "--hypothesis-show-statistics", str(RANDOM)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    passed = re.search(r"(\d+) passing, 0 failing", done.stdout)
    count = int(passed[1]) if passed and done.returncode == 0 else 0
    return [
        least_of(
            "random programs right: no report, and after taking out a wait a report if and only if "
            "two accesses lose their order (oracle: transitive closure)",
            count,
            count,
            500,
        )
    ]


def fixes(quick: bool) -> list[Figure]:
    """The lines that reports suggest, put into the programs as they are."""
    lines = str(ROOT / "tests" / "trust" / "test_fix_lines.py")
    command = [sys.executable, "-m", "pytest", "-q", lines, "-k", "program_of_the_corpus"]
    passed = re.search(r"(\d+) passed", subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as folder:
        random = tried(Path(folder), 100)
    n = len(random)
    return [
        least_of(
            "tests of the corpus that `--stream-fix=apply` calls silent, and that pass 50 schedules",
            applied(),
            len(UNORDERED),
            -(-len(UNORDERED) * 98 // 100),
        ),
        all_of(
            "programs of the corpus that their suggested lines silence", int(passed[1]) if passed else 0, len(UNORDERED)
        ),
        least_of("random programs with a wait too few that these silence, and that end", sum(random), n, n * 98 // 100),
    ]


APPLIED = """
import sys
import pytest
sys.path.insert(0, {tests!r})
from corpus import PROGRAMS
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.sanitize], ids=lambda p: p.name)
def test_broken(program):
    program.broken()
"""


def applied() -> int:
    """Return for how many programs of the corpus the lines are tried by the plugin and found right."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "test_corpus_programs.py").write_text(APPLIED.format(tests=str(ROOT / "tests")))
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "--stream-sanitize", "--stream-fix=apply"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return len(re.findall(r"(?m): silent and passes under 50 schedules$", done.stdout))


def mixed(operations: int) -> float:
    """Return the microseconds of an operation in a program of records, waits and copies."""
    streams = [hs.Stream(non_blocking=True) for _ in range(8)]
    arrays = [hs.empty(8) for _ in streams]
    event = hs.Event()
    begin = time.perf_counter()
    for i in range(operations // 4):
        one, two = i % 8, (i + 1) % 8
        streams[two].wait_event(event)
        arrays[two].copy_from(arrays[one], streams[two])
        streams[two].nop()
        streams[two].record(event)
    took = time.perf_counter() - begin
    for stream in streams:
        stream.synchronize(timeout=60)
    return took / operations * 1e6


def sanitizer_cost(quick: bool) -> list[Figure]:
    n = repeat(quick, 100_000)
    plain = min(mixed(n) for _ in range(3))
    costs = []
    for _ in range(3):
        with hs.sanitize(on="collect"):
            costs.append(mixed(n))
    cost = min(costs) - plain
    row = within(f"cost of an operation among {n:,}, stacks included", cost, 3, "µs")
    row.got += f" (from {plain:.2f} to {min(costs):.2f})"
    return [row]


# -- schedules ----------------------------------------------------------------


def luck(quick: bool) -> list[Figure]:
    count = repeat(quick, 1000)
    real = sum(all(passes(program.broken) for _ in range(count)) for program in LUCKY)
    fifo = 0
    for program in LUCKY:
        good = True
        for _ in range(count):
            with schedule("fifo"):
                good = good and passes(program.broken)
        fifo += good
    return [
        least_of(f"broken programs that pass {count:,} of {count:,} runs on real threads", real, len(LUCKY), 20),
        least_of(f"and {count:,} of {count:,} under `fifo`", fifo, len(LUCKY), 20),
    ]


def token_of(function: Callable[[], None]) -> str | None:
    try:
        explore(function, schedules=50)
    except AssertionError as exc:
        found = re.search(r"hs1-[\w.-]*\w", "\n".join([str(exc), *getattr(exc, "__notes__", ())]))
        return found[0] if found else None
    return None


def repaired(program: Program, text: str) -> bool:
    """Whether the token of a broken program says of its twin that it is fixed, and of itself that it still fails."""
    verdicts = []
    for function in (program.fixed, program.broken):
        with RunIsolation() as isolation:
            changed = replay_changed(_Program(function, isolation, sanitize=False), Token.parse(text))
        verdicts.append("stale" if changed is None else changed.verdict)
    return ": fixed: " in verdicts[0] and " still fails " in verdicts[1]


def exploring(quick: bool) -> list[Figure]:
    begin = time.perf_counter()
    tokens = {program: token_of(program.broken) for program in LUCKY}
    found = sum(token is not None for token in tokens.values())
    twins = sum(token_of(program.fixed) is None for program in LUCKY)
    took = time.perf_counter() - begin
    fixed = sum(repaired(program, token) for program, token in tokens.items() if token)
    count, exact = repeat(quick, 100), 0
    for program, token in tokens.items():
        again = 0
        for _ in range(count if token else 0):
            with schedule(token or ""):
                again += not passes(program.broken)
        exact += again == count
    n = len(LUCKY)
    return [
        least_of("broken programs that fail within 50 schedules", found, n, n - n // 20),
        all_of(f"tokens that fail again {count} times of {count}", exact, found),
        all_of("fixed programs for which the token of the broken one says that they are fixed", fixed, found),
        all_of("fixed programs that pass 50 schedules", twins, n),
        within("time for those, shrinking included", took, 60),
    ]


def pct_rate(quick: bool) -> list[Figure]:
    """The consumer of one stream must come before two operations of another: depth 2."""
    runs = repeat(quick, 2000)

    def broken() -> bool:
        one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        seen: list[int] = []
        one.call(seen.append, 1)
        one.call(seen.append, 2)
        two.call(seen.append, 3)
        one.synchronize(timeout=10)
        two.synchronize(timeout=10)
        return seen == [1, 3, 2]

    with schedule("fifo") as run:
        broken()
    hits = 0
    for seed in range(runs):
        _native.schedule_set(f"pct {seed} 2 {run.steps}")
        hits += broken()
    _native.schedule_set("parallel")
    bound = 1 / (3 * run.steps)
    return [
        Figure(
            "share of `pct` schedules that hit a fault of depth 2",
            f"at least 1/(n·k) = {bound:.3f}",
            f"{hits / runs:.3f} of {runs:,}",
            hits / runs >= bound,
        )
    ]


def large(quick: bool) -> list[Figure]:
    streams, operations, count = 1000, 100, repeat(quick, 50)

    def program() -> None:
        lanes = [hs.Stream(non_blocking=True) for _ in range(streams)]
        event = hs.Event()
        for _ in range(operations // 4):
            for lane in lanes:
                lane.wait_event(event)
                lane.nop()
                lane.nop()
                lane.record(event)
        for lane in lanes:
            lane.synchronize(timeout=60)

    begin = time.perf_counter()
    explore(program, schedules=count, sanitize=True)
    took = time.perf_counter() - begin
    what = f"{streams:,} streams of {operations} operations, {count} schedules with the sanitizer"
    return [within(what, took, 60 * count / 50)]


# -- stalls -------------------------------------------------------------------

STALL = """
import os, sys, time
sys.path.insert(0, {tests!r})
import halstream as hs
from corpus import stuck
from halstream import _native
_native.schedule_set({schedule!r})
program = stuck.{programs}[{index}]
begin = time.perf_counter()
try:
    program.run()
except hs.StallError as exc:
    print(time.perf_counter() - begin)
    print(exc)
finally:
    if {programs!r} == "WATCHED":  # some wait for what nobody can give them any more
        sys.stdout.flush()
        os._exit(0)
    stuck.release()
"""


def stuck_rows(what: str, programs: str, how: str, limit: float) -> list[Figure]:
    """Return how many programs end with the right chain under a schedule, and the longest until then."""
    few = {**os.environ, "HALSTREAM_HOST_THREADS": "3"}  # one program takes them all
    right, longest = 0, 0.0
    listed: tuple[stuck.Stuck, ...] = getattr(stuck, programs)
    for index, program in enumerate(listed):
        source = STALL.format(tests=str(ROOT / "tests"), schedule=how, programs=programs, index=index)
        try:
            done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60, env=few)
        except subprocess.TimeoutExpired:
            continue  # it hangs
        lines = done.stdout.splitlines()
        text = "\n".join(lines[1:])
        chain = re.search(".*".join(map(re.escape, program.chain)), text, re.DOTALL | re.IGNORECASE)
        if lines and chain:
            right += 1
            longest = max(longest, float(lines[0]))
    return [
        all_of(f"{what} that end with the right chain, `{how}`", right, len(listed)),
        within(f"the longest until then, `{how}`", longest, limit),
    ]


def stalls(quick: bool) -> list[Figure]:
    rows = [
        *stuck_rows("stuck programs", "STUCK", "parallel", 1.0),
        *stuck_rows("stuck programs", "STUCK", "fifo", 0.1),
        *stuck_rows("those whose main thread waits in Python, or for a native function,", "WATCHED", "parallel", 1.5),
    ]
    quiet = 0
    for program in slow.SLOW.values():
        try:
            program()
        except hs.StallError:
            continue
        quiet += 1
    rows.append(all_of("slow programs without a report", quiet, len(slow.SLOW)))
    return rows


# -- cost of being ready ------------------------------------------------------


def log_cost(quick: bool) -> list[Figure]:
    stream = hs.Stream(non_blocking=True)
    nop, ident = _native._load().pybuild_StreamNop, stream._id
    count = repeat(quick, 20_000)

    def measure() -> float:
        took = min(timeit.timeit(lambda: nop(ident), number=count) for _ in range(3))
        stream.synchronize(timeout=60)
        return took

    ratios = []
    for _ in range(15):  # taking turns, so that both see the same machine
        off = measure()
        log = _native.trace_start()
        ratios.append(measure() / off)
        _native.trace_stop(log)
    ratio = statistics.median(ratios)
    return [Figure("an enqueue with the log on, against off", "at most 1.3", f"{ratio:.2f}", ratio <= 1.3)]


SECTIONS: dict[str, list[Callable[[bool], list[Figure]]]] = {
    "Sanitizer": [sanitizer_corpus, sanitizer_random, fixes, sanitizer_cost],
    "Schedules": [luck, exploring, pct_rate, large],
    "Programs by shape": BY_SHAPE,
    "Synchronisation": SYNCHRONISING,
    "Stalls": [stalls],
    "Cost": [log_cost, many_findings],
    "Cost of watching pages": [pages_cost],
}


def between(text: str, start: str, end: str, new: Callable[[str], str]) -> str:
    """Return a text with what `new` makes of the part between two marks."""
    head, _, rest = text.partition(start)
    before, _, tail = rest.partition(end)
    return f"{head}{start}\n{new(before)}\n{end}{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the tools for trust.")
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--write", action="store_true", help="put the table into docs/trust.md")
    names = [COMMANDS, *SECTIONS]
    parser.add_argument("--section", nargs="+", choices=names, default=names, help="measure these only")
    options = parser.parse_args()
    results: dict[str, list[Figure]] = {}
    commands = command_table() if COMMANDS in options.section else ""
    print(commands, flush=True)
    for section in [name for name in options.section if name != COMMANDS]:
        results[section] = []
        for measure in SECTIONS[section]:
            for figure in measure(options.quick):
                results[section].append(figure)
                mark = "yes   " if figure.reached else "MISSED"
                print(f"{mark} {figure.what}: {figure.got} (asked: {figure.asked})", flush=True)
    if options.write:
        path = ROOT / "docs" / "trust.md"
        text = path.read_text()
        machine = f"\nCPython {platform.python_version()}, {os.cpu_count()} shared cores of {platform.machine()}.\n"
        if commands:
            text = between(text, COMMANDS_START, COMMANDS_END, lambda before: commands)
        if results:
            text = between(text, START, END, lambda before: table(results, before, SECTIONS) + machine)
        path.write_text(text)
    return 0 if all(f.reached for figures in results.values() for f in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
