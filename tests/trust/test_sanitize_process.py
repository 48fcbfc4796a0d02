"""HALSTREAM_SANITIZE: the sanitizer for a whole process, in processes of their own."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOUND = 66  # what the documentation promises
Child = Callable[..., "subprocess.CompletedProcess[str]"]

RACE = """
    import halstream as hs
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(4)
    x.fill(1, a)
    x.fill(2, b)
"""
WAIT = RACE + "    b.synchronize()\n    print('waited')\n"


def run(child: Child, source: str, mode: str, **env: str) -> subprocess.CompletedProcess[str]:
    return child(source, env={"HALSTREAM_SANITIZE": mode, **env})


@pytest.mark.parametrize("mode", ["", "0"])
def test_it_can_be_off(child: Child, mode: str) -> None:
    done = run(child, WAIT, mode)
    assert (done.returncode, done.stdout, done.stderr) == (0, "waited\n", "")


def test_1_reports_at_the_end_and_replaces_an_exit_code_of_0(backend: str, child: Child) -> None:
    how = ", found in the order of the calls" * (backend == "host")
    for code in (0, 3):
        done = run(child, WAIT + f"    raise SystemExit({code})\n", "1")
        assert (done.returncode, done.stdout) == (code or FOUND, "waited\n")
        assert done.stderr.startswith(f"halstream: 1 unordered access{how}\n")
        assert "program.py:6 in <module>" in done.stderr and "b.wait(a.record())" in done.stderr
    done = run(child, RACE + "    raise KeyError('own')\n", "1")
    assert done.returncode == 1
    assert "KeyError: 'own'" in done.stderr and "1 unordered access" in done.stderr


def test_an_ordered_program_prints_nothing(child: Child) -> None:
    done = run(child, RACE.replace("    x.fill(2", "    b.wait(a.record())\n    x.fill(2"), "1")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_without_streams_pays_nothing(child: Child) -> None:
    done = run(child, "import halstream, sys; print('halstream._checks.sanitize' in sys.modules)", "1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_what_is_pending_at_the_end_still_runs_and_counts(child: Child) -> None:
    done = run(
        child,
        """
        import halstream as hs
        s = hs.Stream(non_blocking=True)
        x, p = hs.empty(4), hs.pinned_empty(4)
        p[:] = 1
        gate = hs.testing.Gate(s)
        x.copy_from(p, s)
        p[:] = 2
        s.call(print, "ran")
        gate.open()
        """,
        "1",
    )
    assert (done.returncode, done.stdout) == (FOUND, "ran\n")
    assert "1 refill of pinned memory" in done.stderr


def test_warn_warns_once_for_each(child: Child) -> None:
    done = run(child, "import warnings\nwarnings.simplefilter('default')\n" + dedented(WAIT), "warn")
    assert done.returncode == FOUND
    assert done.stderr.count("UnorderedAccessWarning") == 1
    assert "program.py:8: UnorderedAccessWarning: unordered access" in done.stderr
    done = run(child, WAIT, "warn")  # where warnings are errors
    assert done.returncode == FOUND and "unordered access" in done.stderr and "Traceback" not in done.stderr


def dedented(source: str) -> str:
    import textwrap

    return textwrap.dedent(source)


def test_raise_raises_at_the_next_wait(child: Child) -> None:
    for wait in ("b.synchronize()", "b.synchronize(timeout=9)", "hs.synchronize()", "e = b.record(); e.synchronize()"):
        done = run(child, RACE + f"    {wait}\n    print('waited')\n", "raise")
        assert (done.returncode, done.stdout) == (1, ""), wait
        assert "UnorderedAccessError: halstream: 1 unordered access" in done.stderr
        assert done.stderr.count("never waited for") == 1, "told once"


def test_raise_in_the_dialect_that_never_raises(child: Child) -> None:
    done = run(
        child,
        """
        from halstream.acl import rt
        rt.set_device(0)
        one, _ = rt.create_stream()
        two, _ = rt.create_stream()
        block, _ = rt.malloc(256, 0)
        rt.memset_async(block, 256, 1, 256, one)
        rt.memset_async(block, 256, 2, 256, two)
        rt.synchronize_stream(two)
        """,
        "raise",
    )
    assert done.returncode == 1 and "UnorderedAccessError" in done.stderr


def test_raise_reports_at_the_end_what_happened_after_the_last_wait(child: Child) -> None:
    done = run(child, RACE, "raise")
    assert done.returncode == FOUND and done.stderr.startswith("halstream: 1 unordered access")


def test_after_an_error_the_program_can_go_on(child: Child) -> None:
    done = run(
        child,
        RACE
        + """
    try:
        b.synchronize()
    except hs.UnorderedAccessError as exc:
        print(len(exc.report.races))
    b.synchronize()
    print("done")
""",
        "raise",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\ndone\n", "")


def test_an_unknown_value_is_refused_where_the_runtime_is_first_used(child: Child) -> None:
    done = run(child, RACE, "yes")
    assert done.returncode == 1
    assert "HALSTREAM_SANITIZE is 'yes'; give 1, warn, raise, or 0 for nothing" in done.stderr
    assert "in <module>" in done.stderr


def test_suppressions_of_the_environment_count(child: Child, tmp_path: Path) -> None:
    file = tmp_path / "known.txt"
    file.write_text("race:program.py:6\n")
    done = run(child, WAIT, "1", HALSTREAM_SUPPRESSIONS=str(file))
    assert (done.returncode, done.stderr) == (0, "")
    file.write_text("race\n")
    done = run(child, WAIT, "1", HALSTREAM_SUPPRESSIONS=str(file))
    assert done.returncode == 1 and f"{file}:1: there is no colon" in done.stderr


def test_V46_what_rules_for_libraries_suppress_is_said_at_the_end(child: Child) -> None:
    rule = "known.Known('numpy', '1', '99', 'race:program.py', 'a test')"
    source = f"from halstream._checks import known\nknown.KNOWN = ({rule},)\n" + dedented(WAIT)
    done = run(child, source, "1")
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0]) == (0, "halstream: no unordered access (1 suppressed)"), done.stderr
    assert f"1 finding in numpy {np.__version__} suppressed: a test" in lines


def test_a_change_of_the_backend_is_followed(child: Child) -> None:
    done = run(child, "import halstream\nhalstream.use_backend('host')\n" + dedented(WAIT), "1")
    assert done.returncode == FOUND and "1 unordered access" in done.stderr


def test_a_block_inside_keeps_what_it_finds(child: Child) -> None:
    done = run(
        child,
        """
        import halstream as hs
        with hs.sanitize(on="collect") as report:
            a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
            x = hs.empty(4)
            x.fill(1, a)
            x.fill(2, b)
        print(len(report))
        """,
        "1",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_forked_child_reports_nothing(child: Child) -> None:
    done = run(
        child,
        """
        import os, warnings
        import halstream as hs
        warnings.simplefilter("ignore")
        a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        x = hs.empty(4)
        x.fill(1, a)
        x.fill(2, b)
        pid = os.fork()
        if pid == 0:
            raise SystemExit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """,
        "1",
    )
    assert (done.returncode, done.stdout) == (FOUND, "5\n"), "the child ends with its own code"
    assert done.stderr.count("1 unordered access") == 1


def test_threads_that_still_run_at_the_end_do_no_harm(child: Child) -> None:
    done = run(
        child,
        RACE
        + """
    import threading
    held = hs.Stream(non_blocking=True)
    gate = hs.testing.Gate(held)
    threading.Thread(target=held.synchronize, daemon=True).start()
""",
        "1",
    )
    assert done.returncode == FOUND
    assert "1 unordered access" in done.stderr and "were dropped" in done.stderr


def test_other_handlers_of_the_exit_still_run(child: Child) -> None:
    done = run(
        child,
        RACE
        + """
    import atexit, ctypes
    early = ctypes.CDLL(None).printf  # of the C library, whose buffers are flushed at the end
    early(b"buffered by C\\n")
    atexit.register(print, "before")
""",
        "1",
    )
    assert done.returncode == FOUND
    assert sorted(done.stdout.splitlines()) == ["before", "buffered by C"]


def test_what_only_a_query_orders_leaves_the_exit_code(child: Child) -> None:
    done = run(child, RACE.replace("    x.fill(2", "    while not a.query(): pass\n    x.fill(2"), "1")
    assert done.returncode == 0 and "1 pair ordered by a query only" in done.stderr


ENDED = """
import os, signal
import numpy as np
import halstream as hs

a, b, x = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True), hs.empty(16, np.uint8)
x.fill(1, a)
x.fill(2, b)
hs.synchronize()
{before}
os.kill(os.getpid(), signal.SIGTERM)
print("goes on")
"""


@pytest.mark.parametrize("mode", ["1", "warn", "raise"])
def test_what_was_found_is_written_before_sigterm_ends_the_process(child: Child, mode: str) -> None:
    source = ENDED.format(before="") if mode != "raise" else ENDED.format(before="").replace("hs.synchronize()\n", "")
    done = child(source, env={"HALSTREAM_SANITIZE": mode})
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert "x.fill(2, b)" in done.stderr and done.stdout == ""


def test_a_run_of_the_command_that_sigterm_ends_writes_what_was_found(cli: Any, tmp_path: Path) -> None:
    script = tmp_path / "ended.py"
    script.write_text(ENDED.format(before=""))
    done = cli("run", "--sanitize", str(script))
    assert done.returncode == -signal.SIGTERM, done.stderr
    assert "1 unordered access" in done.stderr and done.stdout == ""


def test_a_program_that_handles_sigterm_itself_goes_on(child: Child) -> None:
    source = ENDED.format(before="signal.signal(signal.SIGTERM, lambda *_: print('handled'))")
    done = child(source, env={"HALSTREAM_SANITIZE": "1"})
    assert done.returncode == 66, done.stderr
    assert done.stdout == "handled\ngoes on\n" and done.stderr.count("1 unordered access") == 1
