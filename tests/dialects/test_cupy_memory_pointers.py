"""cupy.cuda: blocks, pointers to them, their copies, memory in stream order."""

from __future__ import annotations

import copy
import ctypes
import gc
import pickle
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Stream, memory, runtime

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]


def device_bytes(value: int, size: int = 64) -> Any:
    new = memory.MemoryPointer(cuda.Memory(size), 0)
    new.memset(value, size)
    cuda.get_current_stream().synchronize()  # non-blocking streams do not wait for it
    return new


def read(pointer: Any, size: int = 64) -> bytes:
    host = ctypes.create_string_buffer(size)
    pointer.copy_to_host(ctypes.addressof(host), size)
    return host.raw


def test_blocks() -> None:
    with Device(1):
        block = cuda.Memory(100)
    assert (block.size, block.device_id, block.device, int(block)) == (100, 1, Device(1), block.ptr)
    assert cuda.Memory(0).ptr == 0
    mine = cuda.UnownedMemory(4096, 10, keep := object(), 0)
    assert (mine.ptr, mine.size, mine.device_id) == (4096, 10, 0) and keep
    for thing in (block, cuda.PinnedMemory(8)):
        with pytest.raises(TypeError):
            copy.copy(thing)
        with pytest.raises(TypeError):
            pickle.dumps(thing)
    with pytest.raises(OverflowError):
        cuda.Memory(-1)


def test_arithmetic() -> None:
    mem = cuda.UnownedMemory(4096, 100, None, 0)
    p = cuda.MemoryPointer(mem, 10)
    assert (p.ptr, p.mem, p.device_id, int(p)) == (4106, mem, 0, 4106)
    assert [(p + 5).ptr, (5 + p).ptr, (p - 5).ptr] == [4111, 4111, 4101]
    same = p
    p += 6
    p -= 2
    assert p is same and p.ptr == 4110
    assert repr(p).startswith("<MemoryPointer 0x100e device=0 mem=<")
    for wrong in (lambda: 5 - p, lambda: p + "x", lambda: cuda.MemoryPointer(5, 0)):
        with pytest.raises(TypeError):
            wrong()
    for name in ("ptr", "mem", "foo"):
        with pytest.raises(AttributeError):
            setattr(p, name, 3)


@pytest.mark.row(76)
def test_out_of_memory_survives_pickling() -> None:
    error = memory.OutOfMemoryError(124, 1024, 1024)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is memory.OutOfMemoryError and again.args == error.args
    assert str(error) == (
        "Out of memory allocating 124 bytes (allocated so far: 1,024 bytes, limit set to: 1,024 bytes)."
    )
    assert str(memory.OutOfMemoryError(1, 2)).endswith("(allocated so far: 2 bytes).")
    assert isinstance(error, MemoryError)


def test_copies_that_wait() -> None:
    source = ctypes.create_string_buffer(b"x" * 64, 64)
    p = device_bytes(0)
    p.copy_from(ctypes.c_void_p(ctypes.addressof(source)), 32)
    assert read(p) == b"x" * 32 + b"\0" * 32
    q = device_bytes(1)
    q.copy_from(p, 40)
    assert read(q) == b"x" * 32 + b"\0" * 8 + b"\1" * 24
    p.copy_from_host(ctypes.addressof(source), 64)
    assert read(p) == source.raw
    for wrong in ("x", None, 1.5):
        with pytest.raises((TypeError, AttributeError)):
            p.copy_from(wrong, 4)
    with pytest.raises(TypeError, match=r"expected cupy\.cuda\.memory\.MemoryPointer"):
        p.copy_from_device(q.ptr, 4)
    with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
        p.copy_from_device(q, 65)


def test_a_copy_that_waits_is_in_order_with_blocking_streams_only(hold: Any) -> None:
    p, q, other = device_bytes(1), device_bytes(0), device_bytes(0)
    free, plain = Stream(non_blocking=True), Stream()
    gate = hold(free)
    p.memset_async(2, 64, free)
    q.copy_from(p, 64)  # the held stream is not waited for
    assert read(q) == b"\1" * 64
    gate.open()
    free.synchronize()
    with hs.testing.Trace() as trace:
        other.memset_async(3, 64, plain)
        q.copy_from(other, 64)
    assert read(q) == b"\3" * 64  # the plain one is
    assert [op.kind for op in trace.operations][:2] == ["fill", "copy"]
    assert trace.operations[1].stream == 0  # the legacy default stream


@pytest.mark.row(77)
@pytest.mark.parametrize("given", ["stream", "current"])
@pytest.mark.parametrize("form", ["pointer", "c_void_p"])
def test_asynchronous_copies(given: str, form: str, hold: Any) -> None:
    stream = Stream(non_blocking=True)
    pinned = cuda.alloc_pinned_memory(128)
    host = np.frombuffer(pinned, np.uint8, 128)
    host[:] = np.arange(128)
    into, out = pinned.ptr, (pinned + 64).ptr
    if form == "c_void_p":
        into, out = ctypes.c_void_p(into), ctypes.c_void_p(out)
    where = stream if given == "stream" else None
    p, q = device_bytes(0), device_bytes(0)
    gate = hold(stream)
    with stream:
        p.copy_from_async(into, 64, where)
        q.copy_from_async(p, 64, where)
        q.memset_async(255, 4, where)
        q.copy_to_host_async(out, 64, where)
    if where is not None:
        p.copy_from_host_async(into, 64, where)
        p.copy_from_device_async(q, 64, where)
    assert not stream.done and host[64] == 64
    gate.open()
    stream.synchronize()
    assert host[64:68].tolist() == [255] * 4 and host[68:].tolist() == list(range(4, 64))


def test_wrong_streams() -> None:
    p = device_bytes(0)
    for call in (
        lambda: p.memset_async(1, 1, 5),
        lambda: p.copy_from_async(1, 0, 5),
        lambda: p.copy_to_host_async("x", 5, 5),
    ):
        with pytest.raises(AttributeError, match="'int' object has no attribute 'ptr'"):
            call()
    closed = Stream()
    closed.close()
    with pytest.raises(runtime.CUDARuntimeError):
        p.memset_async(1, 1, closed)


@pytest.mark.row(88)
def test_a_copy_does_not_wait_for_the_other_device(hold: Any) -> None:
    with Device(1):
        source = device_bytes(1)
        there = Stream(non_blocking=True)
    target = device_bytes(0)
    here = Stream(non_blocking=True)
    gate = hold(there)
    source.memset_async(2, 64, there)
    target.copy_from_async(source, 64, here)
    here.synchronize(10)
    assert read(target) == b"\1" * 64  # the old contents
    gate.open()
    there.synchronize()
    assert read(source) == b"\2" * 64


@pytest.mark.row(80)
def test_memory_in_stream_order_outlives_its_stream() -> None:
    stream = Stream(non_blocking=True)
    with stream:
        mem = cuda.malloc_async(1000).mem
    assert isinstance(mem, cuda.MemoryAsync) and mem.size == 1000
    assert mem.stream_ref() is stream and mem.stream_ref().ptr == stream.ptr
    pool = cuda.MemoryAsyncPool()
    used = pool.used_bytes()
    del stream
    gc.collect()
    assert mem.stream_ref() is None
    with Stream():
        del mem
    assert pool.used_bytes() < used
    assert cuda.malloc_async(0).ptr == 0


@pytest.mark.usefixtures("settled_memory")
def test_memory_freed_in_stream_order_is_reused_on_that_stream(hold: Any) -> None:
    first, second = Stream(non_blocking=True), Stream(non_blocking=True)
    gate = hold(first)
    mem = cuda.MemoryAsync(3000, first)
    ptr = mem.ptr
    cuda.MemoryPointer(mem, 0).memset_async(1, 3000, first)
    del mem  # the fill is pending
    other = cuda.MemoryAsync(3000, second)
    assert other.ptr != ptr
    again = cuda.MemoryAsync(3000, first)
    assert again.ptr == ptr
    gate.open()
    first.synchronize(10)
    del other


@pytest.mark.row(81)
def test_the_asynchronous_pool_keeps_what_was_freed() -> None:
    cuda.get_current_stream().synchronize()
    pool = cuda.MemoryAsyncPool()
    pool.free_all_blocks()
    size = 3 << 20
    small, empty, large = pool.malloc(100), pool.malloc(0), pool.malloc(size)
    for taken in (small, empty, large):
        assert isinstance(taken.mem, cuda.MemoryAsync)
    del taken, small, empty
    ptr, free = large.ptr, runtime.memGetInfo()[0]
    del large
    assert pool.free_bytes() >= size and runtime.memGetInfo()[0] == free
    plain = memory.MemoryPointer(cuda.Memory(size), 0)
    assert plain.ptr != ptr and runtime.memGetInfo()[0] < free
    before = runtime.memGetInfo()[0]
    pool.free_all_blocks()
    assert runtime.memGetInfo()[0] >= before + size
    assert pool.total_bytes() == pool.used_bytes() + pool.free_bytes()
    with pytest.raises(NotImplementedError):
        pool.n_free_blocks()


def test_handles_of_asynchronous_pools() -> None:
    for given in ("default", "current", ["default", "current"], runtime.deviceGetDefaultMemPool(0)):
        assert cuda.MemoryAsyncPool(given).malloc(10).ptr
    for wrong in ("other", ["default"]):
        with pytest.raises(ValueError, match="pool"):
            cuda.MemoryAsyncPool(wrong)


@pytest.mark.row(82)
def test_managed_memory(backend: str) -> None:
    if backend != "host":
        with pytest.raises(runtime.CUDARuntimeError, match="managed memory") as refused:
            cuda.malloc_managed(4096)
        assert refused.value.status == 801
        return
    mem = cuda.malloc_managed(4096).mem
    assert isinstance(mem, cuda.ManagedMemory)
    stream = Stream()
    mem.prefetch(stream)
    mem.prefetch(stream, device_id=0)
    mem.prefetch(stream, device_id=runtime.cudaCpuDeviceId)
    mem.advise(runtime.cudaMemAdviseSetReadMostly, Device(0))
    stream.synchronize()
    with pytest.raises(RuntimeError):
        mem.prefetch(stream, device_id=99)
    ctypes.memset(mem.ptr, 5, 8)  # the host writes to it itself
    assert read(memory.MemoryPointer(mem, 0), 8) == b"\5" * 8
