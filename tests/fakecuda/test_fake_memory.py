"""Memory of the look-alike driver: device, pinned, registered; what pointers are."""

from __future__ import annotations

import ctypes
import mmap
import signal
import subprocess
import sys
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import pytest
from fakecuda_help import INVALID_CONTEXT, INVALID_VALUE, OUT_OF_MEMORY, Driver
from which_driver import fake_only

Start = Callable[..., Driver]
MB = 1 << 20


def info(driver: Driver) -> tuple[int, int]:
    free, total = c_size_t(), c_size_t()
    assert driver.cuMemGetInfo_v2(byref(free), byref(total)) == 0
    return free.value, total.value


def attributes(driver: Driver, address: int) -> dict[str, int]:
    kinds = {"context": (1, c_uint64), "type": (2, c_uint), "ordinal": (9, c_int), "managed": (8, ctypes.c_bool)}
    kinds |= {"start": (11, c_uint64), "size": (12, c_uint64), "id": (7, c_uint64), "host": (4, c_uint64)}
    numbers = (c_int * len(kinds))(*[number for number, _ in kinds.values()])
    places = {name: kind() for name, (_, kind) in kinds.items()}
    data = (c_void_p * len(kinds))(*[ctypes.addressof(place) for place in places.values()])
    assert driver.cuPointerGetAttributes(len(kinds), numbers, data, address) == 0
    return {name: int(place.value) for name, place in places.items()}


def test_the_host_cannot_touch_device_memory(library: Path) -> None:
    source = (
        f"import ctypes\ncuda = ctypes.CDLL({str(library)!r})\nQ = ctypes.c_uint64\nat = Q()\n"
        "cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(at), 0); cuda.cuCtxSetCurrent(at)\n"
        "assert cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(4096)) == 0\n"
        "ctypes.string_at(at.value, 1)"
    )
    done = subprocess.run([sys.executable, "-c", source], timeout=20)
    assert done.returncode == -signal.SIGSEGV


def test_allocations_are_aligned(cuda: Driver) -> None:
    """Spec 3.7: at least to 256 bytes."""
    first, second = cuda.memory(1), cuda.memory(1)
    assert first % 256 == second % 256 == 0 != second - first


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


def test_memory_ends(start: Start) -> None:
    """FAKECUDA_MEMORY; spec 5: 2 is not sticky."""
    driver = start(memory=4 * MB)
    driver.context()
    place = c_uint64()
    assert driver.cuMemAlloc_v2(byref(place), 5 * MB) == OUT_OF_MEMORY
    big = driver.memory(3 * MB)
    assert driver.cuMemAlloc_v2(byref(place), 2 * MB) == OUT_OF_MEMORY
    assert driver.cuMemFree_v2(big) == 0
    assert driver.cuMemAlloc_v2(byref(place), 4 * MB) == 0


def test_holes_are_joined(start: Start) -> None:
    driver = start(memory=4 * MB)
    driver.context()
    parts = [driver.memory(MB) for _ in range(4)]
    for i in (1, 3, 2, 0):
        assert driver.cuMemFree_v2(parts[i]) == 0
    assert driver.memory(4 * MB) == parts[0]


@fake_only("the size is the look-alike's")
def test_memory_info_counts_pages_of_the_device(cuda: Driver) -> None:
    free, total = info(cuda)
    assert total == 1 << 30 >= free
    cuda.memory(3 * MB)
    assert info(cuda)[0] == free - 4 * MB


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


def test_what_device_memory_is(cuda: Driver) -> None:
    """Spec 4: pointer attributes."""
    memory = cuda.memory(1000)
    seen = attributes(cuda, memory + 999)
    assert seen["type"] == 2 and seen["ordinal"] == 0 and seen["context"] == cuda.asked("cuCtxGetCurrent")
    assert (seen["start"], seen["size"], seen["host"]) == (memory, 1000, 0)


def test_what_pinned_memory_is(start: Start) -> None:
    driver = start()
    driver.context(1)
    memory = driver.pinned(1000)
    seen = attributes(driver, memory + 1)
    assert (seen["type"], seen["ordinal"], seen["host"]) == (1, 1, memory + 1)
    assert driver.made("cuMemHostGetDevicePointer_v2", memory, 0) == memory


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


def test_ids_of_buffers_are_never_used_again(cuda: Driver) -> None:
    first = cuda.memory(16)
    first_id = attributes(cuda, first)["id"]
    cuda.cuMemFree_v2(first)
    second = cuda.memory(16)
    assert second == first and attributes(cuda, second)["id"] != first_id


def test_address_ranges(cuda: Driver) -> None:
    memory, start, size = cuda.memory(1000), c_uint64(), c_size_t()
    assert cuda.cuMemGetAddressRange_v2(byref(start), byref(size), memory + 10) == 0
    assert (start.value, size.value) == (memory, 1000)
    assert cuda.cuMemGetAddressRange_v2(byref(start), byref(size), memory + 1000) != 0


def test_registered_memory_is_what_was_named(cuda: Driver) -> None:
    """712 for what is registered, 713 for what is not; other bytes of a page may be registered."""
    pages = mmap.mmap(-1, 3 * 4096)
    at = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert cuda.cuMemHostRegister_v2(at + 100, 4096, 0) == 0
    assert cuda.cuMemHostRegister_v2(at + 100, 4096, 0) == 712
    assert cuda.cuMemHostRegister_v2(at + 8191, 1, 0) == 0
    assert cuda.cuMemHostUnregister(at + 8191) == 0
    assert attributes(cuda, at + 100)["type"] == 1
    assert [cuda.cuMemHostUnregister(at), cuda.cuMemHostUnregister(at + 100)] == [713, 0]
    assert cuda.cuMemHostUnregister(at + 100) == 713


@pytest.mark.parametrize(("flags", "code"), [(0, INVALID_VALUE), (8, 0)])
def test_read_only_memory_needs_a_flag(cuda: Driver, flags: int, code: int) -> None:
    """Spec 3.7."""
    libc = ctypes.CDLL(None)
    pages = mmap.mmap(-1, 4096)
    at = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    assert libc.mprotect(c_void_p(at), c_size_t(4096), mmap.PROT_READ) == 0
    assert cuda.cuMemHostRegister_v2(at, 4096, flags) == code
    assert libc.mprotect(c_void_p(at), c_size_t(4096), mmap.PROT_READ | mmap.PROT_WRITE) == 0


def test_memory_that_is_not_mapped_cannot_be_registered(cuda: Driver) -> None:
    assert cuda.cuMemHostRegister_v2(4096, 4096, 0) == INVALID_VALUE
    assert cuda.cuMemHostRegister_v2(cuda.memory(4096), 4096, 0) == INVALID_VALUE
