"""Streams of the look-alike driver, events, host functions, and calls that wait for the device."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_uint32, c_uint64

import pytest
from fakecuda_help import (
    DISABLE_TIMING,
    INVALID_CONTEXT,
    INVALID_HANDLE,
    LEGACY,
    LIMIT,
    NON_BLOCKING,
    NOT_PERMITTED,
    NOT_READY,
    Driver,
    Word,
    until,
)
from fakecuda_kernels import ptx
from which_driver import fake_only

Start = Callable[..., Driver]
#: Properties of a pool: pinned memory, without handles, on device 0.
POOL = (c_int * 24)(1, 0, 1, 0)


def write(driver: Driver, stream: int, word: Word, value: int = 1) -> None:
    assert driver.cuStreamWriteValue32_v2(stream, word.address, value, 0) == 0


def elapsed(driver: Driver, start: int, end: int) -> tuple[int, float]:
    place = c_float(-1)
    return driver.cuEventElapsedTime(byref(place), start, end), place.value


def blocked(driver: Driver, call: Callable[[], object], name: str) -> threading.Thread:
    """Begin a call on a thread of its own; return when it has begun."""
    context, before = driver.made("cuDevicePrimaryCtxRetain", 0), driver.count(name)
    thread = threading.Thread(target=lambda: (driver.cuCtxSetCurrent(context), call()))
    thread.start()
    until(lambda: driver.count(name) > before, f"a call of {name}")
    return thread


def test_work_of_a_stream_runs_late_and_in_order(cuda: Driver) -> None:
    """Spec 6.2: ordering is within the stream."""
    stream, seen = cuda.stream(), []
    word = cuda.hold(stream)
    for i in range(20):
        assert cuda.host_function(stream, lambda i=i: seen.append(i)) == 0
    assert cuda.pending(stream) and seen == []
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and seen == list(range(20))
    assert cuda.cuStreamQuery(stream) == 0


@pytest.mark.parametrize("how", ["value", "function"])
def test_a_record_that_only_the_legacy_order_holds_up_is_no_work_of_its_stream(cuda: Driver, how: str) -> None:
    """The event is pending, the stream is idle: measured on a GPU."""
    blocking, event, done = cuda.stream(0), cuda.event(), cuda.event()
    assert cuda.cuEventRecord(done, cuda.stream()) == 0
    if how == "value":
        gate = cuda.hold(LEGACY)
    else:
        gate = Word(cuda)
        assert cuda.host_function(LEGACY, lambda: until(lambda: gate.value == 1, "the release")) == 0
    assert cuda.cuStreamWaitEvent(blocking, done, 0) == 0
    assert cuda.cuEventRecord(event, blocking) == 0
    assert [cuda.cuStreamQuery(blocking), cuda.cuStreamSynchronize(blocking)] == [0, 0]
    assert cuda.cuEventQuery(event) == NOT_READY
    assert cuda.cuEventRecord(event, blocking) == 0
    assert [cuda.cuStreamQuery(blocking), cuda.cuEventQuery(event)] == [0, NOT_READY]
    gate.value = 1
    assert cuda.cuStreamSynchronize(LEGACY) == 0 and cuda.cuEventSynchronize(event) == 0


@pytest.mark.parametrize("first", ["work", "record"])
def test_work_that_the_legacy_order_holds_up_is_seen_beside_a_record(cuda: Driver, first: str) -> None:
    blocking, event, word = cuda.stream(0), cuda.event(), Word(cuda)
    gate = cuda.hold(LEGACY)
    if first == "record":
        assert cuda.cuEventRecord(event, blocking) == 0
    write(cuda, blocking, word)
    if first == "work":
        assert cuda.cuEventRecord(event, blocking) == 0
    assert cuda.pending(blocking) and word.value == 0 and cuda.cuEventQuery(event) == NOT_READY
    assert cuda.waits("cuStreamSynchronize", blocking, on=gate)
    assert cuda.cuEventSynchronize(event) == 0 and word.value == 1


def test_a_wait_for_a_record_that_the_legacy_order_holds_up_is_work(cuda: Driver) -> None:
    blocking, free, event = cuda.stream(0), cuda.stream(), cuda.event()
    gate = cuda.hold(LEGACY)
    assert cuda.cuEventRecord(event, blocking) == 0
    assert cuda.cuStreamWaitEvent(free, event, 0) == 0
    assert cuda.pending(free)
    assert cuda.waits("cuStreamSynchronize", free, on=gate)


def test_legacy_work_does_not_wait_for_non_blocking_streams(cuda: Driver) -> None:
    """Spec 6.1: they take no part in either direction."""
    cuda.hold(cuda.stream(NON_BLOCKING))
    word = Word(cuda)
    write(cuda, LEGACY, word)
    assert cuda.cuStreamSynchronize(LEGACY) == 0 and word.value == 1


def test_creating_needs_a_current_context(cuda: Driver) -> None:
    """Spec 6.7."""
    cuda.cuCtxSetCurrent(0)
    assert cuda.cuStreamCreate(byref(c_uint64()), 0) == INVALID_CONTEXT


def test_handles_come_back_but_ids_do_not(cuda: Driver) -> None:
    """Spec 6.10: compare streams by their ids."""
    first = cuda.stream()
    first_id = cuda.asked("cuStreamGetId", first)
    cuda.cuStreamDestroy_v2(first)
    second = cuda.stream()
    assert second == first and cuda.asked("cuStreamGetId", second) != first_id


# -- events ----------------------------------------------------------------------


def test_an_event_and_its_stream_are_of_one_context(start: Start) -> None:
    """Spec 6.3: 400 otherwise; the waiting stream may be of another."""
    driver = start()
    driver.context(1)
    other = driver.stream()
    driver.context(0)
    event, stream, word = driver.event(), driver.stream(), Word(driver)
    assert driver.cuEventRecord(event, other) == INVALID_HANDLE
    gate = driver.hold(stream)
    driver.cuEventRecord(event, stream)
    assert driver.cuStreamWaitEvent(other, event, 0) == 0
    driver.cuStreamWriteValue32_v2(other, word.address, 1, 0)
    assert driver.pending(other)
    gate.value = 1
    assert driver.cuStreamSynchronize(other) == 0 and word.value == 1


def test_elapsed_time_without_timing_is_400(cuda: Driver) -> None:
    """Spec 6.4."""
    stream, one, two = cuda.stream(), cuda.event(0), cuda.event(DISABLE_TIMING)
    cuda.cuEventRecord(one, stream), cuda.cuEventRecord(two, stream)
    assert elapsed(cuda, one, two)[0] == INVALID_HANDLE


def test_creating_and_recording_by_number_need_a_context(cuda: Driver) -> None:
    """Spec 6.7."""
    event = cuda.event()
    cuda.cuCtxSetCurrent(0)
    assert cuda.cuEventCreate(byref(c_uint64()), 0) == INVALID_CONTEXT
    assert cuda.cuEventRecord(event, 0) == INVALID_CONTEXT


# -- host functions --------------------------------------------------------------


def test_functions_of_a_context_run_one_at_a_time(cuda: Driver) -> None:
    """Spec 6.11: on one thread per context in practice."""
    started, go, second = threading.Event(), threading.Event(), []
    one, two = cuda.stream(), cuda.stream()
    cuda.host_function(one, lambda: (started.set(), go.wait(LIMIT)))
    assert started.wait(LIMIT)
    cuda.host_function(two, lambda: second.append(go.is_set()))
    assert cuda.pending(two) and second == []
    go.set()
    assert cuda.cuCtxSynchronize() == 0 and second == [True]


@fake_only("a driver lets some of them pass")
@pytest.mark.parametrize("name", ["cuEventQuery", "cuDriverGetVersion", "cuStreamSynchronize"])
def test_every_call_inside_is_refused(cuda: Driver, name: str) -> None:
    """Spec 6.11: 800; the library counts such calls."""
    stream, event, codes = cuda.stream(), cuda.event(), []
    arguments = {"cuEventQuery": event, "cuDriverGetVersion": byref(c_int()), "cuStreamSynchronize": stream}
    cuda.host_function(stream, lambda: codes.append(getattr(cuda, name)(arguments[name])))
    assert cuda.cuStreamSynchronize(stream) == 0
    assert codes == [NOT_PERMITTED] and cuda.count("illegal") == 1


def test_calls_that_a_driver_refuses_inside(cuda: Driver) -> None:
    """Measured on a GPU: the only ones of those tried."""
    stream, codes = cuda.stream(), []

    def inside() -> None:
        codes.append(cuda.cuCtxGetCurrent(byref(c_uint64())))
        codes.append(cuda.cuMemAlloc_v2(byref(c_uint64()), 16))
        codes.append(cuda.cuMemHostAlloc(byref(c_uint64()), 16, 0))
        codes.append(cuda.cuStreamCreate(byref(c_uint64()), 1))

    cuda.host_function(stream, inside)
    assert cuda.cuStreamSynchronize(stream) == 0
    assert codes == [NOT_PERMITTED] * 4


def test_functions_of_a_poisoned_context_never_run(cuda: Driver) -> None:
    """Spec 6.5: they are skipped after a fault, also when only another one is in front."""
    started, go, ran = threading.Event(), threading.Event(), []
    one, two = cuda.stream(), cuda.stream()
    cuda.host_function(one, lambda: (started.set(), go.wait(LIMIT)))
    assert started.wait(LIMIT)
    for stream in (one, two):
        cuda.host_function(stream, lambda: ran.append(1))
    assert cuda.control("poison 0 700") == 0
    go.set()
    assert cuda.cuStreamSynchronize(two) == 700
    cuda.cuDevicePrimaryCtxRelease_v2(0)
    until(lambda: cuda.count("live.streams") == 0, "the end of the streams")
    assert ran == []


# -- calls that wait -------------------------------------------------------------


def test_a_free_holds_the_lock_of_its_context_until_the_device_is_idle(start: Start) -> None:
    driver = start(context_lock=1)
    driver.context()
    stream, event, memory = driver.stream(), driver.event(), driver.memory(64)
    hold = driver.hold(stream)
    assert driver.cuEventRecord(event, stream) == 0
    free = blocked(driver, lambda: driver.cuMemFree_v2(memory), "cuMemFree_v2")
    assert driver.waits("cuStreamQuery", stream, on=hold)
    free.join(LIMIT)
    assert not free.is_alive() and driver.cuEventQuery(event) == 0


@pytest.mark.parametrize("setting", ["variable", "command"])
def test_a_draining_call_waits_for_the_device(start: Start, setting: str) -> None:
    driver = start(drain="cuEventCreate,cuMemHostAlloc" if setting == "variable" else "")
    driver.context()
    stream = driver.stream()
    hold = driver.hold(stream)
    if setting == "command":
        assert driver.control("drain cuEventCreate 1") == 0 and driver.control("drain cuNothing 1") == -1
    assert driver.cuStreamQuery(stream) == NOT_READY
    assert driver.waits("cuEventCreate", byref(c_uint64()), 0, on=hold)


@pytest.mark.parametrize("early", [False, True])
def test_a_first_launch_drains_unless_the_function_is_loaded(start: Start, early: bool) -> None:
    driver = start(drain="first_launch")
    driver.context()
    stream, held, address = driver.stream(), driver.stream(), c_uint64(driver.memory(64))
    function = driver.function("fill_u32", "u64 u32 u32")
    if early:
        assert driver.cuFuncLoad(function) == 0
    hold = driver.hold(held)
    if not early:
        driver.release_after("cuLaunchKernel", hold)
    assert driver.launch(function, stream, address, c_uint32(1), c_uint32(4)) == 0
    assert driver.cuStreamQuery(held) == (NOT_READY if early else 0)
    assert driver.launch(function, stream, address, c_uint32(1), c_uint32(4)) == 0


def test_the_silicon_profile_sets_all(start: Start) -> None:
    driver = start(profile="silicon", CUDA_DEVICE_MAX_CONNECTIONS=1)
    driver.context()
    stream, other, memory, event = driver.stream(), driver.stream(), driver.memory(64), driver.event()
    hold = driver.hold(stream)
    assert driver.cuEventRecord(event, other) == 0 and driver.cuEventQuery(event) == NOT_READY
    free = blocked(driver, lambda: driver.cuMemFree_v2(memory), "cuMemFree_v2")
    assert driver.waits("cuMemHostAlloc", byref(c_uint64()), 64, 0, on=hold)
    free.join(LIMIT)
    assert not free.is_alive()


@pytest.mark.parametrize("how", ["value", "function"])
@pytest.mark.parametrize(
    "name",
    [
        "cuMemFree_v2",
        "cuMemFreeHost",
        "cuMemHostUnregister",
        "cuModuleLoadData",
        "cuModuleUnload",
        pytest.param("cuMemPoolTrimTo", marks=fake_only("a GPU was seen to wait there and to return at once")),
    ],
)
def test_calls_that_wait_for_held_work(silicon: Driver, name: str, how: str) -> None:
    """Measured on a GPU; the first one frees memory that nothing uses."""
    stream, page = silicon.stream(), ctypes.create_string_buffer(3 << 12)
    memory, pinned = silicon.memory(1 << 20), silicon.pinned(1 << 16)
    module = silicon.made("cuModuleLoadData", ptx("fill_u32", "u64 u32 u32"))
    at = (ctypes.addressof(page) + 4095) // 4096 * 4096
    assert silicon.cuMemHostRegister_v2(at, 4096, 0) == 0
    pool = silicon.made("cuMemPoolCreate", POOL)
    assert silicon.cuMemPoolSetAttribute(pool, 4, byref(c_uint64(2**64 - 1))) == 0  # it keeps what is freed
    pooled = silicon.made("cuMemAllocFromPoolAsync", 64 << 20, pool, stream)
    assert silicon.cuMemFreeAsync(pooled, stream) == 0 and silicon.cuStreamSynchronize(stream) == 0
    arguments = {
        "cuMemFree_v2": (memory,),
        "cuMemFreeHost": (pinned,),
        "cuMemHostUnregister": (at,),
        "cuModuleLoadData": (byref(c_uint64()), ptx("fill_u32", "u64 u32 u32")),
        "cuModuleUnload": (module,),
        "cuMemPoolTrimTo": (pool, 0),
    }
    if how == "value":
        word = silicon.hold(stream)
    else:
        word = Word(silicon)
        assert silicon.host_function(stream, lambda: until(lambda: word.value == 1, "the release")) == 0
    assert silicon.waits(name, *arguments[name], on=word)
    assert silicon.cuStreamSynchronize(stream) == 0


def test_a_pool_with_nothing_to_give_back_does_not_wait(silicon: Driver) -> None:
    """Measured on a GPU."""
    pool, stream = silicon.made("cuMemPoolCreate", POOL), silicon.stream()
    silicon.hold(stream)
    assert silicon.cuMemPoolTrimTo(pool, 0) == 0
    assert silicon.cuStreamQuery(stream) == NOT_READY
