"""The knobs of the look-alike driver, one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from ctypes import byref, c_int, c_uint64

import pytest
from fakecuda_help import INVALID_HANDLE, LIMIT, Driver, Word, until
from which_driver import fake_only

Start = Callable[..., Driver]


def test_calls_are_counted_by_name(cuda: Driver) -> None:
    event, before = cuda.event(), cuda.count("total")
    for _ in range(3):
        cuda.cuEventQuery(event)
    assert (cuda.count("cuEventQuery"), cuda.count("total") - before) == (3, 3)
    assert cuda.count("cuNoSuchThing") == 2**64 - 1


def test_calls_that_fail_count_too(cuda: Driver) -> None:
    assert cuda.cuEventQuery(0) == INVALID_HANDLE and cuda.count("cuEventQuery") == 1


def test_live_figures_follow_objects(cuda: Driver) -> None:
    names = ("live.contexts", "live.streams", "live.events")
    stream, event = cuda.stream(), cuda.event()
    assert [cuda.count(name) for name in names] == [1, 1, 1]
    cuda.cuStreamDestroy_v2(stream), cuda.cuEventDestroy_v2(event)
    assert [cuda.count(name) for name in names] == [1, 0, 0]


def test_a_fault_hits_one_call_and_does_none_of_its_work(cuda: Driver) -> None:
    stream, word = cuda.stream(), Word(cuda)
    assert cuda.control("fault cuStreamWriteValue32_v2 2 1") == 0
    codes = [cuda.cuStreamWriteValue32_v2(stream, word.address, i, 0) for i in (1, 2)]
    assert cuda.cuStreamSynchronize(stream) == 0 and (codes, word.value) == ([0, 1], 1)
    assert cuda.cuStreamWriteValue32_v2(stream, word.address, 3, 0) == 0


def test_faults_may_count_from_now_or_hit_every_call(cuda: Driver) -> None:
    event = cuda.event()
    codes = [cuda.cuEventQuery(event)]
    cuda.control("fault cuEventQuery +2 400")
    codes += [cuda.cuEventQuery(event) for _ in range(3)]
    cuda.control("fault cuEventQuery 0 3")
    codes += [cuda.cuEventQuery(event) for _ in range(2)]
    assert codes == [0, 0, 400, 0, 3, 3]
    assert cuda.control("faults off") == 0 and cuda.cuEventQuery(event) == 0


def test_faults_of_the_environment(start: Start) -> None:
    """FAKECUDA_FAULTS: several, counted from the load."""
    driver = start(faults="cuEventCreate:2:2,cuStreamCreate:1:999")
    driver.context()
    assert [driver.cuEventCreate(byref(c_uint64()), 0) for _ in range(3)] == [0, 2, 0]
    assert driver.cuStreamCreate(byref(c_uint64()), 0) == 999


def test_a_sticky_fault_falls_on_the_context_of_the_stream(start: Start) -> None:
    driver = start()
    driver.context(1)
    stream, event = driver.stream(), driver.event()
    driver.context(0)
    driver.control("fault cuStreamQuery 1 700")
    assert driver.cuStreamQuery(stream) == 700
    assert [driver.cuCtxSynchronize(), driver.cuEventQuery(event)] == [0, 700]


def test_slow_calls_take_their_time(start: Start) -> None:
    """FAKECUDA_SLOW, and the same by control."""
    driver = start(slow="cuDriverGetVersion:20000")
    begun = time.monotonic()
    driver.cuDriverGetVersion(byref(c_int()))
    assert time.monotonic() - begun >= 0.02
    assert driver.control("slow cuDriverGetVersion 0") == 0


def test_a_slow_call_holds_up_no_other(cuda: Driver) -> None:
    # On a machine that is busy for long the first one may have ended.
    assert any(_others_end_before_a_slow_call(cuda, microseconds) for microseconds in (300_000, 3_000_000))


def _others_end_before_a_slow_call(cuda: Driver, microseconds: int) -> bool:
    cuda.control(f"slow cuMemAlloc_v2 {microseconds}")
    context, done = cuda.asked("cuCtxGetCurrent"), threading.Event()
    before = cuda.count("cuCtxSetCurrent")

    def slow() -> None:
        cuda.cuCtxSetCurrent(context)
        cuda.cuMemAlloc_v2(byref(c_uint64()), 16)
        done.set()

    thread = threading.Thread(target=slow)
    thread.start()
    until(lambda: cuda.count("cuCtxSetCurrent") > before, "the thread")
    for _ in range(100):
        cuda.cuDriverGetVersion(byref(c_int()))
    early = not done.is_set()
    thread.join(LIMIT)
    assert done.is_set()
    return early


@pytest.mark.parametrize("by", ["environment", "control"])
def test_a_full_queue_blocks_the_next_call(start: Start, by: str) -> None:
    """FAKECUDA_QUEUE: an enqueue waits while so many operations are pending."""
    driver = start(queue=8) if by == "environment" else start()
    driver.context()
    if by == "control":
        driver.control("queue 8")
    stream, word = driver.stream(), Word(driver)
    gate = driver.hold(stream)
    for i in range(7):
        assert driver.cuStreamWriteValue32_v2(stream, word.address, i, 0) == 0
    assert driver.pending(stream)
    assert driver.waits("cuStreamWriteValue32_v2", stream, word.address, 99, 0, on=gate)
    assert driver.cuStreamSynchronize(stream) == 0 and word.value == 99


def test_a_full_queue_blocks_its_own_stream_only(start: Start) -> None:
    driver = start(queue=1)
    driver.context()
    driver.hold(driver.stream())
    word, other = Word(driver), driver.stream()
    assert driver.cuStreamWriteValue32_v2(other, word.address, 1, 0) == 0
    assert driver.cuStreamSynchronize(other) == 0 and word.value == 1


def test_poison_returns_whether_it_found_a_context(start: Start) -> None:
    driver = start()
    assert [driver.control("poison 0 700"), driver.control("poison 7 700")] == [-1, -1]
    driver.context()
    assert [driver.control("poison 0 700"), driver.cuCtxSynchronize()] == [0, 700]


def test_reset_is_a_fresh_load(start: Start) -> None:
    driver = start(devices=1)
    driver.context()
    stream = driver.stream()
    driver.hold(stream)
    driver.control("poison 0 700")
    again = start(devices=3)
    assert again.count("total") == 1  # cuInit
    assert again.asked("cuDeviceGetCount", type=c_int) == 3
    assert again.asked("cuCtxGetCurrent") == 0
    assert again.cuStreamQuery(stream) == INVALID_HANDLE
    again.context()
    assert again.cuCtxSynchronize() == 0


def test_reset_while_a_function_runs_drops_what_is_behind_it(cuda: Driver) -> None:
    started, go, ran = threading.Event(), threading.Event(), []
    stream = cuda.stream()
    cuda.host_function(stream, lambda: (started.set(), go.wait(LIMIT)))
    cuda.host_function(stream, lambda: ran.append(1))
    assert started.wait(LIMIT) and cuda.control("reset") == 0
    go.set()
    assert cuda.cuInit(0) == 0 and ran == []


@pytest.mark.parametrize("command", ["", "nonsense", "fault cuNoSuchThing 1 2", "fault cuInit", "slow cuNone 1"])
def test_unknown_commands_are_refused(cuda: Driver, command: str) -> None:
    assert cuda.control(command) == -1


@fake_only("no driver shows the host its memory")
def test_the_host_sees_the_bytes_only_through_the_control(cuda: Driver) -> None:
    memory = cuda.memory(16)
    assert cuda.lib.fakecuda_host(memory) not in (None, memory)
    assert cuda.lib.fakecuda_host(memory + 16) is None and cuda.lib.fakecuda_host(1234) is None
