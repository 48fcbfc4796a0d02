"""Memory in stream order of the look-alike driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_uint32, c_uint64

import pytest
from fakecuda_help import INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY, Driver, until

Start = Callable[..., Driver]
MB = 1 << 20
THRESHOLD, RESERVED, USED = 4, 5, 7
EVERYTHING = 2**64 - 1


class Props(ctypes.Structure):
    """The start of CUmemPoolProps and room for the rest; spec section 2."""

    _fields_ = [("kind", c_int), ("handles", c_int), ("location", c_int), ("device", c_int), ("rest", c_int * 18)]


def figure(driver: Driver, pool: int, attribute: int) -> int:
    place = c_uint64()
    assert driver.cuMemPoolGetAttribute(pool, attribute, byref(place)) == 0
    return place.value


def keep(driver: Driver, pool: int, size: int = EVERYTHING) -> None:
    assert driver.cuMemPoolSetAttribute(pool, THRESHOLD, byref(c_uint64(size))) == 0


def pool_of(driver: Driver) -> int:
    return driver.made("cuDeviceGetDefaultMemPool", 0)


def test_memory_may_be_used_by_later_work_at_once(cuda: Driver) -> None:
    """Spec 3.7: the pointer is valid for later work of the stream."""
    stream = cuda.stream()
    memory = cuda.made("cuMemAllocAsync", 100, stream)
    assert cuda.cuMemsetD8Async(memory, 5, 100, stream) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, 100) == b"\5" * 100


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


def test_freeing_at_once_does_not_wait_for_memory_of_a_pool(cuda: Driver) -> None:
    """Spec 6.13: cuMemFree on it does not synchronise."""
    stream = cuda.stream()
    memory = cuda.made("cuMemAllocAsync", 100, stream)
    cuda.hold(stream)
    assert cuda.cuMemFree_v2(memory) == 0 and cuda.count("live.memory") == 0


def test_a_pool_gives_back_at_a_synchronize(cuda: Driver) -> None:
    """Spec 6.13: the threshold is 0 at first."""
    stream, pool = cuda.stream(), pool_of(cuda)
    cuda.cuMemFreeAsync(cuda.made("cuMemAllocAsync", MB, stream), stream)
    until(lambda: figure(cuda, pool, USED) == 0, "the free")
    assert figure(cuda, pool, RESERVED) == MB
    assert cuda.cuStreamSynchronize(stream) == 0 and figure(cuda, pool, RESERVED) == 0


def test_a_pool_keeps_as_many_bytes_as_its_threshold(cuda: Driver) -> None:
    stream, pool = cuda.stream(), pool_of(cuda)
    keep(cuda, pool)
    memory = cuda.made("cuMemAllocAsync", MB, stream)
    cuda.cuMemFreeAsync(memory, stream)
    assert cuda.cuStreamSynchronize(stream) == 0 and figure(cuda, pool, RESERVED) == MB
    assert cuda.made("cuMemAllocAsync", MB, cuda.stream()) == memory


def test_trim_gives_back_what_is_free(cuda: Driver) -> None:
    stream, pool = cuda.stream(), pool_of(cuda)
    keep(cuda, pool)
    blocks = [cuda.made("cuMemAllocAsync", MB, stream) for _ in range(3)]
    for block in blocks[:2]:
        cuda.cuMemFreeAsync(block, stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cuMemPoolTrimTo(pool, 2 * MB) == 0 and figure(cuda, pool, RESERVED) == 2 * MB
    assert cuda.cuMemPoolTrimTo(pool, 0) == 0 and figure(cuda, pool, RESERVED) == MB


def test_what_pools_keep_is_given_back_before_memory_ends(start: Start) -> None:
    driver = start(memory=4 * MB)
    driver.context()
    stream = driver.stream()
    keep(driver, pool_of(driver))
    driver.cuMemFreeAsync(driver.made("cuMemAllocAsync", 3 * MB, stream), stream)
    driver.cuStreamSynchronize(stream)
    assert driver.cuMemAlloc_v2(byref(c_uint64()), 4 * MB) == 0
    assert driver.cuMemAllocAsync(byref(c_uint64()), 1, stream) == OUT_OF_MEMORY


def test_a_created_pool_exists_as_long_as_its_memory(cuda: Driver) -> None:
    """Spec 6.10: destroy returns at once."""
    stream = cuda.stream()
    pool = cuda.made("cuMemPoolCreate", byref(Props(1, 0, 1, 0)))
    memory = cuda.made("cuMemAllocFromPoolAsync", 100, pool, stream)
    assert cuda.count("live.pools") == 1
    assert [cuda.cuMemPoolDestroy(pool), cuda.count("live.pools")] == [0, 0]
    assert cuda.cuMemAllocFromPoolAsync(byref(c_uint64()), 1, pool, stream) == INVALID_HANDLE
    assert cuda.cuMemsetD8Async(memory, 1, 100, stream) == 0
    assert cuda.cuMemFreeAsync(memory, stream) == cuda.cuStreamSynchronize(stream) == 0
    assert cuda.count("live.memory") == 0


def test_the_pool_of_a_device_cannot_be_destroyed(cuda: Driver) -> None:
    assert cuda.cuMemPoolDestroy(pool_of(cuda)) == INVALID_VALUE
    assert cuda.made("cuDeviceGetMemPool", 0) == pool_of(cuda)


@pytest.mark.parametrize("attribute", [RESERVED, USED, 6, 8])
def test_figures_cannot_be_set(cuda: Driver, attribute: int) -> None:
    """Spec 4: the high-water marks may be set to 0 only."""
    assert cuda.cuMemPoolSetAttribute(pool_of(cuda), attribute, byref(c_uint64(1))) == INVALID_VALUE


def test_memory_of_a_pool_has_a_device_but_no_context(cuda: Driver) -> None:
    memory, place, ordinal = cuda.made("cuMemAllocAsync", 100, cuda.stream()), c_uint64(9), c_int(9)
    assert cuda.cuPointerGetAttribute(byref(place), 1, memory) == 0 and place.value == 0
    assert cuda.cuPointerGetAttribute(byref(ordinal), 9, memory) == 0 and ordinal.value == 0
    assert cuda.cuPointerGetAttribute(byref(place), 17, memory) == 0 and place.value == pool_of(cuda)


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


class Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("type", c_int), ("device", c_int), ("flags", c_int)]
