"""What the vendor's own clients call beside this package's backend: libraries and their kernels,
contexts beside the primary one, managed memory, fills that name no stream."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint32, c_uint64
from pathlib import Path

import pytest
from fakecuda_help import INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, Driver, ptx
from which_driver import fake_only

Start = Callable[..., Driver]
GOOD = ptx("fill_u32", "u64 u32 u32")
NOTHING = (None, None, 0, None, None, 0)


def library(driver: Driver, image: bytes = GOOD) -> int:
    return driver.made("cuLibraryLoadData", image, *NOTHING)


def launch(driver: Driver, kernel: int, memory: int, value: int) -> int:
    return driver.launch(kernel, driver.stream(), c_uint64(memory), c_uint32(value), c_uint32(1))


# -- libraries ---------------------------------------------------------------


def test_a_library_needs_no_context(start: Start) -> None:
    driver = start()
    kernel = driver.made("cuLibraryGetKernel", library(driver), b"fill_u32")
    assert driver.cuKernelGetFunction(byref(c_uint64()), kernel) == INVALID_CONTEXT
    driver.context()
    assert driver.made("cuKernelGetFunction", kernel) != kernel


def test_a_kernel_is_launched_as_a_function_is(cuda: Driver) -> None:
    kernel = cuda.made("cuLibraryGetKernel", library(cuda), b"fill_u32")
    memory = cuda.memory(4)
    assert launch(cuda, kernel, memory, 5) == 0
    assert cuda.cuCtxSynchronize() == 0 and cuda.read(memory, 4) == b"\5\0\0\0"
    assert launch(cuda, cuda.made("cuKernelGetFunction", kernel), memory, 6) == 0
    assert cuda.cuCtxSynchronize() == 0 and cuda.read(memory, 4) == b"\6\0\0\0"


def test_each_context_has_a_module_of_its_own(start: Start) -> None:
    driver = start()
    handle = library(driver)
    kernel = driver.made("cuLibraryGetKernel", handle, b"fill_u32")
    functions, modules = [], []
    for device in 0, 1:
        driver.context(device)
        modules.append(driver.made("cuLibraryGetModule", handle))
        functions.append(driver.made("cuKernelGetFunction", kernel))
        assert driver.made("cuKernelGetFunction", kernel) == functions[-1]
        assert driver.made("cuFuncGetModule", functions[-1]) == modules[-1]
    assert len(set(functions)) == len(set(modules)) == 2
    assert driver.launch(functions[0], driver.stream(), *[c_uint64(0)] * 3) == INVALID_HANDLE


def test_an_unloaded_library_takes_its_kernels_along(cuda: Driver) -> None:
    handle = library(cuda)
    kernel = cuda.made("cuLibraryGetKernel", handle, b"fill_u32")
    function = cuda.made("cuKernelGetFunction", kernel)
    assert [cuda.cuLibraryUnload(handle), cuda.cuLibraryUnload(handle)] == [0, INVALID_HANDLE]
    memory = cuda.memory(4)
    assert [launch(cuda, it, memory, 1) for it in (kernel, function)] == [INVALID_HANDLE] * 2
    assert cuda.count("live.modules") == 0


def test_what_a_library_says_of_its_kernels(cuda: Driver) -> None:
    handle = library(cuda)
    kernel = cuda.made("cuLibraryGetKernel", handle, b"fill_u32")
    assert cuda.cuLibraryGetKernel(byref(c_uint64()), handle, b"other") == 500
    assert cuda.cuLibraryGetGlobal(byref(c_uint64()), None, handle, b"x") == 500
    count, place, name = c_uint(), c_int(), c_char_p()
    assert cuda.cuLibraryGetKernelCount(byref(count), handle) == 0 and count.value == 1
    assert cuda.made("cuLibraryEnumerateKernels", 1, handle) == kernel
    assert cuda.made("cuKernelGetLibrary", kernel) == handle
    assert cuda.cuKernelGetName(byref(name), kernel) == 0 and name.value == b"fill_u32"
    assert cuda.cuKernelGetAttribute(byref(place), 0, kernel, 0) == 0 and place.value == 1024
    assert cuda.cuKernelSetAttribute(8, 100 << 10, kernel, 0) == 0
    assert cuda.cuKernelSetAttribute(8, 228 << 10, kernel, 0) == INVALID_VALUE
    # A driver that loads lazily looks at the program later.
    assert cuda.cuLibraryLoadData(byref(c_uint64()), GOOD.replace(b"6.0", b"9.9"), *NOTHING) in (0, 222)


def test_parameters_have_the_places_that_the_device_gives_them(cuda: Driver) -> None:
    handle = library(cuda, ptx("mixed", "u32 u64 u8 u32"))
    kernel = cuda.made("cuLibraryGetKernel", handle, b"mixed")
    function = cuda.made("cuKernelGetFunction", kernel)
    for ask, what in (cuda.cuKernelGetParamInfo, kernel), (cuda.cuFuncGetParamInfo, function):
        found = []
        for i in range(4):
            offset, size = c_size_t(), c_size_t()
            assert ask(what, i, byref(offset), byref(size)) == 0
            found.append((offset.value, size.value))
        assert found == [(0, 4), (8, 8), (16, 1), (20, 4)]
        assert ask(what, 4, byref(c_size_t()), None) == INVALID_VALUE


@fake_only("the image is made up")
@pytest.mark.parametrize(("abi", "flags", "code"), [(7, 90, 0), (8, 90 << 8, 0), (7, 80, 209), (8, 90, 209)])
def test_the_architecture_of_a_binary_is_in_its_header(cuda: Driver, abi: int, flags: int, code: int) -> None:
    """As ptxas of 12.9 (version 7 of the format) and 13.5 (version 8) write it."""
    text = b".text.fill_u32\0"
    head = b"\x7fELF\2\1\1" + bytes([0x33, abi]) + bytes(7)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, 64 + len(text), flags, 64, 56, 0, 64, 0, 0)
    assert len(head) == 64
    assert cuda.cuModuleLoadData(byref(c_uint64()), head + text) == code


# -- contexts ----------------------------------------------------------------


def test_a_created_context_is_current_and_not_the_primary_one(cuda: Driver) -> None:
    primary = cuda.asked("cuCtxGetCurrent")
    created = cuda.made("cuCtxCreate_v2", 0, 0)
    assert cuda.asked("cuCtxGetCurrent") == created != primary
    stream = cuda.stream()
    assert cuda.asked("cuStreamGetCtx", stream) == created
    assert cuda.count("live.contexts") == 2
    assert cuda.cuCtxDestroy_v2(created) == 0
    assert cuda.asked("cuCtxGetCurrent") == primary and cuda.count("live.contexts") == 1
    assert cuda.cuStreamQuery(stream) in (INVALID_HANDLE, INVALID_CONTEXT)
    assert [cuda.cuCtxDestroy_v2(created), cuda.cuCtxDestroy_v2(primary)] == [INVALID_CONTEXT] * 2


def test_a_context_is_destroyed_after_its_work(cuda: Driver) -> None:
    created = cuda.made("cuCtxCreate_v4", None, 0, 0)
    word = cuda.hold(cuda.stream())
    assert cuda.waits("cuCtxDestroy_v2", created, on=word)


# -- memory ------------------------------------------------------------------


def test_managed_memory_is_the_hosts_and_the_devices(cuda: Driver) -> None:
    memory = cuda.made("cuMemAllocManaged", 4, 1)
    c_uint32.from_address(memory).value = 3
    assert launch(cuda, cuda.function("fill_u32", "u64 u32 u32"), memory, 7) == 0
    assert cuda.cuCtxSynchronize() == 0 and c_uint32.from_address(memory).value == 7
    kind, managed = c_int(), ctypes.c_bool()
    assert cuda.cuPointerGetAttribute(byref(kind), 2, memory) == 0 and kind.value == 2
    assert cuda.cuPointerGetAttribute(byref(managed), 8, memory) == 0 and managed.value
    assert cuda.cuMemFreeHost(memory) == INVALID_VALUE
    assert [cuda.cuMemFree_v2(memory), cuda.cuMemFree_v2(memory)] == [0, INVALID_VALUE]
    assert cuda.cuMemAllocManaged(byref(c_uint64()), 4, 3) == INVALID_VALUE


def test_fills_and_copies_that_name_no_stream_are_the_default_streams(cuda: Driver) -> None:
    memory, other = cuda.memory(8), cuda.memory(8)
    word = cuda.hold(cuda.stream(0))  # ordered with the default stream
    assert cuda.cuMemsetD32_v2(memory, 0x01020304, 2) == 0
    assert cuda.cuMemsetD16_v2(memory, 0x0506, 1) == 0
    assert cuda.cuMemsetD8_v2(memory, 0x07, 1) == 0
    assert cuda.cuMemcpyDtoD_v2(other, memory, 8) == 0
    assert cuda.pending(1)
    word.value = 1
    assert cuda.cuCtxSynchronize() == 0
    assert cuda.read(other, 8) == bytes([7, 5, 2, 1, 4, 3, 2, 1])


# -- the rest ----------------------------------------------------------------


def test_no_table_of_functions_that_are_in_no_header(start: Start) -> None:
    driver = start(init=False)
    table = c_uint64(1)
    assert driver.cuGetExportTable(byref(table), bytes(16)) in (1, 500)


@pytest.mark.parametrize(("threads", "shared", "blocks"), [(128, 0, 16), (33, 0, 32), (1024, 0, 2), (32, 100 << 10, 0)])
def test_how_many_blocks_fit_onto_a_processor(cuda: Driver, threads: int, shared: int, blocks: int) -> None:
    function, found = cuda.function("nothing", ""), c_int()
    assert cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(found), function, threads, shared) == 0
    assert found.value == blocks


def test_more_shared_memory_is_asked_for_before_blocks_fit(cuda: Driver) -> None:
    function, found = cuda.function("nothing", ""), c_int()
    assert cuda.cuFuncSetAttribute(function, 8, 100 << 10) == 0
    assert cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(found), function, 32, 100 << 10) == 0
    assert found.value == 2


def test_calls_can_be_logged_in_their_order(cuda: Driver, tmp_path: Path) -> None:
    file = tmp_path / "calls"
    assert cuda.control(f"log {file}") == 0
    stream = cuda.stream()
    cuda.cuStreamQuery(stream)
    cuda.control("log off")
    cuda.cuStreamQuery(stream)
    lines = [line.split() for line in file.read_text().splitlines()]
    assert [name for _, name in lines] == ["cuStreamCreate", "cuStreamQuery"]
    assert len({thread for thread, _ in lines}) == 1
    assert cuda.control(f"log {tmp_path}/none/calls") == -1


def test_pinned_memory_without_flags(cuda: Driver) -> None:
    address = cuda.made("cuMemAllocHost_v2", 4)
    c_uint32.from_address(address).value = 3
    assert cuda.count("live.pinned") == 1
    assert [cuda.cuMemFreeHost(address), cuda.cuMemFreeHost(address)] == [0, INVALID_VALUE]
