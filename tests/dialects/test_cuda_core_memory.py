"""cuda.core's buffers and memory resources."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from cuda_help import device, numbers
from halstream.cuda import core
from halstream.cuda.core._utils.cuda_utils import CUDAError

pytestmark = pytest.mark.usefixtures("backend")

LIMIT = 10.0
NO_STREAM = (
    "^stream is required and must not be None; pass device.default_stream explicitly to use the default stream.$"
)


@pytest.fixture
def dev() -> core.Device:
    return device()


@pytest.fixture
def stream(dev: core.Device) -> core.Stream:
    return dev.create_stream()


def contents(buffer: core.Buffer, stream: core.Stream) -> list[int]:
    """Return the bytes of a buffer when the work of a stream is done."""
    target = core.LegacyPinnedMemoryResource().allocate(buffer.size)
    buffer.copy_to(target, stream=stream)
    stream.sync()
    return list(np.from_dlpack(target))


class Resource(core.MemoryResource):
    """A program's own resource, which counts what it is asked for."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def allocate(self, size: int, *, stream: Any) -> core.Buffer:
        self.calls.append(("allocate", size, stream))
        return core.Buffer.from_handle(4096, size, self, stream=stream)

    def deallocate(self, ptr: int, size: int, *, stream: Any) -> None:
        self.calls.append(("deallocate", ptr, size, stream))

    @property
    def device_id(self) -> int:
        return 0


def test_buffers_are_made_by_resources_only() -> None:
    with pytest.raises(RuntimeError, match=r"^Buffer objects cannot be instantiated directly\."):
        core.Buffer()
    with pytest.raises(TypeError, match=r"^MemoryResource.allocate must be implemented by subclasses.$"):
        core.MemoryResource().allocate(4, stream=None)


def test_a_buffer_of_a_device(dev: core.Device, stream: core.Stream) -> None:
    buffer = dev.allocate(16, stream=stream)
    assert buffer.size == 16 and buffer.handle % 256 == 0 and buffer.device_id == 0
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, False)
    assert not buffer.is_managed and not buffer.is_mapped and buffer.owner is None
    assert buffer.memory_resource is dev.memory_resource
    assert repr(buffer) == f"<Buffer ptr={buffer.handle:#x} size=16>"
    buffer.close(stream)
    assert buffer.is_closed and (buffer.handle, buffer.size) == (0, 0) and buffer.memory_resource is None
    buffer.close()


def test_a_pinned_buffer(stream: core.Stream) -> None:
    buffer, view = numbers(1, 2)
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (True, True)
    assert np.from_dlpack(buffer).dtype == np.int8
    with pytest.raises(RuntimeError, match=r"^a pinned memory resource is not bound to any GPU$"):
        buffer.device_id  # noqa: B018
    buffer.fill(b"\x05\0\0\0", stream=stream)
    stream.sync()
    assert view.tolist() == [5, 5]


@pytest.mark.row(95)
def test_a_buffer_without_bytes() -> None:
    buffer = core.LegacyPinnedMemoryResource().allocate(0)
    assert (buffer.size, buffer.handle, buffer.is_closed) == (0, 0, False)
    buffer.close()
    assert buffer.is_closed


def test_bytes_go_to_a_device_and_back_in_stream_order(
    dev: core.Device, stream: core.Stream, hold: Callable[[Any], Any]
) -> None:
    source, values = numbers(1, 2, 3)
    target, found = numbers(0, 0, 0)
    buffer = dev.allocate(12, stream=stream)
    stream.sync()
    gate = hold(stream)
    buffer.copy_from(source, stream=stream)
    assert buffer.copy_to(target, stream=stream) is target
    values[:] = [4, 5, 6]  # read when the stream gets there
    assert found.tolist() == [0, 0, 0]
    gate.open()
    stream.sync(timeout=LIMIT)
    assert found.tolist() == [4, 5, 6]
    buffer.close()


def test_a_copy_without_a_target_makes_one(dev: core.Device, stream: core.Stream) -> None:
    buffer = dev.allocate(4, stream=stream)
    buffer.fill(7, stream=stream)
    other = buffer.copy_to(stream=stream)
    assert other.memory_resource is buffer.memory_resource and contents(other, stream) == [7] * 4


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, [3] * 4), (b"\x01\x02", [1, 2, 1, 2]), (np.float32(1), [0, 0, -128, 63]), (True, [1] * 4)],
)
def test_fills(dev: core.Device, stream: core.Stream, value: Any, expected: list[int]) -> None:
    buffer = dev.allocate(4, stream=stream)
    buffer.fill(value, stream=stream)
    assert contents(buffer, stream) == expected


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (256, OverflowError, "value too large to convert to uint8_t"),
        (-1, OverflowError, "can't convert negative value to uint8_t"),
        ("a", TypeError, "a bytes-like object is required, not 'str'"),
        (1.5, TypeError, "a bytes-like object is required, not 'float'"),
        (b"123", ValueError, "^value must be 1, 2, or 4 bytes, got 3$"),
        (b"1234", ValueError, r"^buffer size \(6\) must be divisible by 4$"),
    ],
)
def test_fills_that_are_refused(
    dev: core.Device, stream: core.Stream, value: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        dev.allocate(6, stream=stream).fill(value, stream=stream)


def test_every_call_names_its_stream(dev: core.Device, stream: core.Stream) -> None:
    buffer = dev.allocate(4, stream=stream)
    uses: list[Callable[[Any], object]] = [
        lambda given: dev.allocate(4, stream=given),
        lambda given: buffer.fill(0, stream=given),
        lambda given: buffer.copy_to(stream=given),
        lambda given: buffer.copy_from(buffer, stream=given),
        lambda given: buffer.set_deallocation_stream(given),
    ]
    for use in uses:
        with pytest.raises(TypeError, match=NO_STREAM):
            use(None)
        with pytest.raises(TypeError, match=r"^Stream or GraphBuilder expected, got int$"):
            use(5)
    with pytest.raises(TypeError, match=r"stream"):
        dev.allocate(4)  # type: ignore[call-arg]


def test_copies_that_are_refused(dev: core.Device, stream: core.Stream) -> None:
    buffer, short = dev.allocate(16, stream=stream), dev.allocate(6, stream=stream)
    for use in (lambda: buffer.copy_to(short, stream=stream), lambda: short.copy_from(buffer, stream=stream)):
        with pytest.raises(
            ValueError, match=r"^buffer sizes mismatch between src and dst \(sizes are: src=16, dst=6\)$"
        ):
            use()
    with pytest.raises(
        TypeError, match=r"^Argument 'src' has incorrect type \(expected cuda\.core\.Buffer, got ndarray\)"
    ):
        buffer.copy_from(np.zeros(16, np.uint8), stream=stream)  # type: ignore[arg-type]
    with pytest.raises(hs.NotSupportedError, match=r"options of copies are not built yet"):
        buffer.copy_to(buffer, stream=stream, options=object())


def test_allocations_that_are_refused(dev: core.Device, stream: core.Stream) -> None:
    for size, error in (
        (-1, OverflowError),
        ("a", TypeError),
        (1 << 60, hs.OutOfMemoryError),
        (0, hs.InvalidValueError),
    ):
        with pytest.raises(error):
            dev.allocate(size, stream=stream)  # type: ignore[arg-type]
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_OUT_OF_MEMORY: .*Tried to allocate"):
        dev.allocate(1 << 60, stream=stream)


def test_a_closed_buffer_is_refused(dev: core.Device, stream: core.Stream) -> None:
    buffer, other = dev.allocate(4, stream=stream), dev.allocate(4, stream=stream)
    buffer.close(stream)
    uses: list[Callable[[], object]] = [
        lambda: buffer.fill(0, stream=stream),
        lambda: buffer.copy_to(other, stream=stream),
        lambda: other.copy_from(buffer, stream=stream),
        lambda: buffer.device_id,
        lambda: buffer.is_host_accessible,
        lambda: buffer.set_deallocation_stream(stream),
        buffer.__dlpack__,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=r"^Buffer has been closed$"):
            use()


def test_a_block_closes_its_buffer(dev: core.Device, stream: core.Stream) -> None:
    with dev.allocate(4, stream=stream) as buffer:
        assert not buffer.is_closed
    assert buffer.is_closed


def test_memory_goes_back_in_the_order_of_a_stream(
    dev: core.Device, stream: core.Stream, hold: Callable[[Any], Any]
) -> None:
    """What the next allocation of the stream is given may be the same memory, behind the work on it."""
    buffer = dev.allocate(1 << 20, stream=stream)
    stream.sync()
    start = buffer.handle
    gate = hold(stream)
    buffer.fill(1, stream=stream)
    buffer.close()
    again = dev.allocate(1 << 20, stream=stream)
    assert again.handle == start
    again.fill(2, stream=stream)
    target = core.LegacyPinnedMemoryResource().allocate(1 << 20)
    again.copy_to(target, stream=stream)
    gate.open()
    stream.sync(timeout=LIMIT)
    assert np.unique(np.from_dlpack(target)).tolist() == [2]


def test_a_buffer_outlives_its_stream(dev: core.Device) -> None:
    stream = dev.create_stream()
    buffer = dev.allocate(4, stream=stream)
    stream.close()
    buffer.close()
    assert buffer.is_closed
    other = dev.allocate(4, stream=dev.create_stream())
    other.set_deallocation_stream(dev.create_stream())
    other.close()


def test_memory_of_other_objects(dev: core.Device, stream: core.Stream) -> None:
    memory = np.arange(4, dtype=np.uint8)
    buffer = core.Buffer.from_handle(memory.ctypes.data, 4, owner=memory)
    assert buffer.owner is memory and buffer.device_id == -1 and buffer.memory_resource is None
    assert (buffer.is_device_accessible, buffer.is_host_accessible) == (False, True)
    on_device = dev.allocate(4, stream=stream)
    on_device.copy_from(buffer, stream=stream)
    assert contents(on_device, stream) == [0, 1, 2, 3]
    same = core.Buffer.from_handle(on_device.handle, 4)
    assert same.device_id == 0 and contents(same, stream) == [0, 1, 2, 3]
    buffer.close()
    assert buffer.owner is None
    with pytest.raises(ValueError, match=r"^owner and memory resource cannot be both specified together$"):
        core.Buffer.from_handle(4096, 4, mr=dev.memory_resource, owner=memory)


def test_a_programs_own_resource_is_told(dev: core.Device, stream: core.Stream) -> None:
    resource = Resource()
    dev.memory_resource = resource
    try:
        dev.allocate(16, stream=stream).close()
        other = dev.create_stream()
        dev.allocate(8, stream=stream).close(other)
        dev.allocate(4, stream=stream)
        gc.collect()
    finally:
        dev.memory_resource = core.DeviceMemoryResource(dev)
    assert [call for call in resource.calls if call[0] == "deallocate"] == [
        ("deallocate", 4096, 16, stream),
        ("deallocate", 4096, 8, other),
        ("deallocate", 4096, 4, stream),
    ]
    with pytest.raises(TypeError, match=r"^Argument 'mr' has incorrect type \(expected cuda\.core\.MemoryResource"):
        dev.memory_resource = 5  # type: ignore[assignment]


def test_memory_is_given_back_by_its_address(dev: core.Device, stream: core.Stream) -> None:
    resource = core.DeviceMemoryResource(0)
    before = resource.attributes.used_mem_current
    buffer = resource.allocate(4096, stream=stream)
    assert resource.attributes.used_mem_current >= before + 4096
    resource.deallocate(buffer.handle, 4096, stream=stream)
    stream.sync()
    assert resource.attributes.used_mem_current == before
    with pytest.raises(AttributeError):
        resource.attributes.used_mem_current = 0  # type: ignore[misc]


def test_resources_of_devices(dev: core.Device, stream: core.Stream) -> None:
    plain, own = core.DeviceMemoryResource(dev), core.DeviceMemoryResource(0, {"max_size": 1 << 20})
    assert (plain.is_handle_owned, own.is_handle_owned) == (False, True)
    assert plain.handle == core.DeviceMemoryResource(0).handle != own.handle
    assert plain.device_id == 0 and not plain.is_ipc_enabled and not plain.is_mapped and plain.uuid is None
    buffer = own.allocate(4, stream=stream)
    own.close()
    assert own.is_closed and own.handle == 0
    with pytest.raises(RuntimeError, match=r"^DeviceMemoryResource has been closed$"):
        own.allocate(4, stream=stream)
    buffer.close()
    with pytest.raises(hs.NotSupportedError, match=r"memory of other processes is not built yet"):
        core.DeviceMemoryResource(0, {"ipc_enabled": True})
    with pytest.raises(ValueError, match=r"device_id must be within"):
        core.DeviceMemoryResource(99)


def test_the_stream_and_the_memory_are_of_one_device(stream: core.Stream) -> None:
    other = device(1).create_stream()
    device(0)
    with pytest.raises(CUDAError, match=r"the memory is of device 0 and the stream of device 1"):
        core.DeviceMemoryResource(0).allocate(4, stream=other)


def test_pinned_memory_in_stream_order(dev: core.Device, stream: core.Stream, hold: Callable[[Any], Any]) -> None:
    resource = core.PinnedMemoryResource()
    assert (resource.device_id, resource.numa_id, resource.is_host_accessible) == (-1, -1, True)
    buffer, target = resource.allocate(4, stream=stream), dev.allocate(4, stream=stream)
    np.from_dlpack(buffer)[:] = 3
    gate = hold(stream)
    buffer.copy_to(target, stream=stream)
    buffer.close(stream)
    del buffer
    gc.collect()
    gate.open()
    assert contents(target, stream) == [3] * 4
    resource.close()
    with pytest.raises(RuntimeError, match=r"^PinnedMemoryResource has been closed$"):
        resource.allocate(4, stream=stream)


def test_closing_legacy_pinned_memory_waits_for_the_stream(stream: core.Stream) -> None:
    buffer, _ = numbers(1)
    ran: list[int] = []
    hs.Stream.call(stream, ran.append, 1)
    buffer.close(stream)
    assert ran == [1]


@pytest.mark.row(91)
def test_memory_of_graphs_needs_a_capture(dev: core.Device, stream: core.Stream) -> None:
    resource = core.GraphMemoryResource(dev)
    assert resource is core.GraphMemoryResource(0)
    with pytest.raises(RuntimeError, match=r"cannot perform memory operations on a non-capturing stream.$"):
        resource.allocate(4, stream=stream)


@pytest.mark.needs("host")
def test_numpy_sees_pinned_memory_when_the_work_on_it_is_done(dev: core.Device, stream: core.Stream) -> None:
    buffer, _ = numbers(0)
    hs.Stream.delay(stream, 0.02)
    buffer.fill(9, stream=stream)
    assert np.from_dlpack(buffer).tolist() == [9] * 4
    lent = np.from_dlpack(buffer)
    del lent


@pytest.mark.needs("host")
def test_functions_declare_buffers(dev: core.Device, stream: core.Stream) -> None:
    buffer = dev.allocate(4, stream=stream)
    hs.Stream.call(stream, ctypes.memset, buffer.handle, 4, 4, writes=[buffer])
    assert contents(buffer, stream) == [4] * 4
