"""Modules and launches of the look-alike driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import byref, c_int, c_uint32, c_uint64, create_string_buffer

import pytest
from fakecuda_help import ILLEGAL_ADDRESS, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, Driver

Start = Callable[..., Driver]


def test_more_shared_memory_than_48_kib_is_asked_for_with_an_attribute(cuda: Driver) -> None:
    """Spec 3.8: up to what the device has for a block, and 1 above."""
    nothing, stream, found = cuda.function("nothing", ""), cuda.stream(), c_int()

    def launch(shared: int) -> int:
        code: int = cuda.cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, shared, stream, None, None)
        return code

    assert launch(48 << 10) == 0 and launch((48 << 10) + 1) == INVALID_VALUE
    assert cuda.cuFuncSetAttribute(nothing, 8, (227 << 10) + 1) == INVALID_VALUE
    assert cuda.cuFuncSetAttribute(nothing, 8, 100 << 10) == 0
    assert cuda.cuFuncGetAttribute(byref(found), 8, nothing) == 0 and found.value == 100 << 10
    assert launch(100 << 10) == 0 and cuda.count("launched.shared") == 100 << 10
    assert launch((100 << 10) + 1) == INVALID_VALUE


def test_function_and_stream_are_of_one_context(start: Start) -> None:
    """Spec 3.8: 400 otherwise."""
    driver = start()
    driver.context(1)
    other = driver.stream()
    driver.context(0)
    assert driver.launch(driver.function("nothing", ""), other) == INVALID_HANDLE


def test_a_function_without_a_kernel_here_cannot_be_launched(cuda: Driver) -> None:
    """So that no test takes a launch that did nothing for one that worked."""
    assert cuda.launch(cuda.function("mystery", "u64"), cuda.stream(), c_uint64(0)) == NOT_SUPPORTED
    assert cuda.launch(cuda.function("fill_u32", "u64 u64 u64"), cuda.stream(), *[c_uint64(0)] * 3) == NOT_SUPPORTED


@pytest.mark.parametrize("what", ["host", "freed", "beyond"])
def test_a_wild_pointer_is_a_fault(cuda: Driver, what: str) -> None:
    """Spec 6.5: noticed later, and then every call gives the code."""
    fill, memory, stream = cuda.function("fill_u32", "u64 u32 u32"), cuda.memory(8), cuda.stream()
    freed = cuda.memory(8)
    cuda.cuMemFree_v2(freed)
    buffer = create_string_buffer(8)
    address, count = {"host": (ctypes.addressof(buffer), 1), "freed": (freed, 1), "beyond": (memory, 3)}[what]
    assert cuda.launch(fill, stream, c_uint64(address), c_uint32(1), c_uint32(count)) == 0
    assert cuda.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS
    assert cuda.cuStreamCreate(byref(c_uint64()), 0) == ILLEGAL_ADDRESS


@pytest.mark.parametrize("enabled", [True, False])
def test_memory_of_another_device_needs_peer_access(start: Start, enabled: bool) -> None:
    driver = start()
    peer = driver.context(1)
    there = driver.memory(4)
    driver.context(0)
    if enabled:
        assert driver.cuCtxEnablePeerAccess(peer, 0) == 0
    stream, fill = driver.stream(), driver.function("fill_u32", "u64 u32 u32")
    driver.launch(fill, stream, c_uint64(there), c_uint32(5), c_uint32(1))
    assert driver.cuStreamSynchronize(stream) == (0 if enabled else ILLEGAL_ADDRESS)
