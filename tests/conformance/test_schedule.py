"""Deterministic schedules of the host device, through the extension as `halstream.testing` uses it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native
from halstream._records import StepRecord, decode
from halstream.testing import Gate

LIMIT = 10.0


@pytest.fixture(autouse=True)
def on_the_host(backend: str) -> None:
    if backend != "host":
        pytest.skip(f"{backend}: its hardware chooses the order")


@pytest.fixture
def under() -> Iterator[Callable[[str], None]]:
    """Return a function that sets a schedule; the one of real threads comes back after the test."""

    def under(schedule: str) -> None:
        for device in hs.devices():
            device.synchronize(timeout=LIMIT)
        _native.schedule_set(schedule)

    yield under
    for ordinal in range(hs.device_count()):
        _native.device_abort(ordinal)
        hs.Device(ordinal).synchronize(timeout=LIMIT)
    _native.schedule_set("parallel")


Under = Callable[[str], None]


def ran() -> list[str]:
    """Return the operations that ran, in their order."""
    steps: list[StepRecord] = decode(_native.schedule_order())
    return [f"{step['stream']}.{step['operation']}" for step in steps if not step["call"]]


def two_streams(seen: list[str]) -> None:
    """Put a function on each of two streams, twice, and wait for the second stream first."""
    a, b = hs.Stream(), hs.Stream()
    for _ in range(2):
        a.call(seen.append, "a")
        b.call(seen.append, "b")
    b.synchronize(timeout=LIMIT)
    a.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    "schedule", ["fifo", "earliest", "latest", "random 3", "pct 3 3 30", "starve 1", "holds 1.2>2.1"]
)
def test_X1_a_program_with_one_thread_does_the_same_each_time(under: Under, schedule: str) -> None:
    runs = set()
    for _ in range(20):
        seen: list[str] = []
        under(schedule)
        two_streams(seen)
        runs.add((tuple(seen), _native.schedule_order(), _native.schedule_calls(), _native.schedule_fingerprint()))
    assert len(runs) == 1


def test_X1_nothing_moves_between_two_calls(under: Under, settle: Callable[[], None]) -> None:
    under("latest")
    a, seen = hs.Stream(), list[int]()
    a.call(seen.append, 1)
    settle()  # other streams run meanwhile
    assert seen == []
    a.synchronize(timeout=LIMIT)
    assert seen == [1]


def test_X1_a_waiting_thread_continues_when_another_opens_the_gate(under: Under) -> None:
    under("latest")
    a = hs.Stream()
    gate = Gate(a)
    done = threading.Event()

    def wait() -> None:
        a.synchronize(timeout=LIMIT)
        done.set()

    thread = threading.Thread(target=wait)
    thread.start()
    gate.open()
    thread.join(LIMIT)
    assert done.is_set()


@pytest.mark.parametrize(
    ("schedule", "want"),
    [("fifo", "abab"), ("latest", "bbaa"), ("starve 1", "bbaa"), ("starve 2", "aabb"), ("holds 1.1>2.2", "bbaa"),
     ("holds 2.1>1.2", "aabb")],
)  # fmt: skip
def test_X2_each_schedule_has_the_order_of_its_name(under: Under, schedule: str, want: str) -> None:
    seen: list[str] = []
    under(schedule)
    two_streams(seen)
    assert "".join(seen) == want


@pytest.mark.parametrize("kind", ["random {}", "pct {} 3 20"])
def test_X2_seeds_give_different_orders(under: Under, kind: str) -> None:
    orders = set()
    for seed in range(20):
        under(kind.format(seed))
        seen: list[str] = []
        two_streams(seen)
        orders.add(tuple(seen))
    assert len(orders) > 2


def test_X2_earliest_runs_what_is_urgent_first(under: Under) -> None:
    under("earliest")
    held, calm, urgent = hs.Stream(), hs.Stream(), hs.Stream(priority=-5)
    seen: list[str] = []
    with Gate(held):
        event = held.record()
        for name, stream in (("calm", calm), ("urgent", urgent)):
            stream.wait(event)
            stream.call(seen.append, name)
    calm.synchronize(timeout=LIMIT)
    assert seen == ["urgent", "calm"]


@pytest.mark.parametrize("schedule", ["latest", "starve 1", "holds 1.1>9.9"])
def test_X3_work_that_is_polled_repeatedly_runs(under: Under, schedule: str) -> None:
    under(schedule)
    a = hs.Stream()
    a.nop()
    event = a.record()
    asked = 0
    while not event.query():
        asked += 1
        assert asked < 200, "it is starved"
    assert a.query()


def test_X4_time_is_virtual(under: Under) -> None:
    def measure() -> float:
        under("fifo")
        a, start, end = hs.Stream(), hs.Event(timing=True), hs.Event(timing=True)
        a.record(start)
        a.delay(3600)
        a.record(end)
        end.synchronize(timeout=LIMIT * 1000)
        return start.elapsed(end)

    first = measure()
    assert first == pytest.approx(3_600_000, abs=1)
    assert measure() == first, "elapsed times are reproducible"


def test_X5_a_function_that_waits_for_the_host_does_not_hold_it_up(under: Under) -> None:
    under("fifo")
    a, b, free, seen = hs.Stream(), hs.Stream(), threading.Event(), list[int]()
    a.call(free.wait)  # the call returns, though the function cannot end
    b.call(seen.append, 1)
    b.synchronize(timeout=LIMIT)
    assert seen == [1] and not a.query()
    free.set()
    a.synchronize(timeout=LIMIT)


def test_X5_the_device_continues_while_the_program_waits_outside_the_runtime(under: Under) -> None:
    under("latest")
    a, ran = hs.Stream(), threading.Event()
    a.call(ran.set)
    assert ran.wait(LIMIT), "the function never ran"


def test_X6_a_schedule_begins_with_no_work_pending(under: Under) -> None:
    under("latest")
    a = hs.Stream()
    a.nop()
    with pytest.raises(hs.NotReadyError, match=rf"stream {a.index} of device 0 has 1 operation.*synchronize first"):
        _native.schedule_set("fifo")
    assert _native.schedule_get() == "latest"
    a.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    "text", ["", "lifo", "fifo 1", "random", "random x", "pct 1 0 5", "starve 0", "holds 1.1", "holds 1.1>h0"]
)
def test_X6_a_text_that_is_no_schedule_is_refused(under: Under, text: str) -> None:
    with pytest.raises(hs.InvalidValueError, match="is no schedule"):
        _native.schedule_set(text)
    assert _native.schedule_get() == "parallel"


def test_X6_not_from_inside_a_function(unraisable: list[Any]) -> None:
    a = hs.Stream()
    a.call_checked(_native.schedule_set, "fifo")
    with pytest.raises(hs.CallInHostFunctionError):
        a.synchronize(timeout=LIMIT)


def test_X7_memory_that_is_given_out_holds_nothing_of_before(under: Under) -> None:
    under("fifo")
    for _ in range(2):
        stream = hs.Stream()
        given = [hs.empty(8), hs.empty(8, stream=stream), hs.pinned_empty(8)]
        stream.synchronize(timeout=LIMIT)
        for array in given[:2]:
            assert np.isnan(array.numpy(stream)).all()
            array.fill(1, stream)
        assert np.isnan(given[2]).all()
        given[2][:] = 1
        stream.synchronize(timeout=LIMIT)
        del given, array  # the next round gets the same memory
