"""cupy.cuda.runtime: memory and copies by addresses."""

from __future__ import annotations

import ctypes
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Stream, runtime

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]

Error = runtime.CUDARuntimeError
H2H, H2D, D2H, D2D, ANY = range(5)


@pytest.fixture
def block() -> Any:
    ptr = runtime.malloc(1024)
    yield ptr
    runtime.free(ptr)


@pytest.fixture
def pinned() -> Any:
    ptr = runtime.hostAlloc(1024, 0)
    yield ptr
    runtime.freeHost(ptr)


def read(ptr: int, size: int) -> bytes:
    host = ctypes.create_string_buffer(size)
    runtime.memcpy(ctypes.addressof(host), ptr, size, D2H)
    return host.raw


def status(function: Any, *args: Any) -> int:
    with pytest.raises(Error) as info:
        function(*args)
    return info.value.status


def test_memory_is_taken_and_given_back() -> None:
    free, total = runtime.memGetInfo()
    assert 0 < free <= total and Device().mem_info[1] == total
    ptr = runtime.malloc(1 << 20)
    assert ptr % 256 == 0
    runtime.free(ptr)
    assert status(runtime.free, ptr) == 1
    # Nothing has the address 0, as on the device.
    assert runtime.malloc(0) == runtime.hostAlloc(0, 0) == 0
    runtime.free(0)
    runtime.freeHost(0)


@pytest.mark.needs("exact-memory")
def test_the_figures_follow_an_allocation() -> None:
    free, _ = runtime.memGetInfo()
    ptr = runtime.malloc(1 << 20)
    assert runtime.memGetInfo()[0] == free - (1 << 20)
    runtime.free(ptr)
    assert runtime.memGetInfo()[0] == free


def test_out_of_memory_is_status_2() -> None:
    too_much = runtime.memGetInfo()[1] + 1
    for take in (runtime.malloc, cuda.Memory):
        with pytest.raises(Error, match=r"^cudaErrorMemoryAllocation: out of memory") as info:
            take(too_much)
        assert info.value.status == 2 and isinstance(info.value, hs.OutOfMemoryError)
        assert str(too_much) in info.value.detail


def test_numbers_are_checked(block: int) -> None:
    for wrong in (None, "x", object()):
        with pytest.raises(TypeError, match="an integer is required"):
            runtime.malloc(wrong)
    with pytest.raises(OverflowError, match="can't convert negative value to size_t"):
        runtime.malloc(-1)
    with pytest.raises(OverflowError, match="can't convert negative value to size_t"):
        runtime.memcpyAsync(0, 0, -1, 0, 0)
    with pytest.raises(TypeError, match="an integer is required"):
        runtime.memcpyAsync(0, 0, 0, 0, "x")
    assert status(runtime.memcpy, block, block + 512, 8, 9) == 21
    assert status(runtime.hostAlloc, 8, 64) == 1


def test_copy_there_and_back(block: int, pinned: int) -> None:
    source = ctypes.create_string_buffer(b"abcdefgh", 8)
    runtime.memcpy(block, ctypes.addressof(source), 8, H2D)
    runtime.memcpy(block + 512, block, 8, D2D)
    runtime.memcpy(pinned, block + 512, 8, D2H)
    runtime.memcpy(pinned + 8, pinned, 8, H2H)
    assert ctypes.string_at(pinned, 16) == b"abcdefghabcdefgh"
    runtime.memset(block, 0x1FF, 4)  # its low byte
    assert read(block, 8) == b"\xff" * 4 + b"efgh"


@pytest.mark.parametrize("kind", [H2H, H2D, D2H, D2D])
def test_wrong_directions_are_refused(block: int, kind: int) -> None:
    host = ctypes.addressof(keep := ctypes.create_string_buffer(8))
    ends = {H2H: (host, block), H2D: (host, block), D2H: (block, host), D2D: (block, host)}
    assert status(runtime.memcpy, *ends[kind], 8, kind) == 1
    assert status(runtime.memcpyAsync, *ends[kind], 8, kind, 0) == 1
    runtime.memcpy(block, host, 8, ANY)
    del keep


def test_bad_ranges(block: int) -> None:
    stream = Stream()
    assert status(runtime.memcpyAsync, block, block + 4, 8, D2D, stream.ptr) == 1  # overlap
    assert status(runtime.memcpyAsync, block + 1020, block, 8, D2D, stream.ptr) == 1  # past the end
    assert status(runtime.memset, block, 0, 2048) == 1
    gone = runtime.malloc(64)
    runtime.free(gone)
    assert status(runtime.memcpyAsync, block, gone, 8, D2D, stream.ptr) == 1
    runtime.memsetAsync(block, 7, 1024, stream.ptr)
    stream.synchronize()
    assert read(block, 1024) == b"\7" * 1024


def test_asynchronous_copies_keep_the_order_of_the_stream(block: int, pinned: int, hold: Any) -> None:
    stream = Stream(non_blocking=True)
    ctypes.memset(pinned, 1, 64)
    gate = hold(stream)
    runtime.memcpyAsync(block, pinned, 64, H2D, stream.ptr)
    runtime.memcpyAsync(pinned + 512, block, 64, D2H, stream.ptr)
    assert runtime.streamQuery(stream.ptr) == 600
    ctypes.memset(pinned, 2, 64)  # pinned memory is read when the stream gets there
    gate.open()
    stream.synchronize()
    assert ctypes.string_at(pinned + 512, 64) == b"\2" * 64


def test_pinned_memory_in_use_is_not_freed(block: int, hold: Any) -> None:
    stream = Stream()
    pinned = runtime.hostAlloc(64, 0)
    gate = hold(stream)
    runtime.memcpyAsync(block, pinned, 64, H2D, stream.ptr)
    with pytest.raises(Error, match=r"^cudaErrorNotReady") as info:
        runtime.freeHost(pinned)
    assert "copy" in info.value.detail
    gate.open()
    stream.synchronize()
    runtime.freeHost(pinned)
    assert status(runtime.freeHost, pinned) == 1


def test_registered_memory_is_pinned() -> None:
    # A page of its own, so that nothing else lies in it.
    memory = ctypes.create_string_buffer(3 * 4096)
    start = (ctypes.addressof(memory) + 4095) // 4096 * 4096
    runtime.hostRegister(start, 4096, 0)
    assert runtime.pointerGetAttributes(start).type == runtime.memoryTypeHost
    assert cuda.pinned_memory.is_memory_pinned(start)
    assert status(runtime.hostRegister, start, 4096, 0) == 712
    runtime.hostUnregister(start)
    assert status(runtime.hostUnregister, start) == 713
    assert not cuda.pinned_memory.is_memory_pinned(start)


def test_rows(block: int) -> None:
    source = ctypes.create_string_buffer(b"abXXcdXXef", 10)
    runtime.memset(block, 0, 64)
    runtime.memcpy2D(block, 8, ctypes.addressof(source), 4, 2, 3, H2D)
    assert read(block, 24) == b"ab\0\0\0\0\0\0cd\0\0\0\0\0\0ef\0\0\0\0\0\0"
    stream = Stream()
    runtime.memcpy2DAsync(block + 512, 2, block, 8, 2, 3, D2D, stream.ptr)
    stream.synchronize()
    assert read(block + 512, 6) == b"abcdef"
    assert status(runtime.memcpy2D, block, 1, block + 512, 8, 2, 3, D2D) == 12


@pytest.mark.row(67)
def test_the_owner_of_an_address_is_found(pinned: int) -> None:
    with Device(1):
        block = runtime.malloc(64)
    found = runtime.pointerGetAttributes(block + 5)
    assert (found.device, found.devicePointer, found.type) == (1, block + 5, 2)
    assert cuda.device.from_pointer(block).id == 1
    assert cuda.UnownedMemory(block, 64, None).device_id == 1
    assert runtime.pointerGetAttributes(pinned).type == runtime.memoryTypeHost
    assert runtime.pointerGetAttributes(pinned).hostPointer == pinned
    assert runtime.pointerGetAttributes(id(found)).type == runtime.memoryTypeUnregistered
    runtime.free(block)


def test_copies_between_devices(block: int) -> None:
    with Device(1):
        other = runtime.malloc(64)
        runtime.memset(other, 9, 64)
    runtime.memcpyPeer(block, 0, other, 1, 64)
    assert read(block, 64) == b"\x09" * 64
    stream = Stream()
    runtime.memset(block, 8, 64)
    runtime.memcpyPeerAsync(other, 1, block, 0, 64, stream.ptr)
    stream.synchronize()
    assert read(other, 64) == b"\x08" * 64
    assert status(runtime.memcpyPeer, block, 1, other, 1, 64) == 1  # not device 1's
    assert status(runtime.memcpyPeer, block, 0, other, 7, 64) == 101
    runtime.free(other)


@pytest.mark.row(73)
@pytest.mark.usefixtures("settled_memory")
def test_pools_by_handle() -> None:
    props = runtime.MemPoolProps(
        runtime.cudaMemAllocationTypePinned,
        runtime.cudaMemHandleTypeNone,
        runtime.cudaMemLocationTypeDevice,
        0,
    )
    pool, stream = runtime.memPoolCreate(props), Stream()
    assert pool > 0
    used = runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrUsedMemCurrent)
    ptr = runtime.mallocFromPoolAsync(128, pool, stream.ptr)
    assert ptr > 0
    now = runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrUsedMemCurrent)
    assert now >= used + 128
    runtime.freeAsync(ptr, stream.ptr)
    assert runtime.memPoolGetAttribute(pool, runtime.cudaMemPoolAttrUsedMemCurrent) == used
    assert runtime.mallocAsync(128, stream.ptr) == ptr  # at once, on the same stream
    runtime.freeAsync(ptr, stream.ptr)
    assert status(runtime.freeAsync, ptr, stream.ptr) == 1
    runtime.memPoolDestroy(pool)
    assert status(runtime.memPoolTrimTo, pool, 0) == 400
    default = runtime.deviceGetDefaultMemPool(1)
    assert runtime.deviceGetMemPool(1) == default != runtime.deviceGetDefaultMemPool(0)
    assert status(runtime.deviceSetMemPool, 0, default) == 1
    assert status(runtime.mallocFromPoolAsync, 8, default, stream.ptr) == 1
