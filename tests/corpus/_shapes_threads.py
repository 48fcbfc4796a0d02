"""Order that threads and tasks of the program make, with one link missing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import Callable

import halstream as hs
import numpy as np
from halstream.cupy import cuda as cupy_cuda
from halstream.mindspore import hal
from halstream.paddle import device
from halstream.torch import cuda

from ._host import LIMIT, Host, N, pinned_numbers, read
from ._shapes_help import Shapes, streams

SHAPES = Shapes("order made by the host")


def _with(thread: Callable[[], None], main: Callable[[], None]) -> None:
    """Run one function on a thread of its own and another one here."""
    other = threading.Thread(target=thread)
    other.start()
    try:
        main()
    finally:
        other.join(LIMIT)


@SHAPES.add("torch")
def event_set_before_the_wait(ordered: bool) -> None:
    """A loader sets its `Event` when the copy is enqueued, not when it is done."""
    host, loaded = Host(), threading.Event()
    batch, out = pinned_numbers(5), host.numbers(0)
    x = host.numbers(0)
    with streams(cuda.Stream) as (copies, compute):

        def load() -> None:
            x.copy_from(batch, copies)
            if ordered:
                copies.synchronize()
            loaded.set()

        def use() -> None:
            assert loaded.wait(LIMIT)
            host.step()
            out.copy_from(x, compute)
            assert out.numpy(compute).tolist() == [5] * N

        _with(load, use)


@SHAPES.add("core")
def queue_without_the_event(ordered: bool) -> None:
    """A producer puts the array into a queue; the event that makes it ready stays behind."""
    host, items = Host(), queue.Queue()
    out, x = host.numbers(0), host.numbers(0)
    with streams() as (one, two):

        def produce() -> None:
            x.fill(4, one)
            items.put((x, one.record()))

        def consume() -> None:
            array, ready = items.get(timeout=LIMIT)
            host.step()
            if ordered:
                two.wait(ready)
            out.copy_from(array, two)
            assert out.numpy(two).tolist() == [4] * N

        _with(produce, consume)


@SHAPES.add("paddle")
def lock_around_the_enqueue(ordered: bool) -> None:
    """Both threads hold a lock while they enqueue, which says nothing about when the work is done."""
    host, lock = Host(), threading.Lock()
    x, turn = host.numbers(0), threading.Event()
    with streams(device.Stream) as (one, two):

        def first() -> None:
            with lock:
                x.fill(1, one)
                if ordered:
                    one.synchronize()
            turn.set()

        def second() -> None:
            assert turn.wait(LIMIT)
            host.step()
            with lock:
                x.fill(2, two)
            two.synchronize()
            one.synchronize()
            assert x.numpy(two).tolist() == [2] * N

        _with(first, second)


@SHAPES.add("mindspore")
def condition_before_the_copy_is_done(ordered: bool) -> None:
    """A condition is notified when the results are on their way."""
    host, ready, state = Host(), threading.Condition(), []
    x, back = host.numbers(3), pinned_numbers(0)
    with streams(hal.Stream, 1) as (stream,):

        def bring() -> None:
            x.copy_to(back, stream)
            if ordered:
                stream.synchronize()
            with ready:
                state.append(1)
                ready.notify()

        def take() -> None:
            with ready:
                assert ready.wait_for(lambda: state, LIMIT)
            host.step()
            assert read(back) == [3] * N

        _with(bring, take)


@SHAPES.add("cupy")
def future_of_the_enqueue(ordered: bool) -> None:
    """The future's result means that a pool thread has enqueued the fill, not more."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    with (
        streams(lambda: cupy_cuda.Stream(non_blocking=True)) as (one, two),
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):

        def fill() -> cupy_cuda.Event:
            x.fill(7, one)
            return one.record()

        event = pool.submit(fill).result(LIMIT)
        host.step()
        if ordered:
            two.wait_event(event)
        out.copy_from(x, two)
        assert out.numpy(two).tolist() == [7] * N


@SHAPES.add("core")
def joined_thread_left_work(ordered: bool) -> None:
    """A thread is joined; what it enqueued is not done by that."""
    host = Host()
    x, back = host.numbers(6), pinned_numbers(0)
    with streams(count=1) as (stream,):

        def work() -> None:
            x.copy_to(back, stream)
            if ordered:
                stream.synchronize(timeout=LIMIT)

        _with(work, host.step)
        assert read(back) == [6] * N


@SHAPES.add("torch")
def task_that_does_not_await_the_device(ordered: bool) -> None:
    """An asyncio task awaits its loader, which has only enqueued."""
    host = Host()
    x, out = host.numbers(0), host.numbers(0)
    with streams(cuda.Stream) as (copies, compute):

        async def load() -> cuda.Event:
            x.fill(8, copies)
            await asyncio.sleep(0)
            return copies.record_event()

        async def main() -> None:
            event = await asyncio.create_task(load())
            host.step()
            if ordered:
                compute.wait_event(event)
            out.copy_from(x, compute)

        asyncio.run(main())
        assert out.numpy(compute).tolist() == [8] * N


@SHAPES.add("core")
def refill_by_another_thread(ordered: bool) -> None:
    """A reader thread refills a pinned buffer when the other thread says it was enqueued."""
    host, taken = Host(), queue.SimpleQueue()
    buffer, x = pinned_numbers(1), host.numbers(0)
    with streams(count=1) as (stream,):

        def enqueue() -> None:
            x.copy_from(buffer, stream)
            if ordered:
                stream.synchronize(timeout=LIMIT)
            taken.put(1)

        def refill() -> None:
            taken.get(timeout=LIMIT)
            host.step()
            hs.host_access(buffer, "w")
            buffer[:] = 2

        _with(refill, enqueue)
        assert x.numpy(stream).tolist() == [1] * N


@SHAPES.add("torch")
def function_that_signals_too_early(ordered: bool) -> None:
    """A function on the stream sets the event before the copy behind it."""
    host, done = Host(), threading.Event()
    x, back = host.numbers(2), pinned_numbers(0)
    with streams(cuda.Stream, 1) as (stream,):
        if ordered:
            x.copy_to(back, stream)
        stream.call(done.set)
        if not ordered:
            x.copy_to(back, stream)
        assert done.wait(LIMIT)
        host.step()
        assert read(back) == [2] * N


@SHAPES.add("core")
def barrier_between_two_workers(ordered: bool) -> None:
    """Two workers meet at a barrier between their turns; one has not waited for its stream."""
    host, barrier = Host(), threading.Barrier(2)
    x, y = host.numbers(0), host.numbers(0)
    with streams() as (one, two):

        def first() -> None:
            x.fill(1, one)
            if ordered:
                one.synchronize(timeout=LIMIT)
            barrier.wait(LIMIT)

        def second() -> None:
            barrier.wait(LIMIT)
            host.step()
            y.copy_from(x, two)
            assert y.numpy(two).tolist() == [1] * N

        _with(first, second)


@SHAPES.add("mindspore")
def semaphore_released_once_too_often(ordered: bool) -> None:
    """A semaphore counts free buffers, and the second release comes before its copy is done."""
    host, free = Host(), threading.Semaphore(0)
    buffers, targets = [pinned_numbers(i + 1) for i in range(2)], [host.numbers(0) for _ in range(2)]
    with streams(hal.Stream, 1) as (stream,):

        def copy() -> None:
            for i in range(2):
                targets[i].copy_from(buffers[i], stream)
                if i == 0 or ordered:
                    stream.synchronize()
                free.release()

        def refill() -> None:
            for i in range(2):
                assert free.acquire(timeout=LIMIT)
                host.step()
                hs.host_access(buffers[i], "w")
                buffers[i][:] = 9

        _with(copy, refill)
        assert [int(target.numpy(stream)[0]) for target in targets] == [1, 2]


@SHAPES.add("paddle")
def callback_result_used_early(ordered: bool) -> None:
    """A callback fills a pinned buffer for the host, which does not wait for it."""
    host = Host()
    x, back = host.numbers(2), pinned_numbers(0)
    with streams(device.Stream, 1) as (stream,):
        stream.call(np.copyto, back, np.asarray(x), reads=[x], writes=[back])
        done = stream.record_event()
        host.step()
        if ordered:
            done.synchronize()
        assert read(back) == [2] * N
