"""Hardware queues that streams of the look-alike driver share, and streams that are moved apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from ctypes import c_uint64
from pathlib import Path

import pytest
from fakecuda_help import LEGACY, NOT_READY, Driver, until

Start = Callable[..., Driver]


def number(driver: Driver, stream: int) -> int:
    return int(driver.asked("cuStreamGetId", stream))


@pytest.fixture
def lines(tmp_path: Path) -> Callable[[], list[str]]:
    """Return a function that gives the lines about streams that were moved apart."""
    path = tmp_path / "apart"
    return lambda: path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def shared(start: Start, tmp_path: Path) -> Driver:
    """A driver with one hardware queue, which moves streams apart."""
    driver = start(connections=1, apart=tmp_path / "apart")
    driver.context()
    return driver


def test_streams_that_share_a_hardware_queue_hold_each_other_up(start: Start) -> None:
    driver = start(connections=2)
    driver.context()  # its default stream has the first queue
    sharing, alone, third = driver.stream(), driver.stream(), driver.stream()
    event = driver.event()
    hold = driver.hold(sharing)
    assert driver.cuEventRecord(event, third) == 0
    assert driver.cuStreamSynchronize(alone) == 0
    assert driver.cuEventQuery(event) == NOT_READY  # of an idle stream
    hold.value = 1
    assert driver.cuEventSynchronize(event) == 0


@pytest.mark.parametrize(("levels", "free"), [(1, True), (0, False)])
def test_priorities_have_queues_of_their_own_or_not(start: Start, levels: int, free: bool) -> None:
    driver = start(connections=1, priority_queues=levels)
    driver.context()
    usual = driver.stream()
    urgent = driver.made("cuStreamCreateWithPriority", 1, -5)
    event, hold = driver.event(), driver.hold(usual)
    assert driver.cuEventRecord(event, urgent) == 0
    if free:
        assert driver.cuEventSynchronize(event) == 0
    else:
        assert driver.waits("cuEventSynchronize", event, on=hold)


# -- streams that are moved apart ------------------------------------------------


def test_a_stream_behind_a_held_one_is_named_and_moved_apart(shared: Driver, lines: Callable[[], list[str]]) -> None:
    held, waiting, event = shared.stream(), shared.stream(), shared.event()
    shared.hold(held)
    assert shared.cuEventRecord(event, waiting) == 0
    assert shared.cuEventSynchronize(event) == 0
    assert lines() == [
        f"stream {number(shared, waiting)} waits behind held stream {number(shared, held)}"
        " in hardware queue 1 of 1 (device 0, priority 0)"
    ]
    assert shared.cuStreamQuery(held) == NOT_READY
    assert shared.cuEventRecord(event, waiting) == 0
    assert shared.cuEventSynchronize(event) == 0
    assert len(lines()) == 1, "it has a queue of its own now"


def test_a_stream_behind_one_that_waits_for_a_held_one_names_both(
    start: Start, tmp_path: Path, lines: Callable[[], list[str]]
) -> None:
    driver = start(connections=2, apart=tmp_path / "apart")
    driver.context()
    held, between, spare, waiting = driver.stream(), driver.stream(), driver.stream(), driver.stream()
    event, later = driver.event(), driver.event()
    driver.hold(held)
    assert driver.cuEventRecord(event, held) == 0
    assert driver.cuStreamWaitEvent(between, event, 0) == 0
    assert driver.cuEventRecord(later, waiting) == 0
    assert driver.cuEventSynchronize(later) == 0
    assert number(driver, spare) not in {int(n) for line in lines() for n in re.findall(r"stream (\d+)", line)}
    assert lines() == [
        f"stream {number(driver, waiting)} waits behind stream {number(driver, between)},"
        f" which waits for held stream {number(driver, held)}, in hardware queue 1 of 2 (device 0, priority 0)"
    ]


def test_no_stream_is_moved_apart_while_another_one_works(shared: Driver, lines: Callable[[], list[str]]) -> None:
    """Work that takes its time is no reason: here a second device is at work while the first one is held."""
    held, waiting, event = shared.stream(), shared.stream(), shared.event()
    shared.hold(held)
    shared.context(1)
    working, worked = shared.stream(), shared.event()
    assert shared.host_function(working, lambda: None) == 0  # the host holds it no more
    assert shared.cuStreamSynchronize(working) == 0
    delay, time = shared.function("halstream_delay", "u64"), c_uint64(1_000_000_000)
    assert shared.launch(delay, working, time) == 0
    assert shared.cuEventRecord(worked, working) == 0
    shared.context(0)
    assert shared.cuEventRecord(event, waiting) == 0
    assert shared.cuEventSynchronize(event) == 0
    assert shared.cuEventQuery(worked) == 0, "it was moved apart while the other device worked"
    assert len(lines()) == 1


def test_streams_that_only_allocate_and_free_stay_behind(shared: Driver, lines: Callable[[], list[str]]) -> None:
    held, freeing, event = shared.stream(), shared.stream(), shared.event()
    shared.hold(held)
    memory = shared.made("cuMemAllocAsync", 64, freeing)
    assert shared.cuMemFreeAsync(memory, freeing) == 0
    until(lambda: shared.count("looks") > 50, "fifty looks in vain")
    assert not lines() and shared.cuStreamQuery(freeing) == NOT_READY
    assert shared.cuEventRecord(event, freeing) == 0  # now it has work that a program may wait for
    assert shared.cuEventSynchronize(event) == 0
    assert len(lines()) == 1


def test_a_stream_whose_work_nobody_waits_for_stays_behind(shared: Driver, lines: Callable[[], list[str]]) -> None:
    held, probe, event = shared.stream(), shared.stream(), shared.event()
    shared.hold(held)
    assert shared.control("optional 1") == 0
    assert shared.cuEventRecord(event, probe) == 0
    assert shared.control("optional 0") == 0
    until(lambda: shared.count("looks") > 50, "fifty looks in vain")
    assert not lines() and shared.cuEventQuery(event) == NOT_READY
    assert shared.cuEventRecord(event, probe) == 0
    assert shared.cuEventSynchronize(event) == 0
    assert len(lines()) == 1


def test_streams_that_were_moved_apart_share_again(shared: Driver, lines: Callable[[], list[str]]) -> None:
    held, waiting, event = shared.stream(), shared.stream(), shared.event()
    hold = shared.hold(held)
    for _ in range(2):
        assert shared.cuEventRecord(event, waiting) == 0
        assert shared.cuEventSynchronize(event) == 0
        assert shared.control("share") == 0
    assert len(lines()) == 2
    hold.value = 1
    assert shared.cuStreamSynchronize(held) == 0
    assert shared.cuEventRecord(event, waiting) == 0
    assert shared.cuEventSynchronize(event) == 0
    assert len(lines()) == 2


def test_without_the_variable_no_stream_is_moved_apart(start: Start, lines: Callable[[], list[str]]) -> None:
    driver = start(connections=1)
    driver.context()
    held, waiting, event = driver.stream(), driver.stream(), driver.event()
    hold = driver.hold(held)
    assert driver.cuEventRecord(event, waiting) == 0
    assert driver.waits("cuEventSynchronize", event, on=hold)
    assert not lines() and driver.cuStreamSynchronize(LEGACY) == 0
