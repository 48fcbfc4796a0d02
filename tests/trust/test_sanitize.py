"""`sanitize`: what it does with what it finds, and what it costs the program."""

from __future__ import annotations

import gc
import os
import subprocess
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native, _records
from halstream._checks.sanitize import UnorderedAccessWarning
from halstream._core import _hostfunc
from halstream._schedules.block import schedule

LIMIT = 10.0


def race() -> None:
    """Write the same bytes on two streams."""
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(4, np.uint8)
    x.fill(1, a)
    x.fill(2, b)
    a.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)


def order() -> None:
    """Do the same with a wait."""
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(4, np.uint8)
    x.fill(1, a)
    b.wait(a.record())
    x.fill(2, b)
    b.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    "spec",
    ["parallel", *(pytest.param(s, marks=pytest.mark.needs("schedules")) for s in ("fifo", "latest", "random 3"))],
)
def test_a_race_raises_at_the_end_whatever_the_schedule(backend: str, spec: str) -> None:
    with schedule(spec) if spec != "parallel" else warnings.catch_warnings():
        threads = spec == "parallel"
        with (
            pytest.raises(hs.UnorderedAccessError, match="1 unordered access") as caught,
            hs.sanitize(threads=threads),
        ):
            race()
        assert len(caught.value.report.races) == 1  # type: ignore[attr-defined]
        with hs.sanitize(threads=threads) as report:
            order()
        assert not report and not report.all and str(report) == "halstream: no unordered access"


def test_it_can_warn_once_for_each(backend: str) -> None:
    with pytest.warns(UnorderedAccessWarning) as caught, hs.sanitize(on="warn") as report:
        for _ in range(3):
            race()
    assert len(caught) == len(report) == 1
    assert report.races[0].pairs == 3 and "seen 3 times" in str(report)
    assert (caught[0].filename, caught[0].lineno) == (__file__, race.__code__.co_firstlineno + 5)


def test_the_same_lines_are_one_finding_for_each_place_where_their_streams_were_made(backend: str) -> None:
    x = hs.empty(16, np.uint8)

    def race_of(one: hs.Stream, two: hs.Stream) -> None:
        x.fill(1, one)
        x.fill(2, two)
        hs.synchronize()

    with hs.sanitize(on="collect") as report:
        main = hs.Stream(non_blocking=True)
        for _ in range(3):
            race_of(main, hs.Stream(non_blocking=True))
        race_of(main, hs.Stream(non_blocking=True))
        race_of(hs.Device(0).default_stream, main)
    assert [one.pairs for one in report.races] == [3, 1, 1]


def test_reports_can_be_collected_and_read_before_the_end(backend: str) -> None:
    with hs.sanitize(on="collect") as report:
        assert not report
        for _ in range(2):
            race()
            assert [f.category for f in report] == ["race"]
    assert len(report) == len(list(report)) == 1
    assert repr(report) == "<halstream.Report: 1 unordered access>"


def test_an_exception_of_the_block_wins_and_takes_the_report_along(backend: str) -> None:
    with pytest.raises(KeyError) as caught, hs.sanitize():
        race()
        raise KeyError("own")
    shown = "\n".join([*map(str, caught.value.args), *getattr(caught.value, "__notes__", [])])
    assert "own" in shown and "1 unordered access" in shown


def test_reports_belong_to_the_innermost_sanitize_block(backend: str) -> None:
    with hs.sanitize(on="collect") as outer:
        with hs.sanitize(on="collect") as inner:
            race()
        order()
        assert len(inner) == 1 and not outer
        race()
    assert len(inner) == len(outer) == 1


def test_a_race_with_what_came_before_an_inner_block_is_found(backend: str) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x = hs.empty(4, np.uint8)
    with hs.sanitize(on="collect") as outer:
        x.fill(1, a)
        with hs.sanitize(on="collect") as inner:
            x.fill(2, b)
    assert len(inner) == 1 and not outer


def test_blocks_of_several_threads_may_overlap(backend: str) -> None:
    begun, ended = threading.Event(), threading.Event()
    reports: list[Any] = []

    def other() -> None:
        with hs.sanitize(on="collect") as report:
            reports.append(report)
            begun.set()
            assert ended.wait(LIMIT)

    thread = threading.Thread(target=other)
    with hs.sanitize(on="collect") as report:
        thread.start()
        assert begun.wait(LIMIT)
        race()
    ended.set()
    thread.join(LIMIT)
    assert not report and len(reports[0]) == 1, "the other one began last"
    race()  # nobody looks any more


def test_it_decorates(backend: str) -> None:
    @hs.sanitize()
    def twice(f: Callable[[], None]) -> str:
        f()
        return "done"

    assert twice(order) == twice(order) == "done"
    with pytest.raises(hs.UnorderedAccessError):
        twice(race)
    assert twice(order) == "done"


def test_one_object_is_one_block(backend: str) -> None:
    once = hs.sanitize()
    with once:
        pass
    with pytest.raises(RuntimeError, match="used already"), once:
        pass


def test_what_it_is_given_is_checked(backend: str) -> None:
    with pytest.raises(hs.InvalidValueError, match="'raise', 'warn' or 'collect', not 'shout'"):
        hs.sanitize(on="shout")
    with pytest.raises(hs.InvalidValueError, match=r"nowhere\.txt' cannot be read: No such file"):
        hs.sanitize(suppressions="nowhere.txt")


def test_a_second_check_is_refused_and_a_stopped_one_has_no_state(backend: str) -> None:
    with hs.sanitize():
        with pytest.raises(hs.InvalidValueError, match="a check is on already"):
            _native.check_start(0)
        operations = _records.decode(_native.check_stats())["operations"]
        hs.Stream().nop()
        assert _records.decode(_native.check_stats())["operations"] > operations
    assert _records.decode(_native.check_stats())["operations"] == 0
    assert _records.decode(_native.check_take(1)) == [] and _native.check_found() == 0
    assert _hostfunc.keep is None


def test_nothing_is_left_of_a_block(backend: str) -> None:
    class Owner(np.ndarray):
        pass

    goroutines, wanted = _native.goroutines(), _native.positions(0)
    array = np.zeros(8).view(Owner)
    gone = weakref.ref(array)
    s = hs.Stream()
    for _ in range(20):
        with hs.sanitize():
            s.call(lambda a: None, array)
            s.synchronize(timeout=LIMIT)
    del array
    s.call(lambda: None)
    s.synchronize(timeout=LIMIT)
    gc.collect()
    assert gone() is None
    assert _native.goroutines() <= goroutines + 4
    assert _native.positions(0) == wanted, "a block goes on wanting to know where calls are made"


def test_arrays_that_come_and_go_are_no_race(backend: str) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    starts: list[int] = []
    ran = threading.Semaphore(0)

    def work(array: Any) -> None:
        array += 1
        ran.release()

    with hs.sanitize():
        for i in range(3000):
            array = np.zeros(64)
            starts.append(array.ctypes.data)
            (a, b)[i % 2].call(work, array, writes=[array])
            # The host learns that it ran, but not from the runtime.
            assert ran.acquire(timeout=LIMIT)
    assert len(set(starts)) < 3000, "no address came again: the test shows nothing"
    a.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    "make",
    [np.zeros, lambda n: np.frombuffer(bytearray(8 * n)), np.ma.zeros],
    ids=["own", "foreign", "subclass"],
)
def test_memory_in_use_is_not_taken_for_other_memory(backend: str, make: Callable[[int], Any]) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    array = make(64)
    others = [np.zeros(8) for _ in range(1500)]
    with hs.sanitize(on="collect") as report:
        a.call(lambda: None, writes=[array[:8]])
        for other in others:  # more than are kept without a look at what can go
            a.call(len, other)
        b.call(lambda: None, writes=[array[4:]])
    assert len(report) == 1
    a.synchronize(timeout=LIMIT)
    b.synchronize(timeout=LIMIT)


def test_many_streams_at_one_place_do_not_hide_another_race(backend: str) -> None:
    streams = [hs.Stream(non_blocking=True) for _ in range(200)]
    x, y = hs.empty(4, np.uint8), hs.empty(4, np.uint8)
    with hs.sanitize(on="collect") as report:
        for s in streams:
            x.fill(1, s)
        y.fill(1, streams[0])
        y.fill(2, streams[1])
    assert sorted(f.pairs for f in report) == [1, 64]
    assert report.dropped > 1000 and "more not kept" in report.summary
    hs.synchronize(timeout=LIMIT)


def test_changing_the_backend_is_followed(child: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = child(
        f"""
        import gc, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import halstream as hs
        from test_sanitize import order, race
        with hs.sanitize(on="collect") as report:
            race()
            gc.collect()
            hs.use_backend("host")
            order()
            race()
        print(len(report.races))
        """
    )
    assert done.stdout == "2\n", done.stderr


# -- what runs ------------------------------------------------------------


@pytest.mark.needs("schedules")
def test_V4_writes_of_functions_are_observed_under_a_schedule(backend: str) -> None:
    def program() -> None:
        a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        x, y = hs.zeros(16, np.uint8, stream=a), hs.zeros(16, np.uint8, stream=a)
        b.wait(a.record())
        a.call(lambda v: v.__setitem__(3, 1), x)
        a.call(lambda v: v.sum(), y)
        b.call(lambda v, w: (v.sum(), w.sum()), x, y)
        a.synchronize(timeout=LIMIT)
        b.synchronize(timeout=LIMIT)

    with schedule("fifo"), hs.sanitize(on="collect") as report:
        program()
    (found,) = report
    assert (found.start - found.block, found.nbytes) == (3, 1)
    assert found.first.observed and not found.second.observed
    assert "writes (observed, not declared)" in found.text
    with schedule("fifo"), hs.sanitize(observe=False):
        program()
    with hs.sanitize(threads=True):
        program()  # there nobody knows who changed it


def test_V3_a_refill_of_pinned_memory_is_found(backend: str, hold: Callable[[Any], Any]) -> None:
    s = hs.Stream(non_blocking=True)
    x, staging = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    staging[:] = 1
    with hs.sanitize(on="collect") as report:
        gate = hold(s)
        x.copy_from(staging, s)
        staging[5] = 2
        gate.open()
        s.synchronize(timeout=LIMIT)
        x.copy_from(staging, s)
        s.synchronize(timeout=LIMIT)
        staging[5] = 3  # nothing is pending any more
    (found,) = report
    assert found.category == "refill" and report.refills == [found] and not report.races
    assert found.first.kind == "copy" and found.nbytes == 16
    assert "pinned memory refilled: 16 bytes" in found.text


def test_V3_memory_that_work_before_the_copy_fills_is_no_refill(backend: str, hold: Callable[[Any], Any]) -> None:
    s, t = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, y, staging = hs.empty(16, np.uint8), hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    staging[:] = 1
    with hs.sanitize():
        gate = hold(s)
        x.fill(7, s)
        x.copy_to(staging, s)
        y.copy_from(staging, s)  # reads what the copy before brings
        gate.open()
        t.wait(s.record())
        y.fill(0, t)
        t.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("how", ["argument", "closure", "other stream"])
def test_V6_a_function_before_the_copy_that_declares_no_writes_is_no_refill(
    backend: str, hold: Callable[[Any], Any], how: str
) -> None:
    s = hs.Stream(non_blocking=True)
    t = hs.Stream(non_blocking=True) if how == "other stream" else s
    x, staging = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    staging[:] = 1

    def refill() -> None:
        staging.fill(7)

    with hs.sanitize(threads=True) as report:
        gate = hold(s)
        if how == "argument":
            s.call(type(staging).fill, staging, 7)
        else:
            s.call(refill)
        if t is not s:
            t.wait(s.record())
        x.copy_from(staging, t)
        gate.open()
        t.synchronize(timeout=LIMIT)
        found = report.by_unknown_accesses
    assert found == report.all and found[0].first.kind == "call" and found[0].second.kind == "copy"
    assert "does not say what it writes" in found[0].text and "writes=[...]" in found[0].text
    with hs.sanitize() as declared:
        gate = hold(s)
        s.call(refill, writes=[staging])
        x.copy_from(staging, s)
        gate.open()
        s.synchronize(timeout=LIMIT)
    assert not declared.all


def test_a_declared_refill_is_a_race_and_reported_once(backend: str, hold: Callable[[Any], Any]) -> None:
    s = hs.Stream(non_blocking=True)
    x, staging = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    staging[:] = 1
    with hs.sanitize(on="collect") as report:
        gate = hold(s)
        x.copy_from(staging, s)
        hs.host_access(staging, "w")
        staging[5] = 2
        gate.open()
        s.synchronize(timeout=LIMIT)
    assert [f.category for f in report] == ["race"]


@pytest.mark.needs("abort")
def test_dropped_copies_are_not_checked(backend: str, hold: Callable[[Any], Any]) -> None:
    s = hs.Stream(non_blocking=True)
    x, staging = hs.empty(16, np.uint8), hs.pinned_empty(16, np.uint8)
    staging[:] = 1
    with hs.sanitize():
        gate = hold(s)
        x.copy_from(staging, s)
        staging[:] = 2
        _native.stream_abort(s._id)
        gate.open()
        s.synchronize(timeout=LIMIT)
