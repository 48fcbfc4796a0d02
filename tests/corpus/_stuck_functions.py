"""Programs that never end because of a function on a stream."""

from __future__ import annotations

import asyncio
import os
import threading

import halstream as hs

from ._host import LIMIT
from ._stuck_help import Stuck, later


def host_sets_later() -> None:
    """A function waits for what the host does only after its wait."""
    stream, go = hs.Stream(), threading.Event()
    later.append(go.set)
    stream.call(go.wait)
    stream.synchronize()
    go.set()


def hosts_loop() -> None:
    """A function waits for the event loop of a host that blocks in it."""
    stream, answered = hs.Stream(), threading.Event()
    later.append(answered.set)

    async def host() -> None:
        loop = asyncio.get_running_loop()

        def ask() -> None:
            loop.call_soon_threadsafe(answered.set)
            answered.wait()

        stream.call(ask)
        stream.synchronize()  # a coroutine must not do that

    asyncio.run(host())


def end_of_host_thread() -> None:
    """A function waits for the end of a thread that waits for the function's stream."""
    stream, started, go = hs.Stream(), threading.Event(), threading.Event()

    def wait() -> None:
        started.wait()
        try:
            stream.synchronize()
        except hs.StallError:
            go.wait()  # whoever is told first, the other one still waits

    other = threading.Thread(target=wait, name="host thread")
    later.extend([go.set, lambda: other.join(LIMIT)])
    other.start()
    stream.call(other.join)
    started.set()
    stream.synchronize()


def lock_order() -> None:
    """Two functions take two locks in opposite orders."""
    first, second, both = threading.Lock(), threading.Lock(), threading.Barrier(2)
    one, other = hs.Stream(), hs.Stream()

    def take(mine: threading.Lock, its: threading.Lock) -> None:
        mine.acquire()
        both.wait()
        its.acquire()

    later.extend([first.release, second.release])
    one.call(take, first, second)
    other.call(take, second, first)
    one.synchronize()


def hosts_lock() -> None:
    """A function wants a lock that the host holds while it waits."""
    stream, lock = hs.Stream(), threading.RLock()

    def work() -> None:
        with lock:
            pass

    with lock:
        stream.call(work)
        stream.synchronize()


def all_dispatchers() -> None:
    """As many functions as there may be threads wait for one more, which is enqueued last."""
    go = threading.Event()
    later.append(go.set)
    streams = [hs.Stream() for _ in range(int(os.environ.get("HALSTREAM_HOST_THREADS", "32")) + 1)]
    *waiting, last = streams
    for stream in waiting:
        stream.call(go.wait)
    last.call(go.set)
    last.synchronize()


STUCK: tuple[Stuck, ...] = (
    Stuck("host_sets_later", host_sets_later, ("waits for stream", "function", "waits in Event.wait")),
    Stuck("hosts_loop", hosts_loop, ("waits for stream", "function", "waits in Event.wait")),
    Stuck("end_of_host_thread", end_of_host_thread, ("waits for stream", "function", "host thread")),
    Stuck("lock_order", lock_order, ("waits for stream", "function", "lock")),
    Stuck("hosts_lock", hosts_lock, ("waits for stream", "function", "lock", "MainThread")),
    Stuck("all_dispatchers", all_dispatchers, ("waits for stream", "function", "threads for functions")),
)
