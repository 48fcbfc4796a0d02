"""Host functions of the look-alike driver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_uint64, c_void_p

import pytest
from fakecuda_help import INVALID_VALUE, LIMIT, NOT_PERMITTED, Driver, HostFunction, Word, until
from which_driver import fake_only

Start = Callable[..., Driver]


def test_a_function_gets_its_argument_on_a_thread_of_the_driver(cuda: Driver) -> None:
    """Spec 6.11."""
    seen: list[tuple[int | None, bool]] = []
    here = threading.get_ident()
    function = HostFunction(lambda data: seen.append((data, threading.get_ident() == here)))
    stream = cuda.stream()
    assert cuda.cuLaunchHostFunc(stream, function, c_void_p(1234)) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and seen == [(1234, False)]


def test_a_function_holds_its_stream_and_no_other(cuda: Driver) -> None:
    """Spec 6.11: later work of the stream waits."""
    started, go = threading.Event(), threading.Event()
    stream, other, word = cuda.stream(), cuda.stream(), Word(cuda)
    cuda.host_function(stream, lambda: (started.set(), go.wait(LIMIT)))
    cuda.cuStreamWriteValue32_v2(stream, word.address, 1, 0)
    assert started.wait(LIMIT)
    assert cuda.cuStreamSynchronize(other) == 0
    assert cuda.pending(stream) and word.value == 0
    go.set()
    assert cuda.cuStreamSynchronize(stream) == 0 and word.value == 1


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


def test_functions_of_other_contexts_run_at_the_same_time(start: Start) -> None:
    driver = start()
    started, go, ran = threading.Event(), threading.Event(), threading.Event()
    driver.context(1)
    other = driver.stream()
    driver.context(0)
    driver.host_function(driver.stream(), lambda: (started.set(), go.wait(LIMIT)))
    assert started.wait(LIMIT)
    driver.host_function(other, ran.set)
    assert ran.wait(LIMIT)
    go.set()
    assert driver.cuCtxSynchronize() == 0


def test_host_threads_is_how_many_run_at_once(start: Start) -> None:
    """FAKECUDA_HOST_THREADS."""
    driver = start(host_threads=2)
    driver.context()
    together = threading.Barrier(2, timeout=LIMIT)
    met: list[int] = []
    for _ in range(2):
        driver.host_function(driver.stream(), lambda: met.append(together.wait()))
    assert driver.cuCtxSynchronize() == 0 and sorted(met) == [0, 1]


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


def test_a_function_must_be_given(cuda: Driver) -> None:
    assert cuda.cuLaunchHostFunc(cuda.stream(), None, None) == INVALID_VALUE


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
