"""What calls of the look-alike driver wait for: a context's lock, and an idle device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_uint32, c_uint64

import pytest
from fakecuda_help import LIMIT, NOT_READY, Driver, until

Start = Callable[..., Driver]


def blocked(driver: Driver, call: Callable[[], object], name: str) -> threading.Thread:
    """Begin a call on a thread of its own; return when it has begun."""
    context, before = driver.made("cuDevicePrimaryCtxRetain", 0), driver.count(name)
    thread = threading.Thread(target=lambda: (driver.cuCtxSetCurrent(context), call()))
    thread.start()
    until(lambda: driver.count(name) > before, f"a call of {name}")
    return thread


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


def test_no_call_waits_for_the_lock_of_another_context(start: Start) -> None:
    driver = start(context_lock=1)
    driver.context()
    stream, memory = driver.stream(), driver.memory(64)
    hold = driver.hold(stream)
    driver.context(1)
    other = driver.event()
    free = blocked(driver, lambda: driver.cuMemFree_v2(memory), "cuMemFree_v2")
    assert driver.cuEventQuery(other) == 0 and driver.cuDeviceGetCount(byref(c_int())) == 0
    hold.value = 1
    free.join(LIMIT)


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
