"""Functions that touch device memory which no argument of the call names."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import halstream as hs
import numpy as np
from halstream import acl
from halstream.cupy import cuda as cupy_cuda
from halstream.mindspore import hal
from halstream.paddle import device
from halstream.torch import cuda

from ._acl import begin, device_block, host_block, made, ok
from ._host import Host, N, pinned_numbers
from ._shapes_help import Shapes, streams

SHAPES = Shapes("function with undeclared accesses")
TABLES: dict[str, np.ndarray] = {}


@SHAPES.add("core")
def captured_by_a_loop(ordered: bool) -> None:
    """A closure made in a loop keeps the array of its turn; the reader waits for no turn."""
    host = Host()
    parts, outs = [host.numbers(1) for _ in range(3)], [host.numbers(0) for _ in range(3)]
    with streams() as (writer, reader):
        for i, part in enumerate(parts):
            view = np.asarray(part)

            def scale(view: np.ndarray = view, i: int = i) -> None:
                view[:] = view * (i + 2)

            writer.call(scale)
        host.step()
        if ordered:
            reader.wait_stream(writer)
        for part, out in zip(parts, outs, strict=True):
            out.copy_from(part, reader)
        assert [int(out.numpy(reader)[0]) for out in outs] == [2, 3, 4]


@SHAPES.add("core")
def captured_two_functions_deep(ordered: bool) -> None:
    """The function calls a helper that captured the array."""
    host = Host()
    counts, out = host.numbers(1), host.numbers(0)
    view = np.asarray(counts)

    def bump(by: int) -> None:
        view[:] += by

    with streams() as (one, two):
        one.call(lambda: bump(4))
        host.step()
        if ordered:
            two.wait(one.record())
        out.copy_from(counts, two)
        assert out.numpy(two).tolist() == [5] * N


@SHAPES.add("torch")
def optimizer_method(ordered: bool) -> None:
    """An optimizer's bound method updates weights that another stream sends away."""

    class Optimizer:
        def __init__(self, weights: np.ndarray) -> None:
            self.groups = [{"weights": weights, "rate": 3}]

        def step(self) -> None:
            for group in self.groups:
                group["weights"] += group["rate"]

    host = Host()
    weights, sent = host.numbers(1), pinned_numbers(0)
    optimizer = Optimizer(np.asarray(weights))
    with streams(cuda.Stream) as (compute, transfer):
        compute.call(optimizer.step)
        host.step()
        if ordered:
            transfer.wait_stream(compute)
        weights.copy_to(sent, transfer)
        transfer.synchronize()
        hs.host_access(sent, "r")
        assert sent.tolist() == [4] * N


@SHAPES.add("cupy")
def partial_of_copyto(ordered: bool) -> None:
    """A partial binds the target of a NumPy function."""
    host = Host()
    mask, out = host.numbers(0), host.numbers(0)
    with streams(lambda: cupy_cuda.Stream(non_blocking=True)) as (one, two):
        one.launch_host_func(lambda fill: fill(), functools.partial(np.copyto, np.asarray(mask), 6))
        host.step()
        if ordered:
            two.wait_event(one.record())
        out.copy_from(mask, two)
        assert out.numpy(two).tolist() == [6] * N


@SHAPES.add("paddle")
def table_of_views(ordered: bool) -> None:
    """A function picks a view from a dict of the module."""
    host = Host()
    embedding, out = host.numbers(2), host.numbers(0)
    TABLES["embedding"] = np.asarray(embedding)

    def clip() -> None:
        TABLES["embedding"][N // 2 :] = 0

    with streams(device.Stream) as (one, two):
        one.call(clip)
        host.step()
        if ordered:
            two.wait_stream(one)
        out.copy_from(embedding, two)
        assert int(out.numpy(two).sum()) == N
    TABLES.clear()


@SHAPES.add("mindspore")
def view_by_dlpack(ordered: bool) -> None:
    """A view taken by DLPack has the array's memory, and its own name."""
    host = Host()
    logits, out = host.numbers(9), host.numbers(0)
    shared = np.from_dlpack(logits)
    with streams(hal.Stream) as (one, two):
        one.call(lambda: shared.__setitem__(slice(8, 16), -1))
        host.step()
        if ordered:
            two.wait_stream(one)
        out.copy_from(logits, two)
        assert out.numpy(two)[8:16].tolist() == [-1] * 8


@SHAPES.add("core")
def kernel_with_a_global(ordered: bool) -> None:
    """A kernel's host form adds to a table that is no parameter."""
    host = Host()
    histogram, result, out = host.numbers(0), host.numbers(0), host.numbers(0)
    space: dict[str, Any] = {"histogram": np.asarray(histogram)}
    exec("def count(grid, block, result):\n    result[:] = 1\n    histogram[3] += 5\n", space)
    kernel = hs.Kernel(host=space["count"], name="count", signature="out int32 *result")
    with streams() as (one, two):
        one.launch(kernel, 1, 1, result)
        host.step()
        if ordered:
            two.wait(one.record())
        out.copy_from(histogram, two)
        assert int(out.numpy(two)[3]) == 5


@SHAPES.add("core")
def native_function_by_address(ordered: bool) -> None:
    """A function of a C library gets a pointer into a block, and nobody says what it does."""
    host = Host()
    block, out = host.numbers(1), host.numbers(0)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def clear(address: int) -> None:
        ctypes.memset(address, 0, 4 * N)

    with streams() as (one, two):
        one.call_native(ctypes.cast(clear, ctypes.c_void_p).value, block.ptr)
        host.step()
        if ordered:
            two.wait(one.record())
        out.copy_from(block, two)
        assert out.numpy(two).tolist() == [0] * N


@SHAPES.add("acl")
def host_function_of_a_stream(ordered: bool) -> None:
    """A host function works on memory through an array made from its address."""
    host = Host()
    begin()
    first, second = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    block, event = device_block(64), made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    view = np.frombuffer((ctypes.c_uint8 * 64).from_address(block), np.uint8)
    back, address = host_block(64)
    try:
        ok(acl.rt.launch_host_func(first, lambda value: view.__setitem__(slice(0, 32), value), 7))
        ok(acl.rt.record_event(event, first))
        host.step()
        if ordered:
            ok(acl.rt.stream_wait_event(second, event))
        ok(acl.rt.memcpy_async(address, 64, block, 64, acl.ACL_MEMCPY_DEVICE_TO_HOST, second))
        ok(acl.rt.synchronize_stream_with_timeout(second, 10_000))
        hs.host_access(back, "r")
        assert back[:32].tolist() == [7] * 32
    finally:
        ok(acl.rt.destroy_stream(first), acl.rt.destroy_stream(second), acl.rt.destroy_event(event))
        ok(acl.rt.free(block), acl.rt.free_host(address))


@SHAPES.add("torch")
def reader_by_closure(ordered: bool) -> None:
    """The function only reads what it captured, and the copy after it overwrites that."""
    host = Host()
    batch, following, losses = host.numbers(3), pinned_numbers(8), []
    view = np.asarray(batch)
    with streams(cuda.Stream) as (compute, loader):
        compute.call(lambda: losses.append(int(view.sum())))
        host.step()
        if ordered:
            loader.wait_stream(compute)
        batch.copy_from(following, loader)
        loader.synchronize()
        compute.synchronize()
        assert losses == [3 * N]


@SHAPES.add("mindspore")
def callable_object(ordered: bool) -> None:
    """An object with `__call__` and slots reads its own field as a whole."""

    class Probe:
        __slots__ = ("field", "sums")

        def __init__(self, field: np.ndarray) -> None:
            self.field, self.sums = field, []

        def __call__(self) -> None:
            self.sums.append(int(np.dot(self.field, self.field)))

    host = Host()
    field = host.numbers(2)
    probe = Probe(np.asarray(field))
    with streams(hal.Stream) as (one, two):
        one.call(probe)
        host.step()
        if ordered:
            two.wait_stream(one)
        field.fill(0, two)
        two.synchronize()
        one.synchronize()
        assert probe.sums == [4 * N]


@SHAPES.add("core")
def one_element_read(ordered: bool) -> None:
    """A function reads one element of the array that it captures, through an index."""
    host = Host()
    flags, seen = host.numbers(1), []
    view = np.asarray(flags)
    with streams() as (one, two):
        one.call(lambda: seen.append(int(view[5])))
        host.step()
        if ordered:
            two.wait(one.record())
        flags.fill(4, two)
        two.synchronize()
        one.synchronize()
        assert seen == [1]


@SHAPES.add("paddle", found="strict")
def element_of_a_list_read(ordered: bool) -> None:
    """A function sums one array of several."""
    host = Host()
    stages, seen = [host.numbers(i) for i in range(3)], []
    views = [np.asarray(stage) for stage in stages]

    def look(i: int) -> None:
        seen.append(int(views[i].sum()))

    with streams(device.Stream) as (one, two):
        one.call(look, 2)
        host.step()
        if ordered:
            two.wait_stream(one)
        stages[2].fill(0, two)
        two.synchronize()
        one.synchronize()
        assert seen == [2 * N]


@SHAPES.add("core")
def class_attribute(ordered: bool) -> None:
    """A class method writes into the array that all objects of its class share."""

    class Cache:
        lines: np.ndarray

        @classmethod
        def evict(cls, line: int) -> None:
            cls.lines[line] = -1

    host = Host()
    lines, out = host.numbers(0), host.numbers(0)
    Cache.lines = np.asarray(lines)
    with streams() as (one, two):
        one.call(Cache.evict, 7)
        host.step()
        if ordered:
            two.wait(one.record())
        out.copy_from(lines, two)
        assert int(out.numpy(two)[7]) == -1


@SHAPES.add("cupy")
def callback_with_an_object(ordered: bool) -> None:
    """A callback gets its work by its argument, a dict."""
    host = Host()
    scores, out = host.numbers(5), host.numbers(0)
    work = {"scores": np.asarray(scores), "limit": 2}

    def clamp(stream: object, status: int, given: dict[str, Any]) -> None:
        np.minimum(given["scores"], given["limit"], out=given["scores"])

    with streams(lambda: cupy_cuda.Stream(non_blocking=True)) as (one, two):
        one.add_callback(clamp, work)
        host.step()
        if ordered:
            two.wait_event(one.record())
        out.copy_from(scores, two)
        assert out.numpy(two).tolist() == [2] * N


@SHAPES.add("core")
def two_functions_of_one_view(ordered: bool) -> None:
    """Two functions on two streams write the same elements through closures."""
    host = Host()
    totals = host.numbers(0)
    view = np.asarray(totals)
    with streams() as (one, two):
        one.call(lambda: view.__setitem__(slice(0, 8), 1))
        host.step()
        if ordered:
            two.wait(one.record())
        two.call(lambda: view.__setitem__(slice(4, 12), 2))
        two.synchronize()
        one.synchronize()
        assert totals.numpy(two)[4:8].tolist() == [2] * 4
