"""What a program made and did not give up is listed with the lines that made it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._stalls import leaks as _leaks
from halstream.testing import Gate

Child = Callable[..., subprocess.CompletedProcess[str]]

LIMIT = 10.0


@pytest.fixture(autouse=True)
def stopped(backend: str) -> Iterator[None]:
    """Stop the tracking after each test."""
    yield
    _leaks.stop()


def here(word: str) -> str:
    """Return file and line of the (only) line of this file that ends with a comment."""
    with open(__file__) as lines:
        found = [number for number, line in enumerate(lines, 1) if line.rstrip().endswith("# " + word)]
    assert len(found) == 1, word
    return f"{__file__}:{found[0]}"


def one(lines: list[str], *words: str) -> None:
    """Check that exactly one line has all the words."""
    assert len([line for line in lines if all(word in line for word in words)]) == 1, (words, lines)


def test_each_kind_is_listed_with_its_line() -> None:
    since = _leaks.snapshot()
    stream = hs.Stream(1)  # stream
    event = stream.record()  # event
    array = hs.empty(100, dtype=np.float32)  # array
    pinned = hs.pinned_empty(10, dtype=np.float64)  # pinned
    lines = _leaks.report(since)
    one(lines, f"stream {stream.index} of device 1, made at {here('stream')}")
    one(lines, "event ", f"made at {here('event')}")
    one(lines, f"400 bytes of device {hs.current_device().ordinal} ", f"made at {here('array')}")
    one(lines, "80 bytes of pinned memory", f"made at {here('pinned')}")
    assert len(lines) == 4
    del stream, event, array, pinned
    assert _leaks.report(since) == []


@pytest.mark.needs("stalls")
def test_gates_that_are_closed_and_unfinished_work_are_listed() -> None:
    stream = hs.Stream(1)
    since = _leaks.snapshot()
    gate = Gate(stream)  # gate
    stream.nop()
    lines = _leaks.report(since)
    one(lines, "gate ", "is closed", f"made at {here('gate')}")
    one(lines, "unfinished work", f"stream {stream.index} of device 1 has 2 operation(s) pending", here("gate"))
    assert len(lines) == 2
    gate.open()
    stream.synchronize(timeout=LIMIT)
    del gate
    assert _leaks.report(since) == []


def test_closed_and_freed_things_are_not_listed() -> None:
    since = _leaks.snapshot()
    stream = hs.Stream()
    event = stream.record()
    event.close()
    stream.synchronize(timeout=LIMIT)
    stream.close()
    assert _leaks.report(since) == []


def test_what_was_alive_before_is_left_out() -> None:
    _leaks.tracking()
    before = hs.Stream()
    since = _leaks.snapshot()
    after = hs.Stream()
    assert len(_leaks.report(since)) == 1
    both = _leaks.report()
    one(both, f"stream {before.index} ")
    one(both, f"stream {after.index} ")


def test_what_was_made_before_the_tracking_is_not_known() -> None:
    before = hs.Stream()
    assert _leaks.report() == []
    assert not before.closed


def test_reference_cycles_are_collected_first() -> None:
    since = _leaks.snapshot()
    stream = hs.Stream()
    stream.me = stream  # type: ignore[attr-defined]
    array: Any = [hs.empty(10)]
    array.append(array)
    del stream, array
    assert _leaks.report(since) == []


def test_default_streams_and_the_runtimes_own_are_left_out() -> None:
    since = _leaks.snapshot()
    hs.Device(1).default_stream.nop()
    hs.Device(1).per_thread_stream.nop()
    hs.Device(1).synchronize(timeout=LIMIT)
    stream, other = hs.Stream(), hs.Stream()
    # A block that another stream uses when it is freed is kept back by events of the runtime's.
    with Gate(other) as gate:
        with stream:
            array = hs.empty(1000)
        other.call(int, reads=[array])
        del array
        lines = [line for line in _leaks.report(since) if "stream" not in line and "gate" not in line]
        assert lines == []
        gate.open()
    other.synchronize(timeout=LIMIT)


def test_streams_of_contexts_are_listed_until_the_context_ends() -> None:
    from halstream._core import _context

    context = _context.Context(0)
    since = _leaks.snapshot()
    stream = context.stream()
    one(_leaks.report(since), f"stream {stream.index} of device 0", "in test_streams_of_contexts")
    context.destroy()
    assert _leaks.report(since) == []


def test_the_report_at_exit(child: Child) -> None:
    done = child(
        """
        import halstream as hs
        def make():
            return hs.Stream(), hs.empty(10, dtype="u1")
        keep = make()
        gone = hs.Stream()
        del gone
        """,
        env={"HALSTREAM_LEAKS": "1"},
    )
    assert done.returncode == 66, done.stderr
    assert "2 thing(s) left at the end of the program" in done.stderr
    assert "stream 1 of device 0, made at" in done.stderr
    assert "program.py:4 in make" in done.stderr
    assert "10 bytes of device 0" in done.stderr


def test_nothing_is_printed_at_exit_without_leaks(child: Child) -> None:
    source = """
        import halstream as hs
        s = hs.Stream()
        s.synchronize()
        s.close()
        """
    for env in ({"HALSTREAM_LEAKS": "1"}, {}):
        done = child(source, env=env)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_reports_no_leaks(child: Child) -> None:
    done = child(
        """
        import os, sys
        import halstream as hs
        s = hs.Stream()
        pid = os.fork()
        if pid == 0:
            sys.exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        s.close()
        """,
        env={"HALSTREAM_LEAKS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
