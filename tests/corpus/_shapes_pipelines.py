"""Rings, diamonds and several devices with one wait missing."""

from __future__ import annotations

import halstream as hs
from halstream import acl
from halstream.cupy import cuda as cupy_cuda
from halstream.cupy.cuda import runtime
from halstream.mindspore import hal
from halstream.paddle import device
from halstream.torch import cuda

from ._acl import begin, device_block, host_block, made, ok
from ._host import LIMIT, Host, N, pinned_numbers, read, rest
from ._shapes_help import Shapes, streams
from ._shapes_order import cupy_stream

SHAPES = Shapes("rings, diamonds and devices")


# -- rings and buffers --------------------------------------------------------------


@SHAPES.add("torch")
def double_buffer_without_its_last_wait(ordered: bool) -> None:
    """Two buffers in turn; only the fourth load does not wait for the use of its buffer."""
    host = Host()
    buffers, used = [host.numbers(0) for _ in range(2)], [cuda.Event() for _ in range(2)]
    outs = [host.numbers(0) for _ in range(5)]
    with streams(cuda.Stream) as (loader, compute):
        for turn, out in enumerate(outs):
            slot = turn % 2
            if turn != 3 or ordered:
                loader.wait_event(used[slot])
            buffers[slot].fill(turn + 1, loader)
            compute.wait_stream(loader)
            out.copy_from(buffers[slot], compute)
            used[slot].record(compute)
            host.step()
        assert [int(out.numpy(compute)[0]) for out in outs] == [1, 2, 3, 4, 5]


@SHAPES.add("mindspore")
def ring_whose_consumer_skips_a_turn(ordered: bool) -> None:
    """A ring of three; the consumer does not wait in the turn in which it logs."""
    host = Host()
    ring, outs = [host.numbers(0) for _ in range(3)], [host.numbers(0) for _ in range(6)]
    with streams(hal.Stream) as (producer, consumer):
        free: list[hal.Event] = []
        for turn, out in enumerate(outs):
            if turn >= 3:
                producer.wait_event(free[turn - 3])
            ring[turn % 3].fill(turn + 10, producer)
            if turn != 4 or ordered:
                consumer.wait_stream(producer)
            host.step()
            out.copy_from(ring[turn % 3], consumer)
            free.append(consumer.record_event())
        assert [int(out.numpy(consumer)[0]) for out in outs] == [10, 11, 12, 13, 14, 15]


@SHAPES.add("core")
def ring_that_is_drained_short(ordered: bool) -> None:
    """At the end the host waits for all results but the last."""
    host = Host()
    x, backs = [host.numbers(i) for i in range(4)], [pinned_numbers(9) for _ in range(4)]
    with streams(count=1) as (stream,):
        events = []
        for source, back in zip(x, backs, strict=True):
            source.copy_to(back, stream)
            events.append(stream.record())
        host.step()
        events[-1 if ordered else -2].synchronize(timeout=LIMIT)
        assert [read(back)[0] for back in backs] == [0, 1, 2, 3]


@SHAPES.add("paddle")
def events_of_the_wrong_turn(ordered: bool) -> None:
    """The consumer waits for the event of the turn before."""
    host = Host()
    xs, outs = [host.numbers(0) for _ in range(3)], [host.numbers(0) for _ in range(3)]
    with streams(device.Stream) as (one, two):
        ready = [device.Event() for _ in xs]
        for i, x in enumerate(xs):
            x.fill(i + 1, one)
            ready[i].record(one)
        host.step()
        for i, (x, out) in enumerate(zip(xs, outs, strict=True)):
            two.wait_event(ready[i if ordered else max(i - 1, 0)])
            out.copy_from(x, two)
        assert [int(out.numpy(two)[0]) for out in outs] == [1, 2, 3]


# -- three streams and more ---------------------------------------------------------


@SHAPES.add("core")
def diamond_with_one_side(ordered: bool) -> None:
    """Two branches of a fork, and the join waits for one."""
    host = Host()
    source, left, right, out = (host.numbers(i) for i in (1, 0, 0, 0))
    with streams(count=3) as (root, one, two):
        source.fill(2, root)
        fork = root.record()
        one.wait(fork)
        two.wait(fork)
        left.copy_from(source, one)
        right.copy_from(source, two)
        host.step()
        root.wait(one.record())
        if ordered:
            root.wait(two.record())
        out.copy_from(right, root)
        source.fill(0, root)
        assert out.numpy(root).tolist() == [2] * N


@SHAPES.add("cupy")
def diamond_without_a_fork(ordered: bool) -> None:
    """The second branch does not wait for the root."""
    host = Host()
    source, left, right = (host.numbers(i) for i in (1, 0, 0))
    with streams(cupy_stream, 3) as (root, one, two):
        source.fill(2, root)
        fork = root.record()
        one.wait_event(fork)
        if ordered:
            two.wait_event(fork)
        host.step()
        left.copy_from(source, one)
        right.copy_from(source, two)
        assert left.numpy(one).tolist() == right.numpy(two).tolist() == [2] * N


@SHAPES.add("acl")
def chain_of_three(ordered: bool) -> None:
    """The third stream waits for an event of the second that was recorded before the second waited."""
    host = Host()
    begin()
    one, two, three = (made(acl.rt.create_stream()) for _ in range(3))
    first, second = (made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC)) for _ in range(2))
    block = device_block(64)
    back, address = host_block(64)
    try:
        ok(acl.rt.memset_async(block, 64, 5, 64, one), acl.rt.record_event(first, one))
        if ordered:
            ok(acl.rt.stream_wait_event(two, first), acl.rt.record_event(second, two))
        else:
            ok(acl.rt.record_event(second, two), acl.rt.stream_wait_event(two, first))
        host.step()
        ok(acl.rt.stream_wait_event(three, second))
        ok(acl.rt.memcpy_async(address, 64, block, 64, acl.ACL_MEMCPY_DEVICE_TO_HOST, three))
        ok(acl.rt.synchronize_stream_with_timeout(three, 10_000))
        hs.host_access(back, "r")
        assert back.tolist() == [5] * 64
    finally:
        ok(*map(acl.rt.destroy_stream, (one, two, three)), *map(acl.rt.destroy_event, (first, second)))
        ok(acl.rt.free(block), acl.rt.free_host(address))


@SHAPES.add("torch")
def two_readers_one_of_them_joined(ordered: bool) -> None:
    """A writer waits for one of two readers."""
    host = Host()
    x, one_out, two_out = host.numbers(3), host.numbers(0), host.numbers(0)
    with streams(cuda.Stream, 3) as (writer, one, two):
        one_out.copy_from(x, one)
        two_out.copy_from(x, two)
        host.step()
        writer.wait_stream(one)
        if ordered:
            writer.wait_stream(two)
        x.fill(0, writer)
        writer.synchronize()
        assert two_out.numpy(two).tolist() == [3] * N


# -- two devices --------------------------------------------------------------------


@SHAPES.add("cupy")
def peer_copy_read_on_the_other_side(ordered: bool) -> None:
    """A copy between devices runs on the sender's stream; the receiver reads without a wait."""
    host = Host()
    sent, arrived, out = host.numbers(4), host.numbers(0, device=1), host.numbers(0, device=1)
    with cupy_cuda.Device(1):
        receiver = cupy_stream()
    with streams(cupy_stream, 1) as (sender,):
        runtime.memcpyPeerAsync(arrived.ptr, 1, sent.ptr, 0, sent.nbytes, sender.ptr)
        host.step()
        if ordered:
            receiver.wait_event(sender.record())
        out.copy_from(arrived, receiver)
        assert out.numpy(receiver).tolist() == [4] * N


@SHAPES.add("torch")
def one_device_synchronized(ordered: bool) -> None:
    """`synchronize` of a device says nothing about the other one."""
    host = Host()
    x, back = host.numbers(4, device=1), pinned_numbers(0)
    with streams(lambda: cuda.Stream(device=1), 1) as (stream,):
        x.copy_to(back, stream)
        host.step()
        cuda.synchronize(1 if ordered else 0)
        assert read(back) == [4] * N


@SHAPES.add("paddle")
def gradient_sent_before_it_is_ready(ordered: bool) -> None:
    """A stream of the second device fetches what the first device still computes."""
    host = Host()
    gradient, mean = host.numbers(0), host.numbers(0, device=1)
    compute, fetch = device.Stream("gpu:0"), device.Stream("gpu:1")
    try:
        gradient.fill(6, compute)
        done = compute.record_event()
        host.step()
        if ordered:
            fetch.wait_event(done)
        mean.copy_from(gradient, fetch)
        assert mean.numpy(fetch).tolist() == [6] * N
    finally:
        rest(compute, fetch)
