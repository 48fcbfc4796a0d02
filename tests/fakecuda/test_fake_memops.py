"""Stream memory operations of the look-alike driver."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_int, c_uint32, c_uint64

import pytest
from fakecuda_help import INVALID_VALUE, NOT_SUPPORTED, Driver, Word

Start = Callable[..., Driver]
GEQ, EQ, AND, NOR = 0, 1, 2, 3
WAIT_32, WRITE_32, WAIT_64, WRITE_64, BARRIER = 1, 2, 4, 5, 6


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


@pytest.mark.parametrize(
    ("how", "value", "too_early", "enough"),
    [
        (GEQ, 5, 4, 5),
        (GEQ, 5, 4, 1000),
        (GEQ, 2, 2**32 - 1, 3),
        (EQ, 5, 6, 5),
        (AND, 6, 9, 2),
        (NOR, 2**32 - 2, 1, 0),
    ],
)
def test_a_wait_ends_when_its_condition_holds(cuda: Driver, how: int, value: int, too_early: int, enough: int) -> None:
    """Spec 4: GEQ is cyclic; NOR is ~(*addr | value) != 0."""
    stream, word, passed = cuda.stream(), Word(cuda), Word(cuda)
    word.value = too_early
    assert cuda.cuStreamWaitValue32_v2(stream, word.address, value, how) == 0
    cuda.cuStreamWriteValue32_v2(stream, passed.address, 1, 0)
    assert cuda.pending(stream) and passed.value == 0
    word.value = enough
    assert cuda.cuStreamSynchronize(stream) == 0 and passed.value == 1


def test_a_batch_writes_and_waits_in_its_order(cuda: Driver) -> None:
    """Spec 3.4: one operation of the stream."""
    stream, reached, hold = cuda.stream(), Word(cuda), Word(cuda)
    ops = (Op * 3)(Op(WRITE_32, reached.address, 7), Op(BARRIER), Op(WAIT_32, hold.address, 1))
    assert cuda.cuStreamBatchMemOp_v2(stream, 3, ops, 0) == 0
    ops[0].value = 99  # taken at the call
    while reached.value == 0:
        pass
    assert reached.value == 7 and cuda.pending(stream)
    hold.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0


def test_64_bit_operations(cuda: Driver) -> None:
    """Spec 4: batch operations 4 and 5."""
    stream, memory = cuda.stream(), cuda.memory(8)
    ops = (Op * 2)(Op(WRITE_64, memory, 2**40 + 1), Op(WAIT_64, memory, 2**40))
    assert cuda.cuStreamBatchMemOp_v2(stream, 2, ops, 0) == 0
    assert cuda.cuStreamSynchronize(stream) == 0
    assert int.from_bytes(cuda.read(memory, 8), "little") == 2**40 + 1


def test_64_bit_calls(cuda: Driver) -> None:
    one, two, memory = cuda.stream(), cuda.stream(), cuda.memory(8)
    assert cuda.cuMemsetD32Async(memory, 0, 2, one) == 0 and cuda.cuStreamSynchronize(one) == 0
    assert cuda.cuStreamWaitValue64_v2(one, memory, 2**40 + 1, EQ) == 0
    assert cuda.pending(one)
    assert cuda.cuStreamWriteValue64_v2(two, memory, 2**40 + 1, 0) == 0
    assert cuda.cuStreamSynchronize(one) == 0


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


def test_device_memory_may_be_written_and_waited_for(cuda: Driver) -> None:
    one, two, memory = cuda.stream(), cuda.stream(), cuda.memory(4)
    cuda.cuMemsetD32Async(memory, 0, 1, one)
    cuda.cuStreamSynchronize(one)
    assert cuda.cuStreamWaitValue32_v2(one, memory, 3, EQ) == 0
    assert cuda.pending(one)
    assert cuda.cuStreamWriteValue32_v2(two, memory, 3, 0) == 0
    assert cuda.cuStreamSynchronize(one) == 0


def test_addresses_must_be_the_drivers_and_aligned(cuda: Driver) -> None:
    stream, word, plain = cuda.stream(), Word(cuda), c_uint32()
    for address in (ctypes.addressof(plain), word.address + 2, 0, cuda.memory(4) + 4):
        assert cuda.cuStreamWriteValue32_v2(stream, address, 1, 0) == INVALID_VALUE


def test_a_batch_with_a_mistake_does_nothing(cuda: Driver) -> None:
    stream, word = cuda.stream(), Word(cuda)
    ops = (Op * 2)(Op(WRITE_32, word.address, 1), Op(99, word.address, 1))
    assert cuda.cuStreamBatchMemOp_v2(stream, 2, ops, 0) == INVALID_VALUE
    assert cuda.cuStreamSynchronize(stream) == 0 and word.value == 0


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
