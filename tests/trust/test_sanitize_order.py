"""A sanitized run is in the order of the calls by default: what that shows, by each of the four commands."""

from __future__ import annotations

import subprocess
import textwrap
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native
from plugin_help import Runner

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("schedules")]

IN_ORDER = "fifo unlogged"

# What each body does is wrong without the line MENDED. On real threads the last two are not seen.
BODIES = {
    "refill": """
        s, pinned, batch = hs.Stream(), hs.pinned_empty(8), hs.empty(8)
        pinned[:] = 1
        batch.copy_from(pinned, s)
        {MENDED}
        pinned[:] = 2
        s.synchronize()
    """,
    "captured": """
        a, b, x = hs.Stream(), hs.Stream(), hs.zeros(4)
        held = {{"view": x._as_host()}}
        a.call(lambda: held["view"].fill(1))
        {MENDED}
        b.call(lambda data: data.sum(), x)
        b.synchronize()
        a.synchronize()
    """,
    "dropped": """
        main, side = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        x = hs.empty(4096, stream=main)
        x.fill(1, main)
        side.wait(main.record())
        side.call(lambda data: data.sum(), x)
        {MENDED}
        del x
        y = hs.empty(4096, stream=main)
        y.fill(2, main)
        hs.Device(0).synchronize()
    """,
}
LINES = {"refill": "s.synchronize()", "captured": "b.wait(a.record())", "dropped": "x.record_stream(side)"}


def body(name: str, line: str = "None") -> str:
    return textwrap.dedent(BODIES[name].format(MENDED=line))


def program(name: str, line: str = "None") -> str:
    return "import halstream as hs\ndef work():\n" + textwrap.indent(body(name, line), "    ") + "\nwork()\n"


@pytest.mark.parametrize("name", BODIES)
def test_X21_a_block_of_sanitize_sees_it(name: str) -> None:
    for line, found in (("None", True), (LINES[name], False)):
        for _ in range(3):
            with hs.sanitize(on="collect") as report:
                exec(program(name, line), {"__name__": "program"})
            assert bool(report) is found, f"{line}: {report}"
        assert all(one.schedule == IN_ORDER for one in report.all)


def test_X21_the_plugin_sees_it(pytester: pytest.Pytester) -> None:
    tests = [
        f"def test_{name}_{kind}():\n" + textwrap.indent(body(name, line), "    ")
        for name in BODIES
        for kind, line in (("broken", "None"), ("mended", LINES[name]))
    ]
    result = Runner(pytester)("\n".join(["", *tests]), "--stream-sanitize")
    result.assert_outcomes(passed=len(BODIES), failed=len(BODIES))
    for name in BODIES:
        result.stdout.fnmatch_lines_random([f"FAILED *::test_{name}_broken*"])
    result.stdout.fnmatch_lines(["streams: sanitize, in the order of the calls", "found in the order of the calls"])


@pytest.mark.parametrize("name", BODIES)
def test_X21_the_command_line_sees_it(cli: Any, name: str) -> None:
    done = cli("run", "--sanitize", cli.script(program(name)))
    assert done.returncode == 1, done.stderr
    assert ", found in the order of the calls\n" in done.stderr
    done = cli("run", "--sanitize", cli.script(program(name, LINES[name])))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", BODIES)
def test_X21_the_variable_sees_it(child: Callable[..., subprocess.CompletedProcess[str]], name: str) -> None:
    done = child(program(name), env={"HALSTREAM_SANITIZE": "1"})
    assert done.returncode == 66, done.stderr
    assert ", found in the order of the calls\n" in done.stderr
    done = child(program(name, LINES[name]), env={"HALSTREAM_SANITIZE": "1"})
    assert (done.returncode, done.stderr) == (0, "")


# -- real threads, where they are asked for ------------------------------------

SCHEDULE = "import halstream._native as native; print('schedule:', native.schedule_get())"


def test_X21_real_threads_are_for_those_that_ask_for_them(
    cli: Any, child: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    with hs.sanitize(on="collect", threads=True):
        assert _native.schedule_get() == "parallel"
    script = cli.script(f"import sys\n{SCHEDULE}\nprint(sys.argv[1:])")
    for option, schedule in (("--sanitize", IN_ORDER), ("--sanitize=threads", "parallel")):
        done = cli("run", option, "--seed", "3", script, "--sanitize=threads")
        assert done.stdout == f"schedule: {schedule}\n['--sanitize=threads']\n", done.stderr
    modes = {"1": IN_ORDER, "threads": "parallel", "raise,threads": "parallel", "0": "parallel", "1,pages": IN_ORDER}
    for mode, schedule in modes.items():
        done = child(SCHEDULE, env={"HALSTREAM_SANITIZE": mode})
        assert done.stdout == f"schedule: {schedule}\n", (mode, done.stderr)


def test_X21_the_plugin_leaves_real_threads_where_they_are_asked_for(pytester: pytest.Pytester) -> None:
    tests = f"""
    def test_plain(): {SCHEDULE}
    @pytest.mark.streams(sanitize="threads")
    def test_marked(): {SCHEDULE}
    @pytest.mark.streams(sanitize=False, leaks=True)
    def test_off(): {SCHEDULE}
    """
    run = Runner(pytester)

    def schedules(result: pytest.RunResult) -> list[str]:
        result.assert_outcomes(passed=3)
        return [line.partition("schedule: ")[2] for line in result.outlines if "schedule: " in line]

    result = run(tests, "-s", "-p", "no:randomly", "--stream-sanitize")
    assert schedules(result) == [IN_ORDER, "parallel", "parallel"]
    result = run.again("-s", "-p", "no:randomly", "--stream-sanitize=threads", "test_it.py")
    assert schedules(result) == ["parallel", "parallel", "parallel"]
    result.stdout.fnmatch_lines(["streams: sanitize, on real threads"])


def test_X21_schedules_are_not_for_real_threads(cli: Any) -> None:
    done = cli("run", "--sanitize=threads", "--schedules", "2", cli.script("pass"))
    assert done.returncode == 2 and "for a single run" in done.stderr


# -- how blocks and schedules go together -------------------------------------------


def test_X21_the_block_that_began_last_decides() -> None:
    assert _native.schedule_get() == "parallel"
    with hs.sanitize():
        assert _native.schedule_get() == IN_ORDER
        with hs.sanitize(threads=True):
            assert _native.schedule_get() == "parallel"
        with hs.testing.schedule("latest"), hs.sanitize():
            assert _native.schedule_get() == "latest"
        assert _native.schedule_get() == IN_ORDER
    assert _native.schedule_get() == "parallel"


def test_X21_pending_work_that_waits_for_the_program_keeps_real_threads() -> None:
    a, b, x = hs.Stream(), hs.Stream(), hs.empty(4)
    gate = hs.testing.Gate(hs.Stream())
    with hs.sanitize(on="collect") as report:
        x.fill(1, a)
        x.fill(2, b)
    gate.open()
    assert [one.schedule for one in report.races] == ["parallel"]
    assert ", found on real threads\n" in str(report)


def test_X21_a_function_that_waits_for_another_thread_does_not_hang() -> None:
    s, go, seen = hs.Stream(), threading.Event(), []
    other = threading.Thread(target=lambda: (s.synchronize(timeout=30), seen.append("waited")))
    with hs.sanitize(on="collect"):
        s.call(lambda: seen.append(go.wait(30)))
        other.start()
        go.set()
        s.synchronize(timeout=30)
        other.join(30)
    assert seen[0] is True and "waited" in seen


def test_X21_threads_of_the_program_work_side_by_side() -> None:
    """Each waits for the next one between its calls, by a barrier."""
    n, rounds = 4, 20
    meet, results = threading.Barrier(n), np.zeros((n, rounds))
    arrays = [hs.zeros(16) for _ in range(n)]

    def work(i: int) -> None:
        stream = hs.Stream(non_blocking=True)
        for k in range(rounds):
            arrays[i].fill(k, stream)
            stream.call(lambda data, k: results.__setitem__((i, k), data[0]), arrays[i], k)
            meet.wait(30)
            stream.synchronize(timeout=30)

    with hs.sanitize(on="collect") as report:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert not report.races, str(report)
    assert (results == np.arange(rounds)).all()


def test_X21_work_that_another_test_meets_is_found_in_order(pytester: pytest.Pytester) -> None:
    """Between tests nothing waits for the device: a wait there would hide the race."""
    source = """
    one, two = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    @pytest.fixture(scope="module")
    def x(): return hs.empty(16)
    def test_fills(x): x.fill(1, one)
    def test_copies(x):
        hs.empty(16).copy_from(x, two)
        two.synchronize()
    """
    result = Runner(pytester)(source, "--stream-sanitize")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*in test_fills*", "*in test_copies*", "found in the order of the calls"])


def test_V42_a_function_that_declares_that_it_touches_nothing_explains_no_refill() -> None:
    for declared in (False, True):
        s, pinned, batch = hs.Stream(), hs.pinned_empty(8), hs.empty(8)
        pinned[:] = 1
        with hs.sanitize(on="collect") as report:
            batch.copy_from(pinned, s)
            s.call(lambda: None, **({"reads": ()} if declared else {}))
            pinned[:] = 2
            s.synchronize()
        assert bool(report.refills) is declared, str(report)
