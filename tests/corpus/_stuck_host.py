"""Programs whose main thread waits, in Python, for what only a stuck stream would give."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import threading
import time

import halstream as hs
from halstream.torch import cuda

from ._stuck_help import Stuck, hold, later


def queue_get() -> None:
    """The main thread takes an item that a function behind a closed gate would put."""
    stream, results = hs.Stream(), queue.Queue[int]()
    hold(stream)
    stream.call(results.put, 1)
    results.get()


def simple_queue_get() -> None:
    """The same with a `SimpleQueue`, whose method is not Python's."""
    stream, results = hs.Stream(), queue.SimpleQueue[int]()
    hold(stream)
    stream.call(results.put, 1)
    results.get()


def queue_join() -> None:
    """The main thread joins a queue whose items a function behind a closed gate takes."""
    stream, items = hs.Stream(), queue.Queue[int]()
    items.put(1)
    hold(stream)
    stream.call(items.task_done)
    items.join()


def event_wait() -> None:
    """The main thread waits for an event that a function behind a function that never ends sets."""
    stream, go, done = hs.Stream(), threading.Event(), threading.Event()
    later.append(go.set)
    stream.call(go.wait)
    stream.call(done.set)
    done.wait()


def condition_wait() -> None:
    """The main thread waits to be notified by a function behind a closed gate."""
    stream, ready = hs.Stream(), threading.Condition()

    def notify() -> None:
        with ready:
            ready.notify_all()

    hold(stream)
    stream.call(notify)
    with ready:
        ready.wait()


def future_result() -> None:
    """The main thread waits for the result that a function behind a closed gate gives."""
    stream, result = hs.Stream(), concurrent.futures.Future[int]()
    hold(stream)
    stream.call(result.set_result, 1)
    result.result()


def thread_join() -> None:
    """The main thread joins a thread that takes from a queue which a stuck stream fills."""
    stream, results = hs.Stream(), queue.Queue[int]()
    hold(stream)
    stream.call(results.put, 1)
    other = threading.Thread(target=results.get, name="consumer")
    other.start()
    other.join()


def asyncio_future() -> None:
    """A coroutine awaits a future that a function behind a closed gate sets."""
    stream = hs.Stream()
    hold(stream)

    async def main() -> None:
        loop = asyncio.get_running_loop()
        result = loop.create_future()

        def finish() -> None:
            loop.call_soon_threadsafe(lambda: result.done() or result.set_result(1))

        stream.call(lambda: None if loop.is_closed() else finish())
        await result

    asyncio.run(main())


def poll_event() -> None:
    """The main thread asks for ever whether an event behind a closed gate is complete."""
    stream = cuda.Stream()
    hold(stream)
    event = stream.record_event()
    while not event.query():
        pass


def poll_stream() -> None:
    """The same with a stream, and a pause between the questions."""
    stream = hs.Stream()
    hold(stream)
    stream.nop()
    while not stream.query():
        time.sleep(0.01)


def two_locks() -> None:
    """A function and the main thread take two locks in opposite orders."""
    stream, first, second, both = hs.Stream(), threading.RLock(), threading.RLock(), threading.Barrier(2)

    def work() -> None:
        with second:
            both.wait()
            with first:
                pass

    with first:
        stream.call(work)
        both.wait()
        with second:
            pass


WATCHED: tuple[Stuck, ...] = (
    Stuck("queue_get", queue_get, ("MainThread waits in Queue.get()", "stream", "gate", "closed", "Open the gate")),
    Stuck("simple_queue_get", simple_queue_get, ("MainThread waits in SimpleQueue.get()", "gate", "closed")),
    Stuck("queue_join", queue_join, ("MainThread waits in Queue.join()", "gate", "closed")),
    Stuck("event_wait", event_wait, ("MainThread waits in Event.wait()", "function", "waits in Event.wait()")),
    Stuck("condition_wait", condition_wait, ("MainThread waits in Condition.wait()", "gate", "closed")),
    Stuck("future_result", future_result, ("MainThread waits in Future.result()", "gate", "closed")),
    Stuck("thread_join", thread_join, ("MainThread waits for the end of thread consumer", "Queue.get()", "gate")),
    Stuck("asyncio_future", asyncio_future, ("MainThread waits in an event loop", "gate", "closed")),
    Stuck("poll_event", poll_event, ("MainThread asks again and again", "event.query()", "gate", "closed")),
    Stuck("poll_stream", poll_stream, ("MainThread asks again and again", "stream.query()", "gate", "closed")),
    Stuck("two_locks", two_locks, ("MainThread waits for a lock", "work", "waits for a lock", "same order")),
)
