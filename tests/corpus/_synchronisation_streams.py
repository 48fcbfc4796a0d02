"""Values, events, queries and captures that are used wrongly."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Iterator
from typing import NamedTuple

import halstream as hs
import numpy as np
from halstream import acl
from halstream.mindspore import hal
from halstream.torch import cuda

from ._acl import begin, device_block, host_block, made, ok
from ._host import LIMIT, Host, N, pinned_numbers, read, rest
from ._shapes_help import Shapes, streams
from ._shapes_order import cupy_stream

SHAPES = Shapes("synchronisation on the device")


# -- values that streams write and wait for -----------------------------------------


class Cells(NamedTuple):
    """Two streams of AscendCL, bytes that they work on, and numbers of 64 bits that they wait for."""

    one: int
    two: int
    block: int
    flag: int
    other_flag: int
    back: np.ndarray
    back_address: int


SIZE = 64


@contextlib.contextmanager
def cells() -> Iterator[Cells]:
    """Give the two streams; both are idle when the block ends, since every flag gets its highest value."""
    begin()
    one, two, last = (made(acl.rt.create_stream()) for _ in range(3))
    block, flags = device_block(SIZE), device_block(16)
    back, address = host_block(SIZE)
    try:
        yield Cells(one, two, block, flags, flags + 8, back, address)
    finally:
        ok(acl.rt.value_write(flags, 7, 0, last), acl.rt.value_write(flags + 8, 7, 0, last))
        for stream in (last, one, two):
            ok(acl.rt.synchronize_stream_with_timeout(stream, 10_000), acl.rt.destroy_stream(stream))
        ok(acl.rt.free(block), acl.rt.free(flags), acl.rt.free_host(address))


def fill(given: Cells, value: int, stream: int, begin_at: int = 0, size: int = SIZE) -> None:
    """Enqueue a fill of some of the bytes."""
    ok(acl.rt.memset_async(given.block + begin_at, size, value, size, stream))


def bytes_of(given: Cells, stream: int) -> list[int]:
    """Copy the bytes on a stream, wait for that, and return them."""
    size, to_host = SIZE, acl.ACL_MEMCPY_DEVICE_TO_HOST
    ok(acl.rt.memcpy_async(given.back_address, size, given.block, size, to_host, stream))
    if acl.rt.synchronize_stream(stream):
        raise hs.StallError(acl.get_recent_err_msg())
    hs.host_access(given.back, "r")
    return [int(value) for value in given.back]


AT_LEAST, EQUAL, ANY_BIT = acl.ACL_STREAM_WAIT_VALUE_GEQ, acl.ACL_STREAM_WAIT_VALUE_EQ, acl.ACL_STREAM_WAIT_VALUE_AND


@SHAPES.add("acl")
def value_of_the_turn_before(ordered: bool) -> None:
    """The wait of the second turn is content with the value that the first turn has left."""
    host = Host()
    with cells() as given:
        for turn in (1, 2):
            fill(given, turn, given.one)
            ok(acl.rt.value_write(given.flag, turn, 0, given.one))
            host.step()
            ok(acl.rt.value_wait(given.flag, turn if ordered else 1, AT_LEAST, given.two))
            assert bytes_of(given, given.two) == [turn] * SIZE


@SHAPES.add("acl")
def value_written_before_the_data(ordered: bool) -> None:
    """The producer writes the flag first and the data behind it."""
    host = Host()
    with cells() as given:
        if ordered:
            fill(given, 3, given.one)
        ok(acl.rt.value_write(given.flag, 1, 0, given.one))
        if not ordered:
            fill(given, 3, given.one)
        host.step()
        ok(acl.rt.value_wait(given.flag, 1, EQUAL, given.two))
        assert bytes_of(given, given.two) == [3] * SIZE


@SHAPES.add("acl")
def value_of_the_first_half(ordered: bool) -> None:
    """The producer counts the halves that are ready, and the reader of both waits for the first."""
    host = Host()
    with cells() as given:
        for half in (0, 1):
            fill(given, 4 + half, given.one, half * SIZE // 2, SIZE // 2)
            ok(acl.rt.value_write(given.flag, half + 1, 0, given.one))
        host.step()
        ok(acl.rt.value_wait(given.flag, 2 if ordered else 1, AT_LEAST, given.two))
        assert bytes_of(given, given.two) == [4] * (SIZE // 2) + [5] * (SIZE // 2)


@SHAPES.add("acl")
def one_flag_for_two_producers(ordered: bool) -> None:
    """Two producers write the same flag; the reader goes on after the first of them."""
    host = Host()
    begin()
    reader = made(acl.rt.create_stream())
    with cells() as given:
        fill(given, 6, given.one, 0, SIZE // 2)
        ok(acl.rt.value_write(given.flag, 1, 0, given.one))
        fill(given, 7, given.two, SIZE // 2, SIZE // 2)
        ok(acl.rt.value_write(given.other_flag if ordered else given.flag, 1, 0, given.two))
        host.step()
        ok(acl.rt.value_wait(given.flag, 1, EQUAL, reader))
        if ordered:
            ok(acl.rt.value_wait(given.other_flag, 1, EQUAL, reader))
        assert bytes_of(given, reader) == [6] * (SIZE // 2) + [7] * (SIZE // 2)
    ok(acl.rt.destroy_stream(reader))


@SHAPES.add("acl")
def any_bit_instead_of_all(ordered: bool) -> None:
    """The producer sets a bit for each half; a wait for a mask ends with any bit of it."""
    host = Host()
    with cells() as given:
        fill(given, 8, given.one, 0, SIZE // 2)
        ok(acl.rt.value_write(given.flag, 0b01, 0, given.one))
        fill(given, 9, given.one, SIZE // 2, SIZE // 2)
        ok(acl.rt.value_write(given.flag, 0b11, 0, given.one))
        host.step()
        ok(acl.rt.value_wait(given.flag, 0b10 if ordered else 0b11, ANY_BIT, given.two))
        assert bytes_of(given, given.two) == [8] * (SIZE // 2) + [9] * (SIZE // 2)


@SHAPES.add("acl", found="stall")
def value_that_nobody_writes(ordered: bool) -> None:
    """The reader waits for the number of a turn that does not come."""
    host = Host()
    with cells() as given:
        fill(given, 2, given.one)
        ok(acl.rt.value_write(given.flag, 1, 0, given.one))
        host.step()
        ok(acl.rt.value_wait(given.flag, 1 if ordered else 2, AT_LEAST, given.two))
        assert bytes_of(given, given.two) == [2] * SIZE


# -- events that are used again -----------------------------------------------------


@SHAPES.add("torch")
def one_event_for_two_producers(ordered: bool) -> None:
    """Two producers record one event, and only the second record counts."""
    host = Host()
    x, y, out = host.numbers(0), host.numbers(0), host.numbers(0)
    done = [cuda.Event(), cuda.Event()] if ordered else [cuda.Event()] * 2
    with streams(cuda.Stream, 3) as (one, two, reader):
        x.fill(1, one)
        done[0].record(one)
        y.fill(2, two)
        done[1].record(two)
        host.step()
        for event in done:
            reader.wait_event(event)
        out.copy_from(x, reader)
        assert out.numpy(reader).tolist() == [1] * N


@SHAPES.add("torch")
def event_reused_while_it_is_in_a_queue(ordered: bool) -> None:
    """An event goes into a queue with its job, and its next job records it again on another stream."""
    host, jobs = Host(), queue.SimpleQueue()
    inputs, out = [host.numbers(0), host.numbers(0)], host.numbers(0)
    event = cuda.Event()
    with streams(cuda.Stream, 3) as (one, two, reader):
        for number, stream in enumerate((one, two)):
            ready = cuda.Event() if ordered else event
            inputs[number].fill(number + 3, stream)
            ready.record(stream)
            jobs.put((inputs[number], ready))
        host.step()
        array, ready = jobs.get(timeout=LIMIT)
        reader.wait_event(ready)
        out.copy_from(array, reader)
        assert out.numpy(reader).tolist() == [3] * N


@SHAPES.add("mindspore")
def synchronized_before_it_is_recorded_again(ordered: bool) -> None:
    """The host synchronizes with the record of the first copy and reads what the second one brings."""
    host, done = Host(), hal.Event()
    first, second, back = host.numbers(1), host.numbers(2), pinned_numbers(0)
    with streams(hal.Stream, 1) as (stream,):
        first.copy_to(back, stream)
        done.record(stream)
        if not ordered:
            done.synchronize()
        second.copy_to(back, stream)
        done.record(stream)
        host.step()
        if ordered:
            done.synchronize()
        assert read(back) == [2] * N


@SHAPES.add("mindspore")
def barrier_of_streams_recorded_too_early(ordered: bool) -> None:
    """Every stream waits for an event of every other one; one of these stands before the last kernel."""
    host = Host()
    parts, out = [host.numbers(0) for _ in range(3)], host.numbers(0)
    with streams(hal.Stream, 3) as lanes:
        events = [hal.Event() for _ in lanes]
        for number, lane in enumerate(lanes):
            parts[number].fill(number, lane)
            events[number].record(lane)
        parts[2].fill(9, lanes[2])
        if ordered:
            events[2].record(lanes[2])
        host.step()
        for lane in lanes:
            for event in events:
                lane.wait_event(event)
        out.copy_from(parts[2], lanes[0])
        assert out.numpy(lanes[0]).tolist() == [9] * N


# -- loops of queries ---------------------------------------------------------------


@SHAPES.add("cupy")
def query_loop_over_one_of_two(ordered: bool) -> None:
    """The host asks until one of two streams is done, and reads the results of both."""
    host = Host()
    x, y = host.numbers(4), host.numbers(5)
    backs = [pinned_numbers(0), pinned_numbers(0)]
    with streams(cupy_stream) as (one, two):
        x.copy_to(backs[0], one)
        y.copy_to(backs[1], two)
        host.step()
        while not (one.done and two.done if ordered else one.done or two.done):
            host.parse()
        assert [read(back)[0] for back in backs] == [4, 5]


@SHAPES.add("core", found="schedules")
def query_loop_that_gives_up(ordered: bool) -> None:
    """The host asks a few times, and goes on also where the answer was no."""
    host = Host()
    x, back = host.numbers(6), pinned_numbers(0)
    with streams(count=1) as (stream,):
        x.copy_to(back, stream)
        done = stream.record()
        host.step()
        for _ in range(3):
            if done.query():
                break
        if ordered:
            done.synchronize(timeout=LIMIT)
        assert read(back) == [6] * N


@SHAPES.add("torch")
def query_of_an_event_without_a_record(ordered: bool) -> None:
    """The host asks an event that is recorded only afterwards: until then it counts as complete."""
    host, done = Host(), cuda.Event()
    x, back = host.numbers(7), pinned_numbers(0)
    with streams(cuda.Stream, 1) as (stream,):
        x.copy_to(back, stream)
        if ordered:
            done.record(stream)
        host.step()
        while not done.query():
            host.parse()
        result = read(back)
        done.record(stream)
        assert result == [7] * N


# -- captures -----------------------------------------------------------------------


@SHAPES.add("core")
def launch_beside_its_reader(ordered: bool) -> None:
    """A launch of a graph belongs to the stream that it is launched on, not to the one that was captured."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    with streams() as (captured, other):
        with hs.capture(captured) as graph:
            x.fill(3, captured)
        run = graph.instantiate()
        run.launch(other)
        host.step()
        if ordered:
            captured.wait_stream(other)
        out.copy_from(x, captured)
        assert out.numpy(captured).tolist() == [3] * N


@SHAPES.add("cupy")
def refill_under_a_launch(ordered: bool) -> None:
    """The host refills the pinned input of a graph before the launch that reads it is done."""
    host = Host()
    x, batch = host.numbers(0), pinned_numbers(1)
    with streams(cupy_stream, 1) as (stream,):
        stream.begin_capture()
        x.copy_from(batch, stream)
        graph = stream.end_capture()
        graph.launch(stream)
        host.step()
        if ordered:
            stream.synchronize()
        hs.host_access(batch, "w")
        batch[:] = 2
        assert x.numpy(stream).tolist() == [1] * N


@SHAPES.add("core")
def branch_forked_before_its_input(ordered: bool) -> None:
    """Inside a capture a branch begins at an event that stands before the kernel that makes its input."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    with streams() as (main, side):
        with hs.capture(main) as graph:
            early = main.record()
            x.fill(5, main)
            side.wait(main.record() if ordered else early)
            out.copy_from(x, side)
            main.wait(side.record())
        host.step()
        graph.instantiate().launch(main)
        rest(main)
        assert out.numpy(main).tolist() == [5] * N
