"""Barriers, locks, queues and callbacks between host threads that are used wrongly."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
from halstream.mindspore import hal
from halstream.paddle import device
from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read
from ._shapes_help import Shapes, streams
from ._shapes_order import cupy_stream

SHAPES = Shapes("synchronisation of host threads")


def _beside(*functions: Callable[[], None]) -> None:
    """Run functions on a thread each, and wait for all of them."""
    threads = [threading.Thread(target=function) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)


# -- barriers -----------------------------------------------------------------------


@SHAPES.add("core", found="threads")
def one_barrier_for_two_phases(ordered: bool) -> None:
    """A writer and a reader meet after each write, and not after each read: the next write is too early."""
    host, barrier = Host(), threading.Barrier(2)
    x, outs = host.numbers(0), [host.numbers(0) for _ in range(2)]
    with streams() as (one, two):

        def write() -> None:
            for turn in (1, 2):
                x.fill(turn, one)
                one.synchronize(timeout=LIMIT)
                barrier.wait(LIMIT)
                if ordered:
                    barrier.wait(LIMIT)

        def copy() -> None:
            for out in outs:
                barrier.wait(LIMIT)
                out.copy_from(x, two)
                two.synchronize(timeout=LIMIT)
                if ordered:
                    barrier.wait(LIMIT)

        _beside(write, copy)
        assert [int(out.numpy(two)[0]) for out in outs] == [1, 2]


@SHAPES.add("paddle", found="stall")
def barrier_of_two_functions_of_one_stream(ordered: bool) -> None:
    """Two functions of one stream meet at a barrier, although the second begins when the first has ended."""
    barrier = threading.Barrier(2)

    def meet() -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait()

    with streams(device.Stream, 1) as (stream,):
        stream.call(meet)
        try:
            if ordered:
                meet()  # the host is the other one
            else:
                stream.call(meet)
            stream.synchronize()
        finally:
            barrier.abort()


# -- locks and queues ---------------------------------------------------------------


@SHAPES.add("core")
def task_done_before_the_copy_is_done(ordered: bool) -> None:
    """A worker says `task_done` when it has enqueued its copy, and the host joins the queue."""
    host, tasks = Host(), queue.Queue()
    sources, backs = [host.numbers(i + 1) for i in range(2)], [pinned_numbers(0) for _ in range(2)]
    with streams(count=1) as (stream,):

        def work() -> None:
            for _ in sources:
                number = tasks.get(timeout=LIMIT)
                sources[number].copy_to(backs[number], stream)
                if ordered:
                    stream.synchronize(timeout=LIMIT)
                tasks.task_done()

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for number in range(2):
                tasks.put(number)
            tasks.join()
            host.step()
            assert [read(back)[0] for back in backs] == [1, 2]
        finally:
            worker.join(LIMIT)


@SHAPES.add("mindspore")
def end_of_the_queue_overtakes_the_work(ordered: bool) -> None:
    """The mark at the end of a queue comes when all is enqueued, and its reader takes that for done."""
    host, results = Host(), queue.SimpleQueue()
    x, backs = host.numbers(4), [pinned_numbers(0) for _ in range(2)]
    with streams(hal.Stream, 1) as (stream,):

        def produce() -> None:
            for number, back in enumerate(backs):
                x.copy_to(back, stream)
                results.put(number)
            if ordered:
                stream.synchronize()
            results.put(-1)

        producer = threading.Thread(target=produce)
        producer.start()
        try:
            taken = list(iter(lambda: results.get(timeout=LIMIT), -1))
            host.step()
            assert [read(backs[number]) for number in taken] == [[4] * N] * 2
        finally:
            producer.join(LIMIT)


@SHAPES.add("paddle", found="threads")
def two_locks_for_one_buffer(ordered: bool) -> None:
    """Each worker waits for the last use of a buffer and becomes the last one, under a lock of its own."""
    host, lock = Host(), threading.Lock()
    x, outs = host.numbers(0), {number: host.numbers(0) for number in (1, 2)}
    last: list[device.Event] = []

    def use(number: int, mine: Any) -> None:
        stream = device.Stream()
        with mine:
            if last:
                stream.wait_event(last[-1])
            x.fill(number, stream)
            outs[number].copy_from(x, stream)
            last.append(stream.record_event())
        stream.synchronize()

    locks = [lock, lock if ordered else threading.Lock()]
    _beside(*(lambda number=number, mine=mine: use(number, mine) for number, mine in zip(outs, locks, strict=True)))
    host.step()
    assert {number: int(out.numpy()[0]) for number, out in outs.items()} == {1: 1, 2: 2}


# -- callbacks ----------------------------------------------------------------------


@SHAPES.add("cupy")
def callback_on_the_wrong_stream(ordered: bool) -> None:
    """The callback that says "loaded" stands on the stream that computes, not on the one that loads."""
    host, loaded = Host(), threading.Event()
    x, back = host.numbers(5), pinned_numbers(0)
    with streams(cupy_stream) as (loads, computes):
        x.copy_to(back, loads)
        (loads if ordered else computes).add_callback(lambda stream, status, event: event.set(), loaded)
        host.step()
        assert loaded.wait(LIMIT)
        assert read(back) == [5] * N


@SHAPES.add("torch")
def callback_that_frees_a_buffer_too_early(ordered: bool) -> None:
    """A callback gives a pinned buffer back to its pool, and a second copy from the buffer stands behind it."""
    host, free = Host(), queue.SimpleQueue()
    x, y, buffer = host.numbers(0), host.numbers(0), pinned_numbers(6)
    with streams(cuda.Stream, 1) as (stream,):
        x.copy_from(buffer, stream)
        if ordered:
            y.copy_from(buffer, stream)
        stream.call(free.put, 1)
        if not ordered:
            y.copy_from(buffer, stream)
        host.step()
        free.get(timeout=LIMIT)
        hs.host_access(buffer, "w")
        buffer[:] = 9
        assert [int(array.numpy(stream)[0]) for array in (x, y)] == [6, 6]
