"""Sticky errors of the look-alike driver: a poisoned context stays so."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_float, c_uint32, c_uint64

import pytest
from fakecuda_help import LEGACY, NOT_READY, Driver, Word, until

Start = Callable[..., Driver]


def test_every_later_call_gives_the_code(cuda: Driver) -> None:
    """Spec 6.5: also those about objects that had nothing to do with it."""
    stream, other, event, memory = cuda.stream(), cuda.stream(), cuda.event(0), cuda.memory(16)
    cuda.cuEventRecord(event, other)
    assert cuda.launch(cuda.function("fault", "u32"), stream, c_uint32(719)) == 0
    until(lambda: cuda.cuStreamQuery(stream) not in (0, NOT_READY), "the fault")
    codes = {
        "cuStreamQuery": cuda.cuStreamQuery(other),
        "cuStreamSynchronize": cuda.cuStreamSynchronize(other),
        "cuEventQuery": cuda.cuEventQuery(event),
        "cuEventSynchronize": cuda.cuEventSynchronize(event),
        "cuEventRecord": cuda.cuEventRecord(event, other),
        "cuEventElapsedTime": cuda.cuEventElapsedTime(byref(c_float()), event, event),
        "cuStreamWaitEvent": cuda.cuStreamWaitEvent(other, event, 0),
        "cuCtxSynchronize": cuda.cuCtxSynchronize(),
        "cuMemAlloc_v2": cuda.cuMemAlloc_v2(byref(c_uint64()), 16),
        "cuMemFree_v2": cuda.cuMemFree_v2(memory),
        "cuMemsetD8Async": cuda.cuMemsetD8Async(memory, 0, 16, LEGACY),
        "cuStreamCreate": cuda.cuStreamCreate(byref(c_uint64()), 0),
        "cuEventCreate": cuda.cuEventCreate(byref(c_uint64()), 0),
        "cuEventDestroy_v2": cuda.cuEventDestroy_v2(event),
    }
    assert {name: code for name, code in codes.items() if code != 719} == {}


def test_the_first_code_stays(cuda: Driver) -> None:
    assert [cuda.control("poison 0 700"), cuda.control("poison 0 719")] == [0, 0]
    assert cuda.cuCtxSynchronize() == 700


def test_pending_work_is_dropped_without_running(cuda: Driver) -> None:
    """Spec 6.5."""
    stream, word, event = cuda.stream(), Word(cuda), cuda.event()
    gate = cuda.hold(stream)
    cuda.cuStreamWriteValue32_v2(stream, word.address, 1, 0)
    cuda.cuEventRecord(event, stream)
    assert cuda.control("poison 0 700") == 0
    gate.value = 1
    assert cuda.cuEventQuery(event) == 700 and word.value == 0


def test_a_waiting_thread_gets_the_code(cuda: Driver) -> None:
    """A synchronize that is under way ends with it."""
    import threading

    stream, codes = cuda.stream(), []
    cuda.hold(stream)
    thread = threading.Thread(target=lambda: codes.append(cuda.cuStreamSynchronize(stream)))
    thread.start()
    until(lambda: cuda.count("cuStreamSynchronize") == 1, "the call")
    assert cuda.control("poison 0 700") == 0
    thread.join(10)
    assert codes == [700]


def test_other_devices_go_on(start: Start) -> None:
    driver = start()
    driver.context(1)
    stream = driver.stream()
    driver.context(0)
    driver.control("poison 0 700")
    assert driver.cuStreamSynchronize(stream) == 0


def test_a_stream_that_waits_for_a_poisoned_context_waits_for_ever(start: Start) -> None:
    """Spec 6.5: the event is never reached, whatever the host is told."""
    driver = start()
    one = driver.context(1)
    other, healthy = driver.stream(), driver.stream()
    driver.context(0)
    stream, event = driver.stream(), driver.event()
    driver.hold(stream)
    driver.cuEventRecord(event, stream)
    assert driver.cuStreamWaitEvent(other, event, 0) == 0
    driver.control("poison 0 700")
    assert driver.cuStreamSynchronize(healthy) == 0
    assert driver.cuCtxSetCurrent(one) == 0 and driver.pending(other)


def test_a_lost_device_stays_lost(cuda: Driver) -> None:
    """Spec 6.5: only a new process helps; the context can be given up."""
    cuda.control("poison 0 700")
    assert cuda.cuDevicePrimaryCtxRelease_v2(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(byref(c_uint64()), 0) == 700


def test_a_poisoned_context_may_still_be_made_current(cuda: Driver) -> None:
    """Which context a thread has is no call on the context."""
    context = cuda.asked("cuCtxGetCurrent")
    cuda.control("poison 0 700")
    assert [cuda.cuCtxSetCurrent(0), cuda.cuCtxSetCurrent(context)] == [0, 0]


@pytest.mark.parametrize(("code", "sticky"), [(700, True), (719, True), (2, False), (400, False), (720, False)])
def test_which_codes_stay(cuda: Driver, code: int, sticky: bool) -> None:
    """Spec 5: the list of sticky codes, here through an asked-for fault."""
    cuda.control(f"fault cuMemAlloc_v2 1 {code}")
    assert cuda.cuMemAlloc_v2(byref(c_uint64()), 16) == code
    assert cuda.cuCtxSynchronize() == (code if sticky else 0)
