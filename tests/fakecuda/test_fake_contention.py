"""What calls of the look-alike driver wait for: a context's lock, and an idle device."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_uint32, c_uint64

import pytest
from fakecuda_help import LIMIT, NOT_READY, Driver, Word, until
from fakecuda_kernels import ptx
from which_driver import fake_only

Start = Callable[..., Driver]
#: Properties of a pool: pinned memory, without handles, on device 0.
POOL = (c_int * 24)(1, 0, 1, 0)


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
