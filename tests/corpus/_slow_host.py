"""Twins of the programs in `_stuck_host` and `_stuck_mixed` that end by themselves."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import os
import queue
import socket
import threading
import time
from collections.abc import Callable

import halstream as hs
from halstream.testing import Gate
from halstream.torch import cuda

from ._slow_help import SECONDS, after


def queue_get() -> None:
    """The function sleeps, and then puts what the main thread waits for."""
    stream, results = hs.Stream(), queue.Queue[int]()
    stream.call(time.sleep, SECONDS)
    stream.call(results.put, 1)
    assert results.get() == 1


def simple_queue_get() -> None:
    """Another thread opens the gate."""
    stream, results = hs.Stream(), queue.SimpleQueue[int]()
    gate = Gate(stream)
    stream.call(results.put, 1)
    with after(gate.open):
        results.get()


def queue_join() -> None:
    """The device computes for long before the function takes the item."""
    stream, items = hs.Stream(), queue.Queue[int]()
    items.put(1)
    stream.delay(SECONDS)
    stream.call(items.task_done)
    items.join()


def event_wait() -> None:
    """The function reads from a socket that is answered late."""
    stream, done, (near, far) = hs.Stream(), threading.Event(), socket.socketpair()
    stream.call(near.recv, 1)
    stream.call(done.set)
    with near, far, after(lambda: far.send(b"x"), daemon=True):
        done.wait()


def condition_wait() -> None:
    """A thread that waits for a stream with a limit opens the gate after it."""
    stream, other, ready = hs.Stream(), hs.Stream(), threading.Condition()
    gate, second = Gate(stream), Gate(other)

    def notify() -> None:
        with ready:
            ready.notify_all()

    def wait() -> None:
        try:
            other.synchronize(timeout=SECONDS)
        except hs.WaitTimeoutError:
            gate.open()
            second.open()

    stream.call(notify)
    helper = threading.Thread(target=wait)
    with ready:
        helper.start()
        ready.wait()
    helper.join()


def future_result() -> None:
    """A native function runs for long."""
    stream, result = hs.Stream(), concurrent.futures.Future[int]()
    stream.call_native(ctypes.CDLL(None).usleep, int(SECONDS * 1e6))
    stream.call(result.set_result, 1)
    assert result.result() == 1


def thread_join() -> None:
    """The thread that is joined takes from a queue that a slow function fills."""
    stream, results = hs.Stream(), queue.Queue[int]()
    stream.call(time.sleep, SECONDS)
    stream.call(results.put, 1)
    other = threading.Thread(target=results.get, name="consumer")
    other.start()
    other.join()


def asyncio_future() -> None:
    """The event loop has a timer, which opens the gate."""
    stream = hs.Stream()
    gate = Gate(stream)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        result = loop.create_future()
        stream.call(loop.call_soon_threadsafe, result.set_result, 1)
        loop.call_later(SECONDS, gate.open)
        await result

    asyncio.run(main())


def poll_event() -> None:
    """The loop counts time and then opens the gate itself."""
    stream = cuda.Stream()
    gate = Gate(stream)
    event, end = stream.record_event(), time.monotonic() + SECONDS
    while not event.query():
        if time.monotonic() > end:
            gate.open()
    stream.synchronize()


def poll_stream() -> None:
    """Another thread opens the gate."""
    stream = hs.Stream()
    gate = Gate(stream)
    with after(gate.open):
        while not stream.query():
            time.sleep(0.01)


def two_locks() -> None:
    """Both take the locks in the same order, and the function keeps them for long."""
    stream, first, second, held = hs.Stream(), threading.RLock(), threading.RLock(), threading.Event()

    def work() -> None:
        with first, second:
            held.set()
            time.sleep(SECONDS)

    stream.call(work)
    held.wait()
    with first, second:
        pass
    stream.synchronize()


def native_pause() -> None:
    """The native function waits for data from a pipe."""
    stream, (reads, writes), buffer = hs.Stream(), os.pipe(), ctypes.create_string_buffer(1)
    libc = ctypes.CDLL(None)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def read(_: object) -> None:
        libc.read(reads, buffer, ctypes.c_size_t(1))

    stream.call_native(read)
    with after(lambda: os.write(writes, b"x")):
        stream.synchronize()
    os.close(reads)
    os.close(writes)


def native_semaphore() -> None:
    """Another thread posts the semaphore."""
    libc, stream, semaphore = ctypes.CDLL(None), hs.Stream(), ctypes.create_string_buffer(64)
    assert libc.sem_init(semaphore, 0, 0) == 0
    stream.call_native(libc.sem_wait, semaphore)
    with after(lambda: libc.sem_post(semaphore)):
        stream.synchronize()


def behind_a_gate() -> None:
    """A function of a third stream sleeps and then opens the gate."""
    stream, other, third, done = hs.Stream(), hs.Stream(), hs.Stream(), threading.Event()
    gate = Gate(stream)

    def work() -> None:
        time.sleep(SECONDS)
        gate.open()

    stream.call(done.set)
    other.call(done.wait)
    third.call(work)
    other.synchronize()


SLOW: dict[str, Callable[[], None]] = {
    run.__name__: run
    for run in (
        queue_get, simple_queue_get, queue_join, event_wait, condition_wait, future_result, thread_join,
        asyncio_future, poll_event, poll_stream, two_locks, native_pause, native_semaphore, behind_a_gate,
    )
}  # fmt: skip
