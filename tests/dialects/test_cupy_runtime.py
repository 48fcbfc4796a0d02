"""cupy.cuda.runtime: streams and events by number, statuses, errors."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Event, Stream, driver, runtime

pytestmark = pytest.mark.dialect("cupy")

LIMIT = 10.0
Error = runtime.CUDARuntimeError
DEAD = 987654321


@pytest.fixture
def stream(backend: str) -> Any:
    handle = runtime.streamCreate()
    yield handle
    runtime.streamDestroy(handle)


@pytest.fixture
def event(backend: str) -> Any:
    handle = runtime.eventCreate()
    yield handle
    runtime.eventDestroy(handle)


class Gate(hs.testing.Gate):
    """A gate on a stream that is known by its handle."""

    def __init__(self, handle: int) -> None:
        super().__init__(hs.Stream.from_handle(handle))


# -- errors -----------------------------------------------------------------


@pytest.mark.row(72)
@pytest.mark.parametrize("cls", [runtime.CUDARuntimeError, driver.CUDADriverError])
def test_errors_survive_pickling(cls: Any) -> None:
    error = cls(1)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls and again.status == 1
    assert again.args == error.args and str(again) == str(error)


def test_errors_of_the_core_survive_pickling(backend: str) -> None:
    with pytest.raises(Error) as info:
        runtime.streamSynchronize(DEAD)
    again = pickle.loads(pickle.dumps(info.value))
    assert isinstance(again, Error) and isinstance(again, hs.InvalidHandleError)
    assert (again.args, again.status, again.detail) == (
        info.value.args,
        400,
        info.value.detail,
    )
    assert info.value.detail


def test_texts() -> None:
    assert repr(Error(1)) == "CUDARuntimeError('cudaErrorInvalidValue: invalid argument')"
    assert str(Error(906)).startswith("cudaErrorStreamCaptureImplicit: ")
    assert str(Error(12345)) == "unrecognized error code: unrecognized error code"
    assert Error.__mro__[-4:] == (RuntimeError, Exception, BaseException, object)
    assert Error.__module__.endswith("cuda.runtime")
    for wrong in (None, "x"):
        with pytest.raises(TypeError, match="an integer is required"):
            Error(wrong)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (0, "CUDA_SUCCESS"),
        (1, "CUDA_ERROR_INVALID_VALUE"),
        (100, "CUDA_ERROR_NO_DEVICE"),
        (400, "CUDA_ERROR_INVALID_HANDLE"),
        (709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"),
        (719, "CUDA_ERROR_LAUNCH_FAILED"),
        (901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    ],
)
def test_driver_names(status: int, name: str) -> None:
    assert str(driver.CUDADriverError(status)).startswith(f"{name}: ")


def test_check_status() -> None:
    runtime.check_status(0)
    driver.check_status(0)
    with pytest.raises(Error, match=r"^cudaErrorNotReady: device not ready$") as info:
        runtime.check_status(600)
    assert info.value.status == 600
    with pytest.raises(driver.CUDADriverError):
        driver.check_status(1)
    with pytest.raises(TypeError, match="an integer is required"):
        runtime.check_status("x")  # type: ignore[arg-type]


# -- streams ----------------------------------------------------------------


def test_create_and_destroy(backend: str) -> None:
    handle = runtime.streamCreate()
    assert isinstance(handle, int) and handle > 2
    runtime.streamSynchronize(handle)
    runtime.streamDestroy(handle)
    assert runtime.streamQuery(handle) == 400
    for number in (handle, 0, 1, 2, DEAD):
        with pytest.raises(Error) as info:
            runtime.streamDestroy(number)
        assert info.value.status == 400


def test_flags_and_priority(backend: str) -> None:
    plain = runtime.streamCreateWithFlags(runtime.streamDefault)
    urgent = runtime.streamCreateWithPriority(runtime.streamNonBlocking, -2)
    assert (runtime.streamGetFlags(plain), runtime.streamGetPriority(plain)) == (0, 0)
    assert (runtime.streamGetFlags(urgent), runtime.streamGetPriority(urgent)) == (1, -2)
    runtime.streamDestroy(plain)
    runtime.streamDestroy(urgent)
    with pytest.raises(Error, match="cudaErrorInvalidValue"):
        runtime.streamCreateWithFlags(8)
    with pytest.raises(OverflowError, match="can't convert negative value to unsigned int"):
        runtime.streamCreateWithFlags(-1)
    with pytest.raises(OverflowError, match="value too large to convert to int"):
        runtime.streamCreateWithPriority(0, 2**40)


def test_stream_is_made_on_the_current_device(backend: str) -> None:
    with Device(1):
        handle = runtime.streamCreate()
    assert hs.Stream.from_handle(handle).device == hs.Device(1)
    runtime.streamDestroy(handle)


def test_query_and_synchronize(stream: int) -> None:
    with Gate(stream):
        assert runtime.streamQuery(stream) == 600
    runtime.streamSynchronize(stream)
    assert runtime.streamQuery(stream) == 0
    assert runtime.streamQuery(0) == runtime.streamQuery(2) == 0


def test_destroying_lets_the_work_finish(backend: str) -> None:
    handle = runtime.streamCreate()
    ran = threading.Event()
    gate = Gate(handle)
    runtime.launchHostFunc(handle, lambda arg: ran.set(), 0)
    runtime.streamDestroy(handle)
    assert not ran.is_set()
    gate.open()
    assert ran.wait(LIMIT)


def test_callbacks(stream: int) -> None:
    seen: list[Any] = []
    runtime.streamAddCallback(stream, lambda *args: seen.append(args), 5)
    runtime.launchHostFunc(stream, lambda *args: seen.append(args), 6)
    runtime.streamSynchronize(stream)
    assert seen == [(stream, 0, 5), (6,)]
    with pytest.raises(TypeError, match="an integer is required"):
        runtime.streamAddCallback(stream, print, "x")  # type: ignore[arg-type]


def test_functions_of_a_stream_object_s_handle(hold: Any) -> None:
    s = Stream()
    gate = hold(s)
    assert runtime.streamQuery(s.ptr) == 600
    gate.open()
    runtime.streamSynchronize(s.ptr)
    assert runtime.streamIsCapturing(s.ptr) is False


@pytest.mark.parametrize("wrong", [None, "x", 1.5, object()])
def test_wrong_types(backend: str, wrong: Any) -> None:
    calls = (
        runtime.streamDestroy,
        runtime.streamSynchronize,
        runtime.streamQuery,
        runtime.streamBeginCapture,
        runtime.streamEndCapture,
        runtime.streamIsCapturing,
        runtime.eventDestroy,
        runtime.eventQuery,
        runtime.eventSynchronize,
        runtime.graphInstantiate,
        lambda value: runtime.eventRecord(value, 0),
        lambda value: runtime.streamWaitEvent(0, value),
        lambda value: runtime.eventElapsedTime(value, 1),
    )
    for call in calls:
        with pytest.raises(TypeError, match="an integer is required"):
            call(wrong)


# -- events -----------------------------------------------------------------


def test_event_by_handle(stream: int, event: int) -> None:
    assert runtime.eventQuery(event) == 0
    with Gate(stream):
        runtime.eventRecord(event, stream)
        assert runtime.eventQuery(event) == 600
        runtime.streamWaitEvent(runtime.streamPerThread, event)
        assert not Stream.ptds.done
    runtime.eventSynchronize(event)
    Stream.ptds.synchronize(timeout=LIMIT)
    assert runtime.eventQuery(event) == 0


def test_event_destroyed(stream: int) -> None:
    handle = runtime.eventCreateWithFlags(runtime.eventDisableTiming)
    with Gate(stream):
        runtime.eventRecord(handle, stream)
        runtime.streamWaitEvent(runtime.streamPerThread, handle)
        runtime.eventDestroy(handle)
        assert not Stream.ptds.done, "a wait keeps its point"
    Stream.ptds.synchronize(timeout=LIMIT)
    assert runtime.eventQuery(handle) == 400
    with pytest.raises(Error, match="cudaErrorInvalidResourceHandle"):
        runtime.eventDestroy(handle)


def test_elapsed_time_by_handle(stream: int, event: int) -> None:
    end = runtime.eventCreateWithFlags(runtime.eventDefault)
    with Gate(stream):
        runtime.eventRecord(event, stream)
        runtime.eventRecord(end, stream)
        with pytest.raises(Error) as info:
            runtime.eventElapsedTime(event, end)
        assert info.value.status == 600
    runtime.eventSynchronize(end)
    assert 0 <= runtime.eventElapsedTime(event, end) < 10000
    untimed = runtime.eventCreateWithFlags(runtime.eventDisableTiming)
    runtime.eventRecord(untimed, stream)
    runtime.eventSynchronize(untimed)
    with pytest.raises(Error) as info:
        runtime.eventElapsedTime(event, untimed)
    assert info.value.status == 400
    runtime.eventDestroy(end)
    runtime.eventDestroy(untimed)


def test_event_objects_by_their_handles(stream: int) -> None:
    event = Event()
    with Gate(stream):
        runtime.eventRecord(event.ptr, stream)
        assert not event.done
    runtime.eventSynchronize(event.ptr)
    assert event.done


def test_event_flags_are_checked(backend: str) -> None:
    for flags in (8, runtime.eventInterprocess):
        with pytest.raises(Error, match="cudaErrorInvalidValue"):
            runtime.eventCreateWithFlags(flags)


def test_a_stream_is_no_event(stream: int, event: int) -> None:
    assert runtime.eventQuery(stream) == 400
    assert runtime.streamQuery(event) == 400


# -- the rest ---------------------------------------------------------------


def test_devices(backend: str) -> None:
    assert runtime.getDeviceCount() == cuda.runtime.getDeviceCount() >= 2
    runtime.setDevice(1)
    assert runtime.getDevice() == 1
    runtime.setDevice(0)
    with pytest.raises(Error, match="cudaErrorInvalidDevice"):
        runtime.setDevice(99)
    runtime.deviceSynchronize()
    assert runtime.deviceCanAccessPeer(0, 1) in (0, 1)
    properties = runtime.getDeviceProperties(0)
    assert isinstance(properties["name"], bytes) and properties["multiProcessorCount"] > 0


def test_constants() -> None:
    assert (runtime.streamLegacy, runtime.streamPerThread) == (1, 2)
    assert runtime.streamCaptureModeRelaxed == runtime.streamCaptureStatusInvalidated == 2
    assert runtime.memcpyDefault == runtime.hostAllocWriteCombined == 4
    assert runtime.memoryTypeManaged == 3
    assert runtime.cudaGraphDebugDotFlagsConditionalNodeParams == 32768
    assert runtime.cudaDevAttrMemoryPoolsSupported == 115
    assert runtime.is_hip is False
