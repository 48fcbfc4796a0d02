"""Captures of the look-alike driver: which calls of which threads they forbid."""

from __future__ import annotations

import threading
from ctypes import byref, c_float, c_int, c_uint64
from typing import Any

import pytest
from fakecuda_help import INVALID_VALUE, LEGACY, LIMIT, NOT_READY, Driver

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
UNSUPPORTED, INVALIDATED, UNJOINED, IMPLICIT, CAPTURED_EVENT = 900, 901, 904, 906, 907


def elsewhere(driver: Driver, mode: int, name: str, *args: Any) -> int:
    """Make a call on another thread, whose capture mode was exchanged; return its code."""
    codes: list[int] = []

    def call() -> None:
        driver.context()
        before = c_int(mode)
        assert driver.cuThreadExchangeStreamCaptureMode(byref(before)) == 0 and before.value == GLOBAL
        codes.append(getattr(driver, name)(*args))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(LIMIT)
    return codes[0]


@pytest.mark.parametrize(
    ("capture", "thread", "code"),
    [
        (GLOBAL, GLOBAL, UNSUPPORTED),
        (GLOBAL, THREAD_LOCAL, 0),
        (GLOBAL, RELAXED, 0),
        (THREAD_LOCAL, GLOBAL, 0),
        (RELAXED, GLOBAL, 0),
    ],
)
def test_an_unsafe_call_of_another_thread(cuda: Driver, capture: int, thread: int, code: int) -> None:
    stream, event = cuda.stream(), cuda.event()
    assert cuda.cuStreamBeginCapture_v2(stream, capture) == 0
    assert elsewhere(cuda, thread, "cuEventQuery", event) == code
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == (2 if code else 1)
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == (INVALIDATED if code else 0)
    assert cuda.cuEventQuery(event) == 0


def test_what_is_captured_does_not_run_and_waits_join(cuda: Driver) -> None:
    stream, joined, free = cuda.stream(), cuda.stream(), cuda.stream()
    event, memory = cuda.event(), cuda.memory(16)
    assert cuda.cuStreamBeginCapture_v2(stream, THREAD_LOCAL) == 0
    assert cuda.cuMemsetD8Async(memory, 7, 16, stream) == 0
    assert cuda.cuEventRecord(event, stream) == 0
    mode = c_int(RELAXED)
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    assert cuda.cuStreamQuery(free) in (0, NOT_READY)
    assert cuda.cuStreamWaitEvent(joined, event, 0) == 0
    assert cuda.asked("cuStreamIsCapturing", joined, type=c_int) == 1
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == 0
    assert cuda.asked("cuStreamIsCapturing", joined, type=c_int) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, 16) != b"\7" * 16
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(c_int(GLOBAL))) == 0


@pytest.mark.parametrize("capture", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("thread", [GLOBAL, RELAXED])
@pytest.mark.parametrize(
    ("question", "breaks"), [("cuEventQuery", True), ("cuEventElapsedTime", False), ("cuEventElapsedTime_v2", False)]
)
def test_a_question_about_a_captured_event(
    cuda: Driver, capture: int, thread: int, question: str, breaks: bool
) -> None:
    """A query breaks the capture in each mode, that of the thread included; times do not: measured on a GPU."""
    stream, other, event, memory = cuda.stream(), cuda.stream(), cuda.event(0), cuda.memory(16)

    def ask() -> int:
        if question == "cuEventQuery":
            return int(cuda.cuEventQuery(event))
        return int(getattr(cuda, question)(byref(c_float()), event, event))

    assert cuda.cuStreamBeginCapture_v2(stream, capture) == 0
    assert cuda.cuMemsetD8Async(memory, 1, 16, stream) == 0
    assert cuda.cuEventRecord(event, stream) == 0
    mode = c_int(thread)
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == 1
    assert ask() == CAPTURED_EVENT
    assert cuda.asked("cuStreamIsCapturing", stream, type=c_int) == (2 if breaks else 1)
    if breaks:
        assert cuda.cuStreamWaitEvent(other, event, 0) == INVALID_VALUE
    assert cuda.cuThreadExchangeStreamCaptureMode(byref(mode)) == 0
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == (INVALIDATED if breaks else 0)
    assert ask() == INVALID_VALUE
    assert cuda.cuEventRecord(event, other) == 0
    assert cuda.cuEventSynchronize(event) == 0 and ask() == 0


def test_the_legacy_stream_and_the_context_conflict_with_a_capture(cuda: Driver) -> None:
    blocking, event = cuda.stream(flags=0), cuda.event()
    assert cuda.cuStreamBeginCapture_v2(blocking, RELAXED) == 0
    assert cuda.cuEventRecord(event, LEGACY) == IMPLICIT
    assert cuda.cuStreamEndCapture(blocking, byref(c_uint64())) == INVALIDATED
    stream = cuda.stream()
    assert cuda.cuStreamBeginCapture_v2(stream, RELAXED) == 0
    assert cuda.cuCtxRecordEvent(cuda.context(), event) == UNSUPPORTED
    assert cuda.cuStreamEndCapture(stream, byref(c_uint64())) == INVALIDATED


def test_a_stream_that_is_destroyed_takes_its_capture_with_it(cuda: Driver) -> None:
    graph = c_uint64()
    origin, other, event, memory = cuda.stream(flags=0), cuda.stream(), cuda.event(), cuda.memory(16)
    for destroyed, left in ((origin, other), (cuda.stream(flags=0), other)):
        assert cuda.cuStreamBeginCapture_v2(destroyed, GLOBAL) == 0
        assert cuda.cuEventRecord(event, destroyed) == 0
        assert cuda.cuStreamWaitEvent(left, event, 0) == 0
        assert cuda.cuStreamDestroy_v2(destroyed) == 0
        assert cuda.cuEventQuery(event) == INVALID_VALUE
        assert cuda.cuStreamSynchronize(LEGACY) == 0 and cuda.cuStreamSynchronize(left) == 0
        assert cuda.asked("cuStreamIsCapturing", left, type=c_int) == 0
    for joined, code in ((True, 0), (False, UNJOINED)):
        origin, other = cuda.stream(), cuda.stream()
        assert cuda.cuStreamBeginCapture_v2(origin, GLOBAL) == 0
        assert cuda.cuEventRecord(event, origin) == 0
        assert cuda.cuStreamWaitEvent(other, event, 0) == 0
        assert cuda.cuMemsetD8Async(memory, 7, 16, other) == 0
        if joined:
            assert cuda.cuEventRecord(event, other) == 0
            assert cuda.cuStreamWaitEvent(origin, event, 0) == 0
        assert cuda.cuStreamDestroy_v2(other) == 0
        assert cuda.cuStreamEndCapture(origin, byref(graph)) == code
