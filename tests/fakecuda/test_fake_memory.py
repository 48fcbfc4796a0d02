"""Memory of the look-alike driver, pools, copies and fills, and values in memory."""

from __future__ import annotations

import ctypes
import mmap
import signal
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p, create_string_buffer, string_at
from pathlib import Path

import pytest
from fakecuda_help import (
    INVALID_CONTEXT,
    INVALID_VALUE,
    NOT_SUPPORTED,
    Driver,
    Word,
    until,
)
from which_driver import fake_only

Start = Callable[..., Driver]
MB = 1 << 20
THRESHOLD, RESERVED, USED = 4, 5, 7
STAGED, WAITS = 1 << 20, 16 << 20
WAIT_32, WRITE_32, WAIT_64, WRITE_64, BARRIER = 1, 2, 4, 5, 6


def attributes(driver: Driver, address: int) -> dict[str, int]:
    kinds = {"context": (1, c_uint64), "type": (2, c_uint), "ordinal": (9, c_int), "managed": (8, ctypes.c_bool)}
    kinds |= {"start": (11, c_uint64), "size": (12, c_uint64), "id": (7, c_uint64), "host": (4, c_uint64)}
    numbers = (c_int * len(kinds))(*[number for number, _ in kinds.values()])
    places = {name: kind() for name, (_, kind) in kinds.items()}
    data = (c_void_p * len(kinds))(*[ctypes.addressof(place) for place in places.values()])
    assert driver.cuPointerGetAttributes(len(kinds), numbers, data, address) == 0
    return {name: int(place.value) for name, place in places.items()}


def figure(driver: Driver, pool: int, attribute: int) -> int:
    place = c_uint64()
    assert driver.cuMemPoolGetAttribute(pool, attribute, byref(place)) == 0
    return place.value


def pool_of(driver: Driver) -> int:
    return driver.made("cuDeviceGetDefaultMemPool", 0)


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("type", c_int), ("device", c_int), ("flags", c_int)]


def filled(driver: Driver, size: int, value: bytes = b"a") -> int:
    """Pinned memory full of one byte."""
    address = driver.pinned(size)
    ctypes.memset(address, value[0], size)
    return address


def host(buffer: object) -> int:
    return ctypes.addressof(buffer)  # type: ignore[arg-type]


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


class Op(ctypes.Structure):
    """CUstreamBatchMemOpParams; spec section 2."""

    _fields_ = [
        ("operation", c_int),
        ("address", c_uint64),
        ("value", c_uint64),
        ("flags", c_uint32),
        ("alias", c_uint64),
        ("unused", c_uint64),
    ]


def test_the_host_cannot_touch_device_memory(library: Path) -> None:
    source = (
        f"import ctypes\ncuda = ctypes.CDLL({str(library)!r})\nQ = ctypes.c_uint64\nat = Q()\n"
        "cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(at), 0); cuda.cuCtxSetCurrent(at)\n"
        "assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4096)) == 0\n"
        "ctypes.string_at(at.value, 1)"
    )
    done = subprocess.run([sys.executable, "-c", source], timeout=20)
    assert done.returncode == -signal.SIGSEGV


@fake_only("no driver shows the host its memory")
def test_the_host_sees_the_bytes_only_through_the_control(cuda: Driver) -> None:
    memory = cuda.memory(16)
    assert cuda.lib.fakecuda_host(memory) not in (None, memory)
    assert cuda.lib.fakecuda_host(memory + 16) is None and cuda.lib.fakecuda_host(1234) is None


@fake_only("a driver may give memory of zeros")
def test_new_memory_is_not_zero(cuda: Driver) -> None:
    assert cuda.read(cuda.memory(1), 1) != b"\0"


def test_no_bytes_are_an_invalid_value_on_the_device_only(cuda: Driver) -> None:
    """Measured on a GPU."""
    place = c_uint64()
    assert cuda.cuMemAlloc_v2(byref(place), 0) == INVALID_VALUE
    assert cuda.cuMemHostAlloc(byref(place), 0, 0) == 0


def test_allocating_needs_a_context(cuda: Driver) -> None:
    cuda.cuCtxSetCurrent(0)
    assert cuda.cuMemAlloc_v2(byref(c_uint64()), 16) == INVALID_CONTEXT


def test_free_waits_for_the_work_of_the_context(cuda: Driver) -> None:
    """Spec 6.10: cuMemFree synchronises implicitly."""
    memory = cuda.memory(16)
    word = cuda.hold(cuda.stream())
    assert cuda.waits("cuMemFree_v2", memory, on=word)


def test_freeing_pinned_memory_waits(cuda: Driver) -> None:
    memory = cuda.pinned(16)
    word = cuda.hold(cuda.stream())
    assert cuda.waits("cuMemFreeHost", memory, on=word)


def test_only_what_was_allocated_can_be_freed(cuda: Driver) -> None:
    memory, pinned = cuda.memory(1024), cuda.pinned(16)
    assert cuda.cuMemFree_v2(memory + 256) == cuda.cuMemFree_v2(pinned) == INVALID_VALUE
    assert [cuda.cuMemFree_v2(memory), cuda.cuMemFree_v2(memory)] == [0, INVALID_VALUE]
    assert [cuda.cuMemFreeHost(pinned), cuda.cuMemFreeHost(pinned)] == [0, INVALID_VALUE]


def test_live_figures(cuda: Driver) -> None:
    page = mmap.mmap(-1, 4096)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page))
    memory, pinned = cuda.memory(1000), cuda.pinned(16)
    assert cuda.cuMemHostRegister_v2(at, 4096, 0) == 0
    names = ("live.memory", "live.bytes", "live.pinned", "live.registered")
    assert [cuda.count(name) for name in names] == [1, 1000, 1, 1]
    assert [cuda.cuMemFree_v2(memory), cuda.cuMemFreeHost(pinned), cuda.cuMemHostUnregister(at)] == [0] * 3
    assert [cuda.count(name) for name in names] == [0] * 4


def test_unknown_memory_has_no_attributes(cuda: Driver) -> None:
    """The plural form fills in what no memory of a device has (measured on a GPU), the other one gives 1."""
    plain = c_int()
    freed = cuda.memory(16)
    cuda.cuMemFree_v2(freed)
    for address in (ctypes.addressof(plain), freed, 0):
        seen = attributes(cuda, address)
        assert seen.pop("ordinal") == -2 and seen.pop("host") in (0, address)
        assert set(seen.values()) == {0}
        assert cuda.cuPointerGetAttribute(byref(c_uint64()), 2, address) == INVALID_VALUE


# -- pools -----------------------------------------------------------------------


def test_a_free_takes_effect_in_stream_order_and_does_not_wait(cuda: Driver) -> None:
    """Spec 3.7: earlier work of the stream still has the memory."""
    stream = cuda.stream()
    memory = cuda.made("cuMemAllocAsync", 100, stream)
    word = cuda.hold(stream)
    cuda.cuMemsetD8Async(memory, 5, 100, stream)
    assert cuda.cuMemFreeAsync(memory, stream) == 0
    assert cuda.pending(stream) and cuda.count("live.memory") == 1
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.count("live.memory") == 0


def test_a_stream_gets_back_at_once_what_it_gave(cuda: Driver) -> None:
    """Reuse in stream order shows who relies on more; another stream gets other memory."""
    stream, other = cuda.stream(), cuda.stream()
    memory = cuda.made("cuMemAllocAsync", 100, stream)
    word = cuda.hold(stream)
    cuda.cuMemFreeAsync(memory, stream)
    assert cuda.made("cuMemAllocAsync", 100, other) != memory
    assert cuda.made("cuMemAllocAsync", 100, stream) == memory
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.count("live.memory") == 2


def test_memory_is_freed_once(cuda: Driver) -> None:
    stream = cuda.stream()
    memory = cuda.made("cuMemAllocAsync", 100, stream)
    assert cuda.cuMemFreeAsync(memory + 1, stream) == INVALID_VALUE
    assert [cuda.cuMemFreeAsync(memory, stream), cuda.cuMemFreeAsync(memory, stream)] == [0, INVALID_VALUE]


def test_a_pool_gives_back_at_a_synchronize(cuda: Driver) -> None:
    """Spec 6.13: the threshold is 0 at first."""
    stream, pool = cuda.stream(), pool_of(cuda)
    cuda.cuMemFreeAsync(cuda.made("cuMemAllocAsync", MB, stream), stream)
    until(lambda: figure(cuda, pool, USED) == 0, "the free")
    assert figure(cuda, pool, RESERVED) == MB
    assert cuda.cuStreamSynchronize(stream) == 0 and figure(cuda, pool, RESERVED) == 0


def test_pools_0_is_a_device_without_them(start: Start) -> None:
    """FAKECUDA_POOLS."""
    driver, place = start(pools=0), c_int(-1)
    driver.context()
    assert driver.cuMemAllocAsync(byref(c_uint64()), 16, driver.stream()) == NOT_SUPPORTED
    assert driver.cuDeviceGetDefaultMemPool(byref(c_uint64()), 0) == NOT_SUPPORTED
    assert driver.cuDeviceGetAttribute(byref(place), 115, 0) == 0 and place.value == 0


def test_kernels_of_another_device_use_a_pool_if_it_lets_them(start: Start) -> None:
    """cuMemPoolSetAccess: peer access between contexts is not enough."""
    driver, flags = start(), c_int(-1)
    other = driver.context(1)
    driver.context(0)
    pool = pool_of(driver)
    memory, stream = driver.made("cuMemAllocAsync", 16, driver.stream()), driver.stream()
    assert driver.cuStreamSynchronize(stream) == 0
    assert driver.cuMemPoolGetAccess(byref(flags), pool, byref(Access(1, 0))) == 0 and flags.value == 3
    assert driver.cuMemPoolGetAccess(byref(flags), pool, byref(Access(1, 1))) == 0 and flags.value == 0
    for wrong in (Access(1, 9, 3), Access(2, 1, 3), Access(1, 1, 2), Access(1, 0, 0)):
        assert driver.cuMemPoolSetAccess(pool, byref(wrong), 1) in (INVALID_VALUE, 101)
    assert driver.cuMemPoolSetAccess(pool, byref(Access(1, 1, 3)), 1) == 0
    assert driver.cuMemPoolGetAccess(byref(flags), pool, byref(Access(1, 1))) == 0 and flags.value == 3
    assert driver.cuCtxSetCurrent(other) == 0
    fill, there = driver.function("fill_u32", "u64 u32 u32"), driver.stream()
    arguments = c_uint64(memory), c_uint32(7), c_uint32(4)
    assert driver.launch(fill, there, *arguments) == 0 and driver.cuStreamSynchronize(there) == 0
    assert driver.read(memory, 4) == b"\7\0\0\0"
    assert driver.cuMemPoolSetAccess(pool, byref(Access(1, 1, 0)), 1) == 0
    assert driver.launch(fill, there, *arguments) == 0 and driver.cuStreamSynchronize(there) == 700


# -- copies and fills ------------------------------------------------------------


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


@fake_only("a driver may take rows that are further apart than it promises")
def test_rows_are_at_most_two_gib_apart(cuda: Driver) -> None:
    """CU_DEVICE_ATTRIBUTE_MAX_PITCH."""
    memory, most = cuda.memory(64), 2**31 - 1
    plane = Plane(src_type=2, src_device=memory, src_pitch=most, dst_type=2, dst_device=memory + 32, dst_pitch=4)
    plane.width, plane.height = 4, 1
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(plane), cuda.stream()) == 0
    plane.src_pitch = most + 1
    assert cuda.cuMemcpy2DAsync_v2(ctypes.byref(plane), cuda.stream()) == INVALID_VALUE


# -- values ----------------------------------------------------------------------


@pytest.mark.parametrize("memory", ["default pool", "pool", "managed"])
def test_memory_of_pools_and_managed_memory_hold_no_values(cuda: Driver, memory: str) -> None:
    """Measured on a GPU, of either width."""
    stream = cuda.stream()
    if memory == "managed":
        at = cuda.made("cuMemAllocManaged", 4096, 1)
    elif memory == "pool":
        properties = (c_int * 24)(1, 0, 1, 0)  # pinned memory, without handles, on device 0
        at = cuda.made("cuMemAllocFromPoolAsync", 4096, cuda.made("cuMemPoolCreate", properties), stream)
    else:
        at = cuda.made("cuMemAllocAsync", 4096, stream)
    assert cuda.cuStreamSynchronize(stream) == 0
    assert cuda.cuStreamWriteValue32_v2(stream, at, 5, 0) == INVALID_VALUE
    assert cuda.cuStreamWaitValue32_v2(stream, at, 5, 0) == INVALID_VALUE
    assert cuda.cuStreamWriteValue64_v2(stream, at, 5, 0) == INVALID_VALUE
    assert cuda.cuStreamWaitValue64_v2(stream, at, 5, 0) == INVALID_VALUE
    for operation in (WRITE_32, WAIT_32, WRITE_64, WAIT_64):
        assert cuda.cuStreamBatchMemOp_v2(stream, 1, (Op * 1)(Op(operation, at, 5)), 0) == INVALID_VALUE
    assert cuda.cuStreamSynchronize(stream) == 0


def test_addresses_must_be_the_drivers_and_aligned(cuda: Driver) -> None:
    stream, word, plain = cuda.stream(), Word(cuda), c_uint32()
    for address in (ctypes.addressof(plain), word.address + 2, 0, cuda.memory(4) + 4):
        assert cuda.cuStreamWriteValue32_v2(stream, address, 1, 0) == INVALID_VALUE


def test_a_batch_of_nothing_does_nothing(cuda: Driver) -> None:
    stream = cuda.stream()
    assert cuda.cuStreamBatchMemOp_v2(stream, 0, (Op * 1)(), 0) == 0
    assert cuda.cuStreamSynchronize(stream) == 0


def test_memops_0_is_a_driver_without_them(start: Start) -> None:
    """FAKECUDA_MEMOPS."""
    driver, place = start(memops=0), c_int(-1)
    driver.context()
    assert driver.cuStreamWriteValue32_v2(driver.stream(), Word(driver).address, 1, 0) == NOT_SUPPORTED
    assert driver.cuDeviceGetAttribute(ctypes.byref(place), 122, 0) == 0 and place.value == 0
