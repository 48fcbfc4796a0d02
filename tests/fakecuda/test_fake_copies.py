"""Copies and fills of the look-alike driver: when they read, when calls return."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_char, c_int, c_size_t, c_uint64, c_void_p, create_string_buffer, string_at

import pytest
from fakecuda_help import INVALID_VALUE, LEGACY, Driver
from which_driver import fake_only

Start = Callable[..., Driver]
STAGED, WAITS = 1 << 20, 16 << 20


def filled(driver: Driver, size: int, value: bytes = b"a") -> int:
    """Pinned memory full of one byte."""
    address = driver.pinned(size)
    ctypes.memset(address, value[0], size)
    return address


def host(buffer: object) -> int:
    return ctypes.addressof(buffer)  # type: ignore[arg-type]


def test_bytes_go_to_the_device_and_back(cuda: Driver) -> None:
    stream, memory, out = cuda.stream(), cuda.memory(5), create_string_buffer(5)
    assert cuda.cuMemcpyHtoDAsync_v2(memory, b"hello", 5, stream) == 0
    assert cuda.cuMemcpyDtoHAsync_v2(out, memory, 5, stream) == 0
    assert out.raw == b"hello"


def test_pinned_memory_is_read_late(cuda: Driver) -> None:
    """Spec 6.2: the caller must keep it unmodified until done."""
    stream, memory, source = cuda.stream(), cuda.memory(4), filled(cuda, 4)
    word = cuda.hold(stream)
    assert cuda.cuMemcpyHtoDAsync_v2(memory, source, 4, stream) == 0
    ctypes.memset(source, ord("b"), 4)
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, 4) == b"bbbb"


def test_pinned_memory_is_written_late(cuda: Driver) -> None:
    """Spec 6.2: the call returns before."""
    stream, memory, target = cuda.stream(), cuda.memory(4), filled(cuda, 4, b"z")
    cuda.cuMemsetD8Async(memory, ord("n"), 4, stream)
    word = cuda.hold(stream)
    assert cuda.cuMemcpyDtoHAsync_v2(target, memory, 4, stream) == 0
    assert string_at(target, 4) == b"zzzz" and cuda.pending(stream)
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and string_at(target, 4) == b"nnnn"


def test_small_pageable_memory_is_taken_at_the_call(cuda: Driver) -> None:
    """Up to 1 MiB it is staged, and the call does not wait: measured on a GPU."""
    stream, memory, source = cuda.stream(), cuda.memory(STAGED), create_string_buffer(b"a" * STAGED, STAGED)
    word = cuda.hold(stream)
    assert cuda.cuMemcpyHtoDAsync_v2(memory, source, STAGED, stream) == 0
    ctypes.memset(source, ord("b"), STAGED)
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, STAGED) == b"a" * STAGED


def test_big_pageable_memory_makes_the_call_wait(cuda: Driver) -> None:
    """From some size on, which no document tells: 16 MiB were measured to wait."""
    stream, memory, source = cuda.stream(), cuda.memory(WAITS), create_string_buffer(WAITS)
    word = cuda.hold(stream)
    assert cuda.waits("cuMemcpyHtoDAsync_v2", memory, source, WAITS, stream, on=word)


def test_a_copy_to_pageable_memory_returns_when_it_is_done(cuda: Driver) -> None:
    """Spec 6.2: it blocks for all earlier work of the stream."""
    stream, memory, out = cuda.stream(), cuda.memory(4), create_string_buffer(4)
    word = cuda.hold(stream)
    cuda.cuMemsetD8Async(memory, ord("x"), 4, stream)
    assert cuda.waits("cuMemcpyDtoHAsync_v2", out, memory, 4, stream, on=word)
    assert out.raw == b"xxxx"


def test_a_copy_on_the_host_is_done_when_the_call_returns(cuda: Driver) -> None:
    """Spec 6.2: fully synchronous, also with pinned memory."""
    stream, source, target = cuda.stream(), filled(cuda, 4), filled(cuda, 4, b"b")
    word = cuda.hold(stream)
    assert cuda.waits("cuMemcpyAsync", target, source, 4, stream, on=word)
    assert string_at(target, 4) == b"aaaa"


def test_a_copy_on_the_device_never_waits(cuda: Driver) -> None:
    """Spec 6.2: not even cuMemcpy."""
    stream, one, two = cuda.stream(), cuda.memory(4), cuda.memory(4)
    cuda.cuMemsetD8Async(one, 7, 4, stream)
    cuda.cuStreamSynchronize(stream)
    word = cuda.hold(LEGACY)
    assert cuda.cuMemcpy(two, one, 4) == 0
    assert cuda.pending(LEGACY)
    word.value = 1
    assert cuda.cuStreamSynchronize(LEGACY) == 0 and cuda.read(two, 4) == b"\7" * 4


def test_a_synchronous_copy_of_pinned_memory_waits(cuda: Driver) -> None:
    """Spec 6.2: it is in the order of the legacy stream."""
    memory, source = cuda.memory(4), filled(cuda, 4)
    word = cuda.hold(cuda.stream(0))
    assert cuda.waits("cuMemcpyHtoD_v2", memory, source, 4, on=word)
    assert cuda.read(memory, 4) == b"aaaa"


def test_a_synchronous_copy_to_the_host_is_complete(cuda: Driver) -> None:
    memory, out = cuda.memory(4), create_string_buffer(4)
    assert cuda.cuMemsetD32Async(memory, 0x64636261, 1, LEGACY) == 0
    assert cuda.cuMemcpyDtoH_v2(out, memory, 4) == 0 and out.raw == b"abcd"


@pytest.mark.parametrize("name", ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2"])
def test_pageable_memory_is_no_device_memory(cuda: Driver, name: str) -> None:
    one, two = create_string_buffer(8), create_string_buffer(8)
    assert getattr(cuda, name)(host(one), host(two), 8, cuda.stream()) == INVALID_VALUE


def test_ranges_must_lie_in_one_allocation(cuda: Driver) -> None:
    stream, memory, freed = cuda.stream(), cuda.memory(600), cuda.memory(16)
    cuda.cuMemFree_v2(freed)
    for address, size in ((memory, 601), (memory + 599, 2), (freed, 1), (0, 1)):
        assert cuda.cuMemsetD8Async(address, 0, size, stream) == INVALID_VALUE
        assert cuda.cuMemcpyHtoDAsync_v2(address, b"x" * size, size, stream) == INVALID_VALUE


def test_no_bytes_are_no_work(cuda: Driver) -> None:
    stream = cuda.stream()
    cuda.hold(stream)
    assert cuda.cuMemcpyDtoHAsync_v2(None, 0, 0, stream) == 0


@pytest.mark.parametrize(("name", "width", "value"), [("D8", 1, 0x12), ("D16", 2, 0x1234), ("D32", 4, 0x12345678)])
def test_fills_count_elements_and_want_them_aligned(cuda: Driver, name: str, width: int, value: int) -> None:
    stream, memory = cuda.stream(), cuda.memory(64)
    function = getattr(cuda, f"cuMemset{name}Async")
    assert function(memory, value, 3, stream) == 0
    assert width == 1 or function(memory + 1, value, 3, stream) == INVALID_VALUE
    assert cuda.cuStreamSynchronize(stream) == 0
    assert cuda.read(memory, 3 * width) == value.to_bytes(width, "little") * 3


def test_a_fill_of_pinned_memory_is_done_in_stream_order(cuda: Driver) -> None:
    """Measured on a GPU, although the document says that the call waits."""
    stream, memory = cuda.stream(), filled(cuda, 4)
    before = string_at(memory, 4)
    word = cuda.hold(stream)
    assert cuda.cuMemsetD8Async(memory, ord("q"), 4, stream) == 0
    assert cuda.pending(stream) and string_at(memory, 4) == before
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0
    assert string_at(memory, 4) == b"qqqq"


def test_a_fill_of_pageable_memory_is_refused(cuda: Driver) -> None:
    assert cuda.cuMemsetD8Async(host(create_string_buffer(8)), 0, 8, cuda.stream()) == INVALID_VALUE


def test_copies_between_devices(start: Start) -> None:
    """Spec 3.7: without peer access, too."""
    driver = start()
    one = driver.context(1)
    there = driver.memory(4)
    zero = driver.context(0)
    here, stream = driver.memory(4), driver.stream()
    driver.cuMemsetD8Async(here, ord("p"), 4, stream)
    assert driver.cuMemcpyPeerAsync(there, one, here, zero, 4, stream) == 0
    assert driver.cuStreamSynchronize(stream) == 0 and driver.read(there, 4) == b"pppp"
    assert driver.cuMemcpyPeerAsync(there, zero, here, zero, 4, stream) == INVALID_VALUE


class Plane(ctypes.Structure):
    """CUDA_MEMCPY2D; spec section 2."""

    _fields_ = [
        *((f"{side}_{name}", kind) for side in ("src", "dst") for name, kind in (
            ("x", c_size_t), ("y", c_size_t), ("type", c_int), ("host", c_void_p), ("device", c_uint64),
            ("array", c_void_p), ("pitch", c_size_t),
        )),
        ("width", c_size_t),
        ("height", c_size_t),
    ]  # fmt: skip


def test_planes(cuda: Driver) -> None:
    """Spec 2: offsets in bytes and rows, a pitch on either side."""
    stream, memory = cuda.stream(), cuda.memory(64)
    source, out = create_string_buffer(b"..ab....cd..", 12), (c_char * 4)()
    assert ctypes.sizeof(Plane) == 128
    into = Plane(src_x=2, src_type=1, src_host=host(source), src_pitch=6, width=2, height=2)
    into.dst_type, into.dst_device, into.dst_pitch = 2, memory, 16
    back = Plane(src_type=2, src_device=memory, src_pitch=16, width=2, height=2)
    back.dst_type, back.dst_host, back.dst_pitch = 1, host(out), 2
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(into), stream) == 0
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(back), stream) == 0
    assert out.raw == b"abcd"
    back.src_pitch = 1
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(back), stream) == INVALID_VALUE


@fake_only("a driver may take rows that are further apart than it promises")
def test_rows_are_at_most_two_gib_apart(cuda: Driver) -> None:
    """CU_DEVICE_ATTRIBUTE_MAX_PITCH."""
    memory, most = cuda.memory(64), 2**31 - 1
    plane = Plane(src_type=2, src_device=memory, src_pitch=most, dst_type=2, dst_device=memory + 32, dst_pitch=4)
    plane.width, plane.height = 4, 1
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(plane), cuda.stream()) == 0
    plane.src_pitch = most + 1
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(plane), cuda.stream()) == INVALID_VALUE


class PeerSide(ctypes.Structure):
    """Half of CUDA_MEMCPY3D_PEER."""

    _fields_ = [
        ("x", c_size_t), ("y", c_size_t), ("z", c_size_t), ("level", c_size_t), ("type", c_int), ("host", c_void_p),
        ("device", c_uint64), ("array", c_void_p), ("context", c_uint64), ("pitch", c_size_t), ("height", c_size_t),
    ]  # fmt: skip


class PeerCopy(ctypes.Structure):
    """CUDA_MEMCPY3D_PEER."""

    _fields_ = [
        ("src", PeerSide), ("dst", PeerSide), ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
    ]  # fmt: skip


def test_rows_between_devices(start: Start) -> None:
    """cuMemcpy3DPeerAsync: without peer access, and each side belongs to its context's device."""
    driver = start()
    one = driver.context(1)
    there = driver.memory(32)
    zero = driver.context(0)
    here, stream = driver.memory(32), driver.stream()
    assert driver.cuMemsetD8Async(here, ord("."), 32, stream) == 0
    assert driver.cuMemsetD8Async(here + 8, ord("a"), 2, stream) == 0
    assert driver.cuMemsetD8Async(here + 16, ord("b"), 2, stream) == 0
    copy = PeerCopy(width=2, height=2, depth=1)
    copy.src.type = copy.dst.type = 2
    copy.src.device, copy.src.context, copy.src.pitch, copy.src.y = here, zero, 8, 1
    copy.dst.device, copy.dst.context, copy.dst.pitch = there, one, 2
    assert driver.cuMemcpy3DPeerAsync(ctypes.byref(copy), stream) == 0
    assert driver.cuStreamSynchronize(stream) == 0 and driver.read(there, 4) == b"aabb"
    copy.dst.context = zero
    assert driver.cuMemcpy3DPeerAsync(ctypes.byref(copy), stream) == INVALID_VALUE
