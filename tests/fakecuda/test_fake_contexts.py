"""Contexts of the look-alike driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_uint, c_uint64

from fakecuda_help import CONTEXT_IS_DESTROYED, INVALID_CONTEXT, LIMIT, Driver

Start = Callable[..., Driver]


def current(driver: Driver) -> int:
    return int(driver.asked("cuCtxGetCurrent"))


def test_retain_gives_the_same_context_and_makes_none_current(start: Start) -> None:
    """Spec 3.3: the primary context is counted and shared."""
    driver = start()
    first, second = (driver.made("cuDevicePrimaryCtxRetain", 0) for _ in range(2))
    other = driver.made("cuDevicePrimaryCtxRetain", 1)
    assert first == second != other and current(driver) == 0


def test_the_last_release_destroys_the_context(start: Start) -> None:
    """Spec 3.3: everything in it goes; one more release gives 201."""
    driver = start()
    driver.context()
    driver.context()
    driver.event(), driver.stream(), driver.memory(100), driver.pinned(100)
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0 and driver.count("live.contexts") == 1
    assert driver.cuDevicePrimaryCtxRelease_v2(0) == 0
    live = [driver.count(f"live.{what}") for what in ("contexts", "events", "streams", "memory", "pinned")]
    assert live == [0] * 5 and driver.cuDevicePrimaryCtxRelease_v2(0) == INVALID_CONTEXT


def test_state_returns_whether_a_context_exists(start: Start) -> None:
    driver, flags, active = start(), c_uint(), c_int(-1)
    assert driver.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active)) == 0 and active.value == 0
    driver.context()
    assert driver.cuDevicePrimaryCtxGetState(0, byref(flags), byref(active)) == 0 and active.value == 1


def test_the_current_context_is_the_threads(cuda: Driver) -> None:
    """Spec 6.7: a new thread has none, and calls that need one give 201."""
    seen: list[object] = []

    def other() -> None:
        seen.append(current(cuda))
        seen.append(cuda.cuEventCreate(byref(c_uint64()), 0))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(LIMIT)
    assert seen == [0, INVALID_CONTEXT]


def test_set_replaces_the_top_of_the_stack(start: Start) -> None:
    """Spec 3.3: push and pop around it; an empty stack gives 201."""
    driver = start()
    zero, one = (driver.made("cuDevicePrimaryCtxRetain", i) for i in range(2))
    assert driver.cuCtxPushCurrent_v2(zero) == driver.cuCtxPushCurrent_v2(zero) == 0
    assert driver.cuCtxSetCurrent(one) == 0
    assert [driver.asked("cuCtxPopCurrent_v2"), driver.asked("cuCtxPopCurrent_v2")] == [one, zero]
    assert driver.cuCtxPopCurrent_v2(None) == INVALID_CONTEXT


def test_set_null_unbinds(cuda: Driver) -> None:
    assert cuda.cuCtxSetCurrent(0) == 0 and current(cuda) == 0
    assert cuda.cuCtxGetDevice(byref(c_int())) == INVALID_CONTEXT


def test_a_destroyed_context_is_no_current_one(cuda: Driver) -> None:
    """Spec 5: 201 for a dead current context."""
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
    assert cuda.cuCtxSynchronize() in (INVALID_CONTEXT, CONTEXT_IS_DESTROYED)


def test_priorities_are_zero_to_minus_five(cuda: Driver) -> None:
    """Spec 3.3: least is the larger number."""
    least, greatest = c_int(9), c_int(9)
    assert cuda.cuCtxGetStreamPriorityRange(byref(least), byref(greatest)) == 0
    assert (least.value, greatest.value) == (0, -5)


def test_ids_of_contexts_are_never_used_again(start: Start) -> None:
    driver = start()
    first = driver.asked("cuCtxGetId", driver.context())
    driver.cuDevicePrimaryCtxRelease_v2(0)
    assert driver.asked("cuCtxGetId", driver.context()) != first


def test_peer_access_is_for_other_devices_and_once(start: Start) -> None:
    """Spec 3.3: 704 when it is already enabled."""
    driver, can = start(), c_int(-1)
    other = driver.context(1)
    mine = driver.context(0)
    assert driver.cuDeviceCanAccessPeer(byref(can), 0, 1) == 0 and can.value == 1
    assert driver.cuDeviceCanAccessPeer(byref(can), 0, 0) == 0 and can.value == 0
    assert [driver.cuCtxEnablePeerAccess(other, 0), driver.cuCtxEnablePeerAccess(other, 0)] == [0, 704]
    assert driver.cuCtxEnablePeerAccess(mine, 0) == 101


def test_synchronize_waits_for_all_streams_of_the_context(cuda: Driver) -> None:
    word = cuda.hold(cuda.stream())
    assert cuda.waits("cuCtxSynchronize", on=word)


def test_synchronize_leaves_other_contexts_alone(start: Start) -> None:
    driver = start()
    driver.context(1)
    driver.hold(driver.stream())
    driver.context(0)
    assert driver.cuCtxSynchronize() == 0
