"""cuda.core's streams, events, memory and launches on the look-alike driver, and beside halstream."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

core = pytest.importorskip("cuda.core")
driver = pytest.importorskip("cuda.bindings.driver")

SCALE = """
extern "C" __global__ void scale_f32(float *x, float a, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}
"""


@pytest.fixture
def held(device: Any, word: ctypes.c_uint32) -> Any:
    """A stream that waits until `word` is 1."""
    stream = device.create_stream(options=core.StreamOptions(nonblocking=True))
    assert driver.cuStreamWaitValue32(stream.handle, ctypes.addressof(word), 1, 0)[0] == 0
    yield stream
    word.value = 1
    stream.sync()
    stream.close()


@pytest.fixture
def hs(device: Any) -> Any:
    """halstream on the driver library that cuda.core uses."""
    import halstream

    assert halstream.backend() == "cuda"
    return halstream


def pinned(*values: float) -> tuple[Any, Any]:
    buffer = core.LegacyPinnedMemoryResource().allocate(4 * len(values))
    array = np.from_dlpack(buffer).view(np.float32)
    array[:] = values
    return buffer, array


def scale(kind: str) -> Any:
    options = core.ProgramOptions(std="c++17", arch="sm_90")
    return core.Program(SCALE, "c++", options).compile(kind).get_kernel("scale_f32")


# -- devices and streams -----------------------------------------------------


def test_devices_have_names_and_limits(device: Any) -> None:
    assert len(core.Device.get_all_devices()) == 2
    assert device.name == "Look-alike 0" and device.arch == "90"
    assert device.properties.max_threads_per_block == 1024
    assert device.properties.multiprocessor_count == 8


def test_streams_have_the_options_that_they_are_made_with(device: Any) -> None:
    stream = device.create_stream(options=core.StreamOptions(nonblocking=False, priority=-3))
    assert (stream.is_nonblocking, stream.priority) == (False, -3)
    assert stream.device.device_id == 0
    stream.close()


def test_a_stream_of_another_device_is_that_devices(device: Any) -> None:
    other = core.Device(1)
    other.set_current()
    stream = other.create_stream()
    device.set_current()
    assert stream.device.device_id == 1
    stream.close()


# -- events ------------------------------------------------------------------


def test_an_event_is_done_when_its_stream_has_reached_it(held: Any, word: ctypes.c_uint32) -> None:
    event = held.record()
    assert not event.is_done
    word.value = 1
    event.sync()
    assert event.is_done


def test_a_stream_waits_for_an_event_and_for_a_stream(held: Any, stream: Any, word: ctypes.c_uint32) -> None:
    stream.wait(held.record())
    stream.wait(held)
    event = stream.record()
    assert not event.is_done
    word.value = 1
    stream.sync()
    assert event.is_done


def test_an_event_that_was_recorded_before_the_hold_is_not_held_up(stream: Any, held: Any) -> None:
    event = stream.record()
    held.wait(event)
    event.sync()
    assert event.is_done


def test_times_between_events(stream: Any) -> None:
    options = core.EventOptions(timing_enabled=True)
    start = stream.record(options=options)
    end = stream.record(options=options)
    end.sync()
    assert 0 <= end - start < 1000


def test_an_event_without_times_says_so(stream: Any) -> None:
    start, end = stream.record(), stream.record()
    end.sync()
    with pytest.raises(RuntimeError, match="timing_enabled"):
        end - start


def test_times_of_an_event_that_is_pending(held: Any) -> None:
    options = core.EventOptions(timing_enabled=True)
    start, end = held.record(options=options), held.record(options=options)
    with pytest.raises(RuntimeError, match="not completed"):
        end - start


# -- memory ------------------------------------------------------------------


def test_bytes_go_to_the_device_and_back(device: Any, stream: Any) -> None:
    source, _ = pinned(1, 2, 3)
    target, found = pinned(0, 0, 0)
    memory = device.allocate(12, stream=stream)
    memory.copy_from(source, stream=stream)
    memory.copy_to(target, stream=stream)
    stream.sync()
    assert found.tolist() == [1, 2, 3]
    memory.close(stream)


def test_a_copy_reads_its_source_when_the_stream_reaches_it(device: Any, held: Any, word: ctypes.c_uint32) -> None:
    source, values = pinned(1)
    target, found = pinned(0)
    memory = core.DeviceMemoryResource(device).allocate(4, stream=device.default_stream)
    device.default_stream.sync()
    memory.copy_from(source, stream=held)
    memory.copy_to(target, stream=held)
    values[:] = 2
    word.value = 1
    held.sync()
    assert found.tolist() == [2]
    memory.close(held)


def test_fills(device: Any, stream: Any) -> None:
    target, found = pinned(0, 0)
    memory = device.allocate(8, stream=stream)
    memory.fill(b"\x00\x00\x80\x3f", stream=stream)
    memory.copy_to(target, stream=stream)
    stream.sync()
    assert found.tolist() == [1, 1]
    memory.close(stream)


def test_memory_beyond_the_device_is_refused(device: Any, stream: Any) -> None:
    with pytest.raises(Exception, match="OUT_OF_MEMORY"):
        device.allocate(1 << 40, stream=stream)


# -- launches ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ptx", "cubin"])
def test_a_kernel_of_nvrtc_is_launched_in_stream_order(
    device: Any, held: Any, word: ctypes.c_uint32, kind: str
) -> None:
    kernel = scale(kind)
    memory, values = pinned(1, 2, 3)
    core.launch(held, core.LaunchConfig(grid=1, block=32), kernel, memory, np.float32(2), np.uint32(2))
    assert values.tolist() == [1, 2, 3]
    word.value = 1
    held.sync()
    assert values.tolist() == [2, 4, 3]


def test_what_a_kernel_says_of_itself(device: Any) -> None:
    kernel = scale("ptx")
    assert kernel.num_arguments == 3
    assert [(info.offset, info.size) for info in kernel.arguments_info] == [(0, 8), (8, 4), (12, 4)]
    assert kernel.attributes.max_threads_per_block == 1024


def test_a_launch_that_cannot_be_is_refused(device: Any, stream: Any) -> None:
    memory, _ = pinned(1)
    with pytest.raises(Exception, match="INVALID_VALUE"):
        core.launch(stream, core.LaunchConfig(grid=1, block=2048), scale("ptx"), memory, np.float32(2), np.uint32(1))


# -- beside halstream --------------------------------------------------------


def test_cuda_core_takes_halstreams_stream(hs: Any, device: Any, held: Any, word: ctypes.c_uint32) -> None:
    stream = hs.Stream()
    theirs = device.create_stream(stream)
    theirs.wait(held.record())
    event = stream.record()
    assert not event.query()
    word.value = 1
    event.synchronize()
    theirs.sync()


def test_halstream_takes_cuda_cores_stream(hs: Any, held: Any, word: ctypes.c_uint32) -> None:
    stream = hs.Stream.from_cuda_stream(held)
    ran: list[int] = []
    stream.call(ran.append, 1)
    event = stream.record()
    assert not event.query() and ran == []
    word.value = 1
    event.synchronize()
    assert ran == [1]


def test_cuda_core_views_halstreams_array(hs: Any, stream: Any) -> None:
    array = hs.empty(3, np.float32)
    array.copy_from(np.array([1, 2, 3], np.float32))
    hs.Device(0).synchronize()  # the copy is not cuda.core's to wait for
    target, found = pinned(0, 0, 0)
    view = core.utils.StridedMemoryView.from_any_interface(array, stream_ptr=-1)
    assert view.is_device_accessible and view.shape == (3,)
    code = driver.cuMemcpyDtoHAsync(target.handle, view.ptr, 12, stream.handle)[0]
    stream.sync()
    assert code == 0 and found.tolist() == [1, 2, 3]


def test_halstream_launches_beside_cuda_core(hs: Any, device: Any, held: Any, word: ctypes.c_uint32) -> None:
    """One event orders a kernel of cuda.core and a function of halstream."""
    memory, values = pinned(1, 2)
    core.launch(held, core.LaunchConfig(grid=1, block=32), scale("ptx"), memory, np.float32(3), np.uint32(2))
    after = hs.Stream()
    after.wait(hs.Stream.from_cuda_stream(held).record())
    seen: list[list[float]] = []
    after.call(lambda: seen.append(values.tolist()))
    assert not after.query()
    word.value = 1
    after.synchronize()
    assert seen == [[3, 6]]
