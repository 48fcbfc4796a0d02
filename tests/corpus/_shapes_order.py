"""Events and streams with one wait missing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import halstream as hs
import halstream.cupy as cp
import halstream.mindspore as ms
import halstream.paddle as paddle
from halstream import acl
from halstream.cupy import cuda as cupy_cuda
from halstream.mindspore import hal
from halstream.paddle import device
from halstream.torch import cuda

from ._acl import begin, device_block, host_block, made, ok
from ._host import Host, N, rest
from ._shapes_help import Shapes, streams

SHAPES = Shapes("order of streams")


def cupy_stream() -> cupy_cuda.Stream:
    """Return a stream without order with the default stream."""
    return cupy_cuda.Stream(non_blocking=True)


# -- events -------------------------------------------------------------------------


@SHAPES.add("torch")
def recorded_before_the_last_kernel(ordered: bool) -> None:
    """An event is recorded, and one more kernel follows."""
    host = Host()
    x, out, event = host.numbers(0), host.numbers(0), cuda.Event()
    with streams(cuda.Stream) as (one, two):
        x.fill(1, one)
        event.record(one)
        x.fill(2, one)
        host.step()
        if ordered:
            event.record(one)
        two.wait_event(event)
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [2] * N


@SHAPES.add("core")
def waits_for_an_unrecorded_event(ordered: bool) -> None:
    """A consumer is wired up before its producer: the event it waits for has no record."""
    host = Host()
    x, out, event = host.numbers(0), host.numbers(0), hs.Event()
    with streams() as (one, two):
        if ordered:
            x.fill(3, one)
            one.record(event)
        two.wait(event)
        if not ordered:
            x.fill(3, one)
            one.record(event)
        host.step()
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [3] * N


@SHAPES.add("paddle")
def recorded_on_the_current_stream(ordered: bool) -> None:
    """`record` without a stream records on the current one, which has done nothing."""
    host = Host()
    x, out, event = host.numbers(0), host.numbers(0), device.Event()
    with streams(device.Stream) as (one, two):
        x.fill(4, one)
        event.record(one) if ordered else event.record()
        host.step()
        two.wait_event(event)
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [4] * N


@SHAPES.add("mindspore")
def waits_for_itself(ordered: bool) -> None:
    """The stream waits for its own event instead of the other's."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    with streams(hal.Stream) as (one, two):
        x.fill(5, one)
        event = (one if ordered else two).record_event()
        host.step()
        two.wait_event(event)
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [5] * N


@SHAPES.add("cupy")
def wait_in_the_wrong_direction(ordered: bool) -> None:
    """The producer waits for the consumer."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    with streams(cupy_stream) as (one, two):
        x.fill(6, one)
        if ordered:
            two.wait_event(one.record())
        else:
            one.wait_event(two.record())
        host.step()
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [6] * N


@SHAPES.add("acl")
def event_set_since_the_turn_before(ordered: bool) -> None:
    """The record of this turn is missing, and an event of CANN stays set since the turn before."""
    host = Host()
    begin()
    one, two = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    event = made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    block = device_block(64)
    back, address = host_block(64)
    try:
        ok(acl.rt.record_event(event, one))
        ok(acl.rt.synchronize_stream_with_timeout(one, 10_000))
        ok(acl.rt.memset_async(block, 64, 3, 64, one))
        if ordered:
            ok(acl.rt.reset_event(event, one), acl.rt.record_event(event, one))
            ok(acl.rt.synchronize_stream_with_timeout(one, 10_000))  # the reset has taken back the turn before
        host.step()
        ok(acl.rt.stream_wait_event(two, event))
        ok(acl.rt.memcpy_async(address, 64, block, 64, acl.ACL_MEMCPY_DEVICE_TO_HOST, two))
        ok(acl.rt.synchronize_stream_with_timeout(two, 10_000))
        hs.host_access(back, "r")
        assert back.tolist() == [3] * 64
    finally:
        ok(acl.rt.destroy_stream(one), acl.rt.destroy_stream(two), acl.rt.destroy_event(event))
        ok(acl.rt.free(block), acl.rt.free_host(address))


@SHAPES.add("torch")
def timing_events_only(ordered: bool) -> None:
    """Events that measure time stand at the right places, and nobody waits for them."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with streams(cuda.Stream) as (one, two):
        start.record(one)
        x.fill(7, one)
        end.record(one)
        host.step()
        if ordered:
            two.wait_event(end)
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [7] * N
        end.synchronize()
        assert start.elapsed_time(end) >= 0


@SHAPES.add("cupy")
def start_event_instead_of_stop(ordered: bool) -> None:
    """The consumer waits for the event at the beginning of the measurement."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    start, stop = cupy_cuda.Event(), cupy_cuda.Event()
    with streams(cupy_stream) as (one, two):
        start.record(one)
        x.fill(8, one)
        stop.record(one)
        host.step()
        two.wait_event(stop if ordered else start)
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [8] * N


@SHAPES.add("torch")
def priority_is_no_order(ordered: bool) -> None:
    """A stream of high priority is expected to come first."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    urgent, usual = cuda.Stream(priority=-1), cuda.Stream()
    try:
        x.fill(9, urgent)
        host.step()
        if ordered:
            usual.wait_stream(urgent)
        out.copy_from(x, usual)
        assert out.numpy(usual).tolist() == [9] * N
    finally:
        rest(urgent, usual)


# -- contexts -----------------------------------------------------------------------


@SHAPES.add("torch")
def context_that_restores_the_wrong_stream(ordered: bool) -> None:
    """A context manager of the program ends with the default stream instead of what was current."""

    @contextlib.contextmanager
    def using(stream: cuda.Stream) -> Iterator[None]:
        before = cuda.current_stream()
        cuda.set_stream(stream)
        try:
            yield
        finally:
            cuda.set_stream(before if ordered else cuda.default_stream())

    host = Host()
    x, out, other = host.numbers(0), host.numbers(0), host.numbers(0)
    with streams(cuda.Stream) as (one, two):
        with cuda.stream(one):
            x.fill(1, cuda.current_stream())
            with using(two):
                other.fill(2, cuda.current_stream())
            host.step()
            out.copy_from(x, cuda.current_stream())
        cuda.synchronize()
        assert out.numpy(one).tolist() == [1] * N


@SHAPES.add("cupy")
def use_survives_a_helper(ordered: bool) -> None:
    """A helper calls `use` for its own stream and returns."""

    def log(stream: cupy_cuda.Stream, x: cp.ndarray) -> None:
        before = cupy_cuda.get_current_stream()
        stream.use()
        x.fill(0)
        if ordered:
            before.use()

    host = Host()
    before = cupy_cuda.get_current_stream()
    with streams(cupy_stream) as (main, side):
        try:
            with side:
                noise = cp.zeros(N, "i4")
            main.use()
            x = cp.full(N, 3, "i4")
            host.step()
            log(side, noise)
            y = x * 2
            main.synchronize()
            side.synchronize()
            assert y.tolist() == [6] * N
        finally:
            before.use()


@SHAPES.add("mindspore")
def operator_outside_the_context(ordered: bool) -> None:
    """The second operator stands behind the `with`, on the default stream."""
    host = Host()
    with streams(hal.Stream, 1) as (side,):
        x = ms.ops.ones(N, ms.float32)
        hal.synchronize()
        with hal.StreamCtx(side):
            y = x + 4
        host.step()
        if ordered:
            hal.default_stream().wait_stream(side)
        z = y * 2
        hal.default_stream().synchronize()
        side.synchronize()
        assert float(z.asnumpy()[0]) == 10.0


@SHAPES.add("paddle")
def guard_of_another_stream(ordered: bool) -> None:
    """The wait is asked of the stream that was current before the guard."""
    host = Host()
    device.set_device("gpu:0")
    with streams(device.Stream) as (one, two):
        with device.stream_guard(one):
            x = paddle.full([N], 3.0)
        current = device.current_stream()
        with device.stream_guard(two):
            (two if ordered else current).wait_stream(one)
            host.step()
            y = x * 2
        two.synchronize()
        one.synchronize()
        assert float(y.numpy()[0]) == 6.0
        current.synchronize()
