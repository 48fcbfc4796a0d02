"""Twins of the programs in `_stuck_functions` that end by themselves."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

import halstream as hs
from halstream.testing import Gate

from ._slow_help import SECONDS, after


def host_sets_later() -> None:
    """Another thread sets what the function waits for."""
    stream, go = hs.Stream(), threading.Event()
    stream.call(go.wait)
    with after(go.set):
        stream.synchronize()


def hosts_loop() -> None:
    """A task in the event loop of another thread opens the gate."""
    stream = hs.Stream()
    gate = Gate(stream)

    async def serve() -> None:
        await asyncio.sleep(SECONDS)
        gate.open()

    server = threading.Thread(target=asyncio.run, args=(serve(),), name="event loop")
    server.start()
    stream.synchronize()
    server.join()


def end_of_host_thread() -> None:
    """The function waits for the end of a thread that ends."""
    stream = hs.Stream()
    other = threading.Thread(target=time.sleep, args=(SECONDS,), name="host thread")
    other.start()
    stream.call(other.join)
    stream.synchronize()


def lock_order() -> None:
    """Two functions take two locks in the same order, and keep them for long."""
    first, second = threading.Lock(), threading.Lock()
    one, other = hs.Stream(), hs.Stream()

    def take() -> None:
        with first, second:
            time.sleep(SECONDS / 2)

    one.call(take)
    other.call(take)
    one.synchronize()
    other.synchronize()


def hosts_lock() -> None:
    """Another thread holds the lock, and gives it back."""
    stream, lock, held = hs.Stream(), threading.Lock(), threading.Event()

    def keep() -> None:
        with lock:
            held.set()
            time.sleep(SECONDS)

    def work() -> None:
        with lock:
            pass

    other = threading.Thread(target=keep, name="somebody else")
    other.start()
    held.wait()
    stream.call(work)
    stream.synchronize()
    other.join()


def all_dispatchers() -> None:
    """All threads for functions are busy, and not for ever."""
    streams = [hs.Stream() for _ in range(int(os.environ.get("HALSTREAM_HOST_THREADS", "32")) + 1)]
    *sleeping, last = streams
    end = time.monotonic() + SECONDS

    def sleep() -> None:
        time.sleep(max(0, end - time.monotonic()))

    for stream in sleeping:
        stream.call(sleep)
    last.call(int)
    last.synchronize()


def busy_function() -> None:
    """The function computes, and waits for nobody."""
    stream = hs.Stream()

    def compute() -> None:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            sum(range(1000))

    stream.call(compute)
    stream.synchronize()


SLOW: dict[str, Callable[[], None]] = {
    run.__name__: run
    for run in (
        host_sets_later, hosts_loop, end_of_host_thread, lock_order, hosts_lock, all_dispatchers, busy_function,
    )
}  # fmt: skip
