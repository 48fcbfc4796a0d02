"""The tools on a CUDA device: what passes the choke point is seen there, too, and the rest says so."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream.testing import Trace, schedule
from perfetto_help import read

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("cuda-driver")]

PTX = """
.version 6.0
.target sm_50
.address_size 64
.visible .entry fill_u32(.param .u64 x, .param .u32 v, .param .u32 n) { ret; }
"""


def fill_kernel(direction: str = "out") -> hs.Kernel:
    return hs.Kernel(PTX, name="fill_u32", signature=f"{direction} uint32 *x, uint32 v, uint32 n")


def test_a_race_of_two_kernels_is_found_and_the_proposed_line_mends_it() -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, fill = hs.zeros(4, np.uint32), fill_kernel()
    hs.synchronize(0, timeout=LIMIT)
    with hs.sanitize(on="collect") as report:
        a.launch(fill, 1, 4, x, 1, 4)
        b.launch(fill, 1, 4, x, 2, 4)
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
    (found,) = report.races
    assert (found.first.kind, found.second.kind, found.nbytes) == ("launch", "launch", 16)
    assert found.fix == "b.wait(a.record())"
    with hs.sanitize() as clean:
        a.launch(fill, 1, 4, x, 1, 4)
        b.wait(a.record())
        b.launch(fill, 1, 4, x, 2, 4)
        b.synchronize(timeout=LIMIT)
    assert not clean.all


@pytest.mark.parametrize(("direction", "races"), [("in", 0), ("inout", 1)])
def test_a_kernels_declaration_decides(direction: str, races: int) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, out = hs.zeros(4, np.uint32), hs.pinned_empty(4, np.uint32)
    hs.synchronize(0, timeout=LIMIT)
    with hs.sanitize(on="collect") as report:
        x.copy_to(out, a)
        b.launch(fill_kernel(direction), 1, 1, x, 0, 0)
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
    assert len(report.races) == races


def test_a_function_counts_with_what_it_declares() -> None:
    a, b, x = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True), hs.empty(4)
    with hs.sanitize(on="collect") as report:
        x.fill(1.0, a)
        b.call(int, reads=[x])
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)
    assert [f.category for f in report] == ["race"]


def test_a_trace_has_launches_with_their_memory() -> None:
    s, x = hs.Stream(), hs.zeros(4, np.uint32)
    with Trace() as trace:
        s.launch(fill_kernel(), 1, 4, x, 1, 4)
        s.launch(fill_kernel("in"), 1, 4, x, 1, 4)
    s.synchronize(timeout=LIMIT)
    at = ((x.ptr, 16),)
    assert [(o.kind, o.reads, o.writes) for o in trace.operations] == [("launch", (), at), ("launch", at, ())]


def test_a_trace_without_execution_times_shows_enqueue_times_and_reports_it(cli: Any) -> None:
    cli.script(
        """
        import halstream as hs
        s, x = hs.Stream(), hs.empty(100, "u1")
        x.fill(1, s)
        s.record()
        s.synchronize(10)
        """
    )
    done = cli("trace", "prog.py", "-o", "out.pftrace")
    assert (done.returncode, done.stdout) == (0, "")
    assert "shows when they were enqueued" in done.stderr
    shown = [s.name for s in read(cli.folder / "out.pftrace").of("stream")]
    assert shown == ["fill", "record event 1"]


def test_leaks_are_listed_at_exit(child: Callable[..., Any]) -> None:
    done = child(
        """
        from halstream._stalls import leaks
        leaks.at_exit()
        import halstream as hs
        kept = hs.Stream(1), hs.empty(25, "f4"), hs.pinned_empty(10)
        """
    )
    assert done.returncode == 66, done.stderr
    assert "3 thing(s) left" in done.stderr
    assert "stream 1 of device 1" in done.stderr and "100 bytes of device 0" in done.stderr
    assert "80 bytes of pinned memory" in done.stderr


def test_schedules_are_refused_and_the_error_names_the_alternative() -> None:
    with pytest.raises(hs.NotSupportedError, match="HALSTREAM_BACKEND=host"), schedule("fifo"):
        pass
    s = hs.Stream()  # nothing is changed by the attempt
    s.nop()
    s.synchronize(timeout=LIMIT)


def test_a_wait_that_nothing_ends_is_no_stall_but_keeps_its_limit(hold: Hold) -> None:
    # What other libraries do is not known here, so no wait is ever ended for that.
    s = hs.Stream()
    gate = hold(s)
    with pytest.raises(hs.WaitTimeoutError, match="gate"):
        s.synchronize(timeout=0.05)
    gate.open()
    s.synchronize(timeout=LIMIT)


def test_a_gate_that_a_program_leaves_closed_ends_with_it(child: Callable[..., Any]) -> None:
    done = child(
        textwrap.dedent(
            """
            import halstream as hs
            s = hs.Stream()
            gate = hs.testing.Gate(s)
            s.call(print, "ran")
            """
        )
    )
    assert done.returncode == 0
    assert "still pending 2 s after the program ended" in done.stderr
    assert "ran" not in done.stdout
