"""Pinned, pageable and managed memory, blocking calls, lifetimes, pools and staging buffers."""

from __future__ import annotations

import halstream as hs
import halstream.cupy as cp
import halstream.paddle as paddle
import numpy as np
from halstream import acl
from halstream.cupy import cuda as cupy_cuda
from halstream.cupy.cuda import runtime
from halstream.mindspore import hal
from halstream.paddle import device
from halstream.torch import cuda

from ._acl import begin, device_block, host_block, made, ok
from ._host import LIMIT, Host, N, pinned_numbers, read
from ._shapes_help import Shapes, streams

SHAPES = Shapes("memory and what calls order")
H2D, D2H, D2D = 1, 2, 3


def cupy_stream() -> cupy_cuda.Stream:
    """Return a stream without order with the default stream."""
    return cupy_cuda.Stream(non_blocking=True)


# -- the host's own accesses --------------------------------------------------------


@SHAPES.add("torch")
def metrics_read_early(ordered: bool) -> None:
    """The host logs a number whose copy back it only asked to begin."""
    host = Host()
    metric, logged = host.numbers(6), pinned_numbers(0)
    with streams(cuda.Stream, 1) as (stream,):
        metric.copy_to(logged, stream)
        done = stream.record_event()
        host.step()
        if ordered:
            done.synchronize()
        assert read(logged) == [6] * N


@SHAPES.add("mindspore")
def refill_without_a_word(ordered: bool) -> None:
    """The host refills pinned memory without a declaration while a copy of it is in flight."""
    host = Host()
    tokens, source = host.numbers(0), pinned_numbers(1)
    with streams(hal.Stream, 1) as (stream,):
        tokens.copy_from(source, stream)
        host.step()
        if ordered:
            stream.synchronize()
        source[:] = 2
        assert tokens.numpy(stream).tolist() == [1] * N


@SHAPES.add("paddle")
def host_writes_what_is_copied_back(ordered: bool) -> None:
    """The host clears a result buffer for the next round before the last round has filled it."""
    host = Host()
    result, back = host.numbers(5), pinned_numbers(9)
    with streams(device.Stream, 1) as (stream,):
        result.copy_to(back, stream)
        host.step()
        if ordered:
            stream.synchronize()
        hs.host_access(back, "w")
        back[:] = 0
        stream.synchronize()
        assert read(back) == [0] * N


@SHAPES.add("core")
def one_staging_buffer_for_two_streams(ordered: bool) -> None:
    """One staging buffer serves two streams; the host waits for the stream that used it last but one."""
    host = Host()
    staging, one_out, two_out = pinned_numbers(0), host.numbers(0), host.numbers(0)
    with streams() as (one, two):
        for value, out, stream in ((1, one_out, one), (2, two_out, two), (3, host.numbers(0), one)):
            last = {1: one, 2: one, 3: two if ordered else one}[value]
            last.synchronize(timeout=LIMIT)
            hs.host_access(staging, "w")
            staging[:] = value
            out.copy_from(staging, stream)
            host.step()
        assert two_out.numpy(two).tolist() == [2] * N


@SHAPES.add("acl")
def two_staging_halves(ordered: bool) -> None:
    """A staging block has two halves; the third batch takes the first half again without a wait."""
    host = Host()
    begin()
    stream = made(acl.rt.create_stream())
    first = made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    halves, address = host_block(128)
    blocks = [device_block(64) for _ in range(3)]
    back, result = host_block(64)
    try:
        for i, block in enumerate(blocks):
            at = 64 * (i % 2)
            if i == 2 and ordered:
                ok(acl.rt.synchronize_event_with_timeout(first, 10_000))
            hs.host_access(halves[at : at + 64], "w")
            halves[at : at + 64] = i + 1
            ok(acl.rt.memcpy_async(block, 64, address + at, 64, acl.ACL_MEMCPY_HOST_TO_DEVICE, stream))
            if not i:
                ok(acl.rt.record_event(first, stream))
            host.step()
        ok(acl.rt.memcpy_async(result, 64, blocks[0], 64, acl.ACL_MEMCPY_DEVICE_TO_HOST, stream))
        ok(acl.rt.synchronize_stream_with_timeout(stream, 10_000))
        hs.host_access(back, "r")
        assert back.tolist() == [1] * 64
    finally:
        ok(acl.rt.destroy_stream(stream), acl.rt.destroy_event(first), *map(acl.rt.free, blocks))
        ok(acl.rt.free_host(address), acl.rt.free_host(result))


# -- what calls wait for ------------------------------------------------------------


@SHAPES.add("cupy", schedule=False)
def copy_within_the_device(ordered: bool) -> None:
    """A copy within the device is no wait of the host: a stream without order with it goes on at once."""
    host = Host()
    source, target = host.numbers(4), host.numbers(0)
    with streams(cupy_stream, 1) as (other,):
        runtime.memcpy(target.ptr, source.ptr, target.nbytes, D2D)
        if ordered:
            cupy_cuda.Stream.null.synchronize()
        assert target.numpy(other).tolist() == [4] * N


@SHAPES.add("cupy", schedule=False)
def pageable_copy_is_not_there(ordered: bool) -> None:
    """A copy from pageable memory may return before the device has it."""
    host = Host()
    target = host.numbers(0)
    source = np.full(N, 4, np.int32)  # a name: the address of an array that is given up would be nobody's
    with streams(cupy_stream, 1) as (other,):
        runtime.memcpy(target.ptr, source.ctypes.data, target.nbytes, H2D)
        if ordered:
            runtime.streamSynchronize(0)
        assert target.numpy(other).tolist() == [4] * N


@SHAPES.add("cupy")
def blocking_fill_is_not_done(ordered: bool) -> None:
    """A fill of device memory without the suffix Async does not wait."""
    host = Host()
    target = host.numbers(9)
    with streams(cupy_stream, 1) as (other,):
        runtime.memset(target.ptr, 0, target.nbytes)
        host.step()
        if ordered:
            runtime.deviceSynchronize()
        assert target.numpy(other).tolist() == [0] * N
        cupy_cuda.Stream.null.synchronize()


@SHAPES.add("cupy", schedule=False)
def asynchronous_copy_to_pageable(ordered: bool) -> None:
    """The host reads a list of numbers to which an asynchronous copy goes."""
    host = Host()
    source, target = host.numbers(4), np.zeros(N, np.int32)
    with streams(cupy_stream, 1) as (stream,):
        runtime.memcpyAsync(target.ctypes.data, source.ptr, source.nbytes, D2H, stream.ptr)
        if ordered:
            stream.synchronize()
        assert read(target) == [4] * N


@SHAPES.add("cupy")
def managed_memory_by_two_streams(ordered: bool) -> None:
    """Managed memory is filled on one stream and copied away on another."""
    host = Host()
    memory = cupy_cuda.ManagedMemory(4 * N)
    out = host.numbers(9)
    with streams(cupy_stream) as (one, two):
        runtime.memsetAsync(memory.ptr, 0, 4 * N, one.ptr)
        host.step()
        if ordered:
            runtime.streamWaitEvent(two.ptr, one.record().ptr)
        runtime.memcpyAsync(out.ptr, memory.ptr, 4 * N, D2D, two.ptr)
        runtime.memsetAsync(memory.ptr, 1, 4 * N, two.ptr)
        assert out.numpy(two).tolist() == [0] * N


@SHAPES.add("acl")
def blocking_copy_without_a_stream(ordered: bool) -> None:
    """A copy to the device from pinned memory, without a stream, while a stream still works on the target."""
    host = Host()
    begin()
    stream, block = made(acl.rt.create_stream()), device_block(64)
    source, address = host_block(64)
    back, result = host_block(64)
    try:
        hs.host_access(source, "w")
        source[:] = 3
        ok(acl.rt.memcpy_async(result, 64, block, 64, acl.ACL_MEMCPY_DEVICE_TO_HOST, stream))
        host.step()
        if ordered:
            ok(acl.rt.synchronize_stream_with_timeout(stream, 10_000))
        ok(acl.rt.memcpy(block, 64, address, 64, acl.ACL_MEMCPY_HOST_TO_DEVICE))
        ok(acl.rt.synchronize_stream_with_timeout(stream, 10_000))
        hs.host_access(back, "r")
        assert back.tolist() == [0] * 64
    finally:
        ok(acl.rt.destroy_stream(stream), acl.rt.free(block), acl.rt.free_host(address), acl.rt.free_host(result))


# -- the default stream -------------------------------------------------------------


@SHAPES.add("torch")
def side_stream_and_default_stream(ordered: bool) -> None:
    """torch's own streams take no part in the order of the default stream."""
    host = Host()
    weights, out = host.numbers(1), host.numbers(0)
    default = cuda.default_stream()
    with streams(cuda.Stream, 1) as (side,):
        weights.fill(2, default)
        host.step()
        if ordered:
            side.wait_stream(default)
        out.copy_from(weights, side)
        assert out.numpy(side).tolist() == [2] * N
        default.synchronize()


@SHAPES.add("core")
def one_of_two_streams_is_blocking(ordered: bool) -> None:
    """Work on the default stream orders a blocking stream, and not the non-blocking one beside it."""
    host = Host()
    array, out = host.numbers(1), host.numbers(0)
    default = hs.Stream.from_handle(0, 0)
    with streams() as (one, two):
        blocking = hs.Stream(0)
        array.fill(5, one)
        host.step()
        if ordered:
            default.wait(one.record())
        default.nop()
        out.copy_from(array, blocking)
        assert out.numpy(blocking).tolist() == [5] * N
        two.nop()


@SHAPES.add("cupy")
def null_stream_after_a_non_blocking_one(ordered: bool) -> None:
    """The null stream copies what a non-blocking stream fills."""
    host = Host()
    array, out = host.numbers(1), host.numbers(0)
    make = cupy_stream if not ordered else cupy_cuda.Stream
    with streams(make, 1) as (one,):
        array.fill(5, one)
        host.step()
        out.copy_from(array, cupy_cuda.Stream.null)
        cupy_cuda.Stream.null.synchronize()
        assert out.numpy(one).tolist() == [5] * N


# -- lifetimes ----------------------------------------------------------------------


@SHAPES.add("torch")
def temporary_on_another_stream(ordered: bool) -> None:
    """A temporary of the main stream is dropped while the side stream copies it."""
    host = Host()
    kept = pinned_numbers(0)
    with streams(cuda.Stream) as (main, side):
        temporary = hs.empty(N, np.int32, stream=main)
        temporary.fill(1, main)
        side.wait_stream(main)
        host.step()
        temporary.copy_to(kept, side)
        if ordered:
            temporary.record_stream(side)
        del temporary
        host.step()
        following = hs.empty(N, np.int32, stream=main)
        following.fill(2, main)
        main.synchronize()
        side.synchronize()
        assert read(kept) == [1] * N


@SHAPES.add("torch")
def recorded_for_the_wrong_stream(ordered: bool) -> None:
    """`record_stream` names the stream of allocation instead of the one that reads."""
    host = Host()
    kept = pinned_numbers(0)
    with streams(cuda.Stream) as (main, side):
        gradient = hs.empty(N, np.int32, stream=main)
        gradient.fill(1, main)
        side.wait_stream(main)
        host.step()
        gradient.copy_to(kept, side)
        gradient.record_stream(side if ordered else main)
        del gradient
        host.step()
        following = hs.empty(N, np.int32, stream=main)
        following.fill(2, main)
        main.synchronize()
        side.synchronize()
        assert read(kept) == [1] * N


@SHAPES.add("cupy")
def array_dropped_in_a_function(ordered: bool) -> None:
    """A helper's array dies when the helper returns; its pool gives the memory to the next one."""

    def offload(main: cupy_cuda.Stream, side: cupy_cuda.Stream) -> cp.ndarray:
        with main:
            scratch = cp.full(N, 3, "i4")
        side.wait_event(main.record())
        with side:
            copied = scratch.copy()
        if ordered:
            main.wait_event(side.record())
        return copied

    host = Host()
    with streams(cupy_stream) as (main, side):
        kept = offload(main, side)
        host.step()
        with main:
            following = cp.full(N, 4, "i4")
        main.synchronize()
        with side:
            assert kept.tolist() == [3] * N
        assert following.size == N


@SHAPES.add("paddle")
def tensor_dropped_by_its_name(ordered: bool) -> None:
    """A tensor's name is bound to another one while the side stream still reads the first."""
    host = Host()
    device.set_device("gpu:0")
    with streams(device.Stream) as (main, side):
        with device.stream_guard(main):
            x = paddle.full([N], 2.0)
        side.wait_stream(main)
        with device.stream_guard(side):
            doubled = x * 2
        host.step()
        if ordered:
            main.wait_stream(side)
        del x
        with device.stream_guard(main):
            x = paddle.full([N], 7.0)
        main.synchronize()
        side.synchronize()
        assert float(doubled.numpy()[0]) == 4.0
        assert float(x.numpy()[0]) == 7.0


@SHAPES.add("cupy")
def freed_on_the_allocating_stream(ordered: bool) -> None:
    """Stream-ordered memory is freed on a stream that did not wait for its reader."""
    host = Host()
    out = host.numbers(0)
    with streams(cupy_stream) as (one, two):
        pointer = runtime.mallocAsync(4 * N, one.ptr)
        runtime.memsetAsync(pointer, 0, 4 * N, one.ptr)
        two.wait_event(one.record())
        runtime.memcpyAsync(out.ptr, pointer, 4 * N, D2D, two.ptr)
        host.step()
        if ordered:
            one.wait_event(two.record())
        runtime.freeAsync(pointer, one.ptr)
        again = runtime.mallocAsync(4 * N, one.ptr)
        runtime.memsetAsync(again, 1, 4 * N, one.ptr)
        one.synchronize()
        assert out.numpy(two).tolist() == [0] * N
        runtime.freeAsync(again, one.ptr)


@SHAPES.add("core")
def borrowed_memory_of_numpy(ordered: bool) -> None:
    """An array on borrowed memory is filled while another stream reads it."""
    host = Host()
    base, out = host.numbers(1), host.numbers(0)
    borrowed = hs.from_dlpack(base)
    with streams() as (one, two):
        borrowed.fill(8, one)
        host.step()
        if ordered:
            two.wait(one.record())
        out.copy_from(base, two)
        assert out.numpy(two).tolist() == [8] * N
