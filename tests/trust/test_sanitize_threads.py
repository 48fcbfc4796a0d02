"""Order that host threads make among themselves: seen while a sanitizer is on, and only then."""

from __future__ import annotations

import _thread
import asyncio
import concurrent.futures
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream._checks import hostorder

LIMIT = 10.0


class Work:
    """Two accesses by two threads, each of which the device has done when the next thread goes on."""

    def __init__(self) -> None:
        self.a, self.b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
        self.x = hs.empty(16, np.uint8)

    def first(self) -> None:
        self.x.fill(1, self.a)
        self.a.synchronize(timeout=LIMIT)

    def second(self) -> None:
        self.x.fill(2, self.b)
        self.b.synchronize(timeout=LIMIT)

    def aside(self) -> None:
        """Enqueue something else, so that the checker knows this thread."""
        self.b.nop()


Make = Callable[[], Any]
Way = Callable[[Work, Any], None]


def _event(w: Work, event: threading.Event) -> None:
    _with_waiter(w, lambda: event.wait(LIMIT), event.set)


def _polled_event(w: Work, event: threading.Event) -> None:
    def wait() -> None:
        while not event.is_set():
            threading.Event().wait(0.001)

    _with_waiter(w, wait, event.set)


def _condition(w: Work, condition: threading.Condition) -> None:
    done: list[int] = []

    def wait() -> None:
        with condition:
            assert condition.wait_for(lambda: done, LIMIT)

    def signal() -> None:
        with condition:
            done.append(1)
            condition.notify_all()

    _with_waiter(w, wait, signal)


def _queue(w: Work, items: Any) -> None:
    _with_waiter(w, lambda: items.get(timeout=LIMIT), lambda: items.put(1))


def _semaphore(w: Work, semaphore: threading.Semaphore) -> None:
    _with_waiter(w, lambda: semaphore.acquire(timeout=LIMIT), semaphore.release)


def _barrier(w: Work, barrier: threading.Barrier) -> None:
    _with_waiter(w, lambda: barrier.wait(LIMIT), lambda: barrier.wait(LIMIT))


def _lock(w: Work, lock: Any) -> None:
    lock.acquire()

    def wait() -> None:
        with lock:
            pass

    _with_waiter(w, wait, lock.release)


def _reentrant(w: Work, lock: Any) -> None:
    with lock:
        thread = _waiter(w, lambda: lock.acquire(timeout=LIMIT) and lock.release())
        with lock:
            w.first()
    _ended(thread)


def _join(w: Work, _: None) -> None:
    w.aside()
    thread = threading.Thread(target=w.first)
    thread.start()
    thread.join(LIMIT)
    w.second()


def _future(w: Work, pool: concurrent.futures.ThreadPoolExecutor) -> None:
    pool.submit(w.aside).result(LIMIT)
    w.first()
    pool.submit(w.second).result(LIMIT)
    pool.submit(w.second).result(LIMIT)
    w.first()
    pool.shutdown()


def _asyncio(w: Work, _: None) -> None:
    async def main() -> None:
        await asyncio.to_thread(w.aside)
        w.first()
        await asyncio.to_thread(w.second)
        w.first()

    asyncio.run(main())


def _coroutine(w: Work, _: None) -> None:
    loop = asyncio.new_event_loop()

    async def second() -> None:
        w.second()

    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    w.first()
    asyncio.run_coroutine_threadsafe(second(), loop).result(LIMIT)
    w.first()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LIMIT)
    loop.close()


def _waiter(w: Work, wait: Callable[[], Any]) -> threading.Thread:
    known, errors = threading.Event(), []

    def run() -> None:
        try:
            w.aside()
            known.set()
            wait()
            w.second()
        except BaseException as exc:
            errors.append(exc)

    thread = threading.Thread(target=run)
    thread.errors = errors  # type: ignore[attr-defined]
    thread.start()
    assert known.wait(LIMIT)
    return thread


def _ended(thread: Any) -> None:
    thread.join(LIMIT)
    assert not thread.is_alive() and not thread.errors


def _with_waiter(w: Work, wait: Callable[[], Any], signal: Callable[[], Any]) -> None:
    thread = _waiter(w, wait)
    w.first()
    signal()
    _ended(thread)


def _nothing() -> None:
    return None


# What makes the object, how it orders two threads, and whether one that was made before is seen.
WAYS: dict[str, tuple[Make, Way, bool]] = {
    "event": (threading.Event, _event, True),
    "polled event": (threading.Event, _polled_event, True),
    "condition": (threading.Condition, _condition, True),
    "queue": (queue.Queue, _queue, True),
    "priority queue": (queue.PriorityQueue, _queue, True),
    "simple queue": (lambda: queue.SimpleQueue(), _queue, False),
    "semaphore": (lambda: threading.Semaphore(0), _semaphore, True),
    "barrier": (lambda: threading.Barrier(2), _barrier, True),
    "lock": (lambda: threading.Lock(), _lock, False),
    "reentrant lock": (lambda: threading.RLock(), _reentrant, False),
    "join": (_nothing, _join, True),
    "future": (lambda: concurrent.futures.ThreadPoolExecutor(1), _future, True),
    "asyncio": (_nothing, _asyncio, True),
    "coroutine of another thread": (_nothing, _coroutine, True),
}


@pytest.mark.parametrize("name", WAYS)
def test_V7_order_that_host_threads_make_is_seen(backend: str, name: str) -> None:
    make, way, _ = WAYS[name]
    work = Work()
    with hs.sanitize() as report:
        way(work, make())
    assert not report.all, str(report)


@pytest.mark.parametrize("name", [name for name, (_, _, before) in WAYS.items() if before])
def test_V7_also_by_objects_that_were_made_before(backend: str, name: str) -> None:
    make, way, _ = WAYS[name]
    work, one = Work(), make()
    with hs.sanitize() as report:
        way(work, one)
    assert not report.all, str(report)


QUEUES: dict[str, Make] = {
    "queue": queue.Queue,
    "bounded queue": lambda: queue.Queue(4),
    "priority queue": queue.PriorityQueue,
    "simple queue": lambda: queue.SimpleQueue(),
}


@pytest.mark.parametrize("make", QUEUES.values(), ids=QUEUES.keys())
@pytest.mark.parametrize("taken", [1, 2])
def test_V7_who_gets_an_item_does_not_come_after_later_puts(backend: str, make: Make, taken: int) -> None:
    """The second item is put after a wait for the work of the first one, and is there before that one is got."""
    work, both = Work(), list[int]()
    with hs.sanitize() as report:
        work.aside()
        items = make()

        def produce() -> None:
            work.x.fill(1, work.a)
            items.put(1)
            work.a.synchronize(timeout=LIMIT)
            items.put(2)
            both.append(1)

        thread = threading.Thread(target=produce)
        thread.start()
        end = time.monotonic() + LIMIT
        while not both and time.monotonic() < end:
            pass
        assert [items.get(timeout=LIMIT) for _ in range(taken)] == [1, 2][:taken]
        work.second()
        thread.join(LIMIT)
    assert not report
    assert [one.category for one in report.all] == ["timing"] * (2 - taken)


def test_V7_who_finds_room_in_a_bounded_queue_comes_after_who_made_it(backend: str) -> None:
    work = Work()
    with hs.sanitize() as report:
        items = queue.Queue[int](1)
        items.put(1)
        thread = _waiter(work, lambda: items.put(2, timeout=LIMIT))
        work.first()
        items.get(timeout=LIMIT)
        _ended(thread)
    assert not report.all, str(report)


def test_V7_a_put_that_fails_orders_nobody(backend: str) -> None:
    work, item = Work(), object()
    with hs.sanitize() as report:
        items = queue.Queue[object](1)
        items.put(0)
        work.aside()
        work.first()
        with pytest.raises(queue.Full):
            items.put(item, block=False)
        items.get()

        def late() -> None:
            work.aside()
            items.put(item)

        thread = threading.Thread(target=late)
        thread.start()
        assert items.get(timeout=LIMIT) is item
        thread.join(LIMIT)
    assert not report.all, str(report)


def test_V7_what_nothing_orders_is_listed_apart_all_the_same(backend: str) -> None:
    work, go = Work(), [False]

    def wait() -> None:
        while not go[0]:
            pass

    with hs.sanitize() as report:
        thread = _waiter(work, wait)
        work.first()
        go[0] = True
        while thread.is_alive():
            pass
    (found,) = report.by_host_timing
    assert not report and (found.first.stream, found.second.stream) == (work.a.index, work.b.index)


def test_V7_a_thread_that_was_started_before_an_access_does_not_come_after_it(backend: str) -> None:
    pinned, go = hs.pinned_empty(16, np.uint8), [False]

    def run() -> None:
        while not go[0]:
            pass
        hs.host_access(pinned, "w")

    with hs.sanitize() as report:
        thread = threading.Thread(target=run)
        thread.start()
        hs.host_access(pinned, "w")
        go[0] = True
        thread.join(LIMIT)
    (found,) = report.by_host_timing
    assert not report and found.first.thread != found.second.thread


def test_V7_an_event_that_a_function_sets_orders_what_is_before_it(backend: str) -> None:
    s, x, done = hs.Stream(non_blocking=True), hs.empty(16, np.uint8), threading.Event()
    with hs.sanitize(on="collect") as report:
        x.fill(1, s)
        s.call(done.set)
        x.fill(2, s)
        assert done.wait(LIMIT)
        hs.host_access(x, "w")
        s.synchronize(timeout=LIMIT)
    (found,) = report
    assert "x.fill(2, s)" in found.text and "x.fill(1, s)" not in found.text


def test_V7_classes_and_methods_are_as_before_when_the_sanitizer_has_ended(backend: str) -> None:
    owners = [(owner, name) for owner, name, _ in hostorder._METHODS]
    owners += [(threading, "Lock"), (threading, "RLock"), (queue, "SimpleQueue")]
    before = [vars(owner)[name] for owner, name in owners]
    with hs.sanitize():
        assert any(vars(owner)[name] is not was for (owner, name), was in zip(owners, before, strict=True))
        with hs.sanitize():
            pass
        assert any(vars(owner)[name] is not was for (owner, name), was in zip(owners, before, strict=True))
    assert all(vars(owner)[name] is was for (owner, name), was in zip(owners, before, strict=True))


def test_V7_locks_behave_as_the_librarys(backend: str) -> None:
    kind, reentrant, simple = type(threading.Lock()), type(threading.RLock()), queue.SimpleQueue
    with hs.sanitize():
        lock, again, items = threading.Lock(), threading.RLock(), queue.SimpleQueue()

        class Mine(queue.SimpleQueue):  # type: ignore[type-arg]
            pass

        class Waiting(threading.Condition, threading.Thread):
            """Subclasses of the classes with hooks."""

        mine = Mine()
        assert isinstance(mine, queue.SimpleQueue) and isinstance(simple(), queue.SimpleQueue)
        assert not isinstance(threading.Event(), queue.SimpleQueue)
        assert issubclass(Waiting, threading.Condition)
    for _ in ("after the end of the sanitizer",):
        assert isinstance(lock, kind) and isinstance(again, reentrant) and isinstance(items, simple)
        assert isinstance(mine, simple)
        assert lock.acquire() and lock.locked() and not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=0.001)
        lock.release()
        with pytest.raises(RuntimeError):
            lock.release()
        with again, again:
            pass
        with pytest.raises(RuntimeError):
            again.release()
        mine.put(1)
        items.put(2, timeout=1)
        assert (mine.get(), items.get_nowait()) == (1, 2)
        with pytest.raises(queue.Empty):
            items.get_nowait()
        for condition in (threading.Condition(lock), threading.Condition(again)):
            with condition:
                assert not condition.wait(0.001)
                condition.notify()


@pytest.mark.needs("stalls")
def test_V7_stuck_threads_are_still_named(child: Any) -> None:
    done = child(
        """
        import os, threading
        os.environ["HALSTREAM_SANITIZE"] = "1"
        import halstream as hs
        s = hs.Stream()
        s.nop()
        lock, again, event = threading.Lock(), threading.RLock(), threading.Event()
        lock.acquire()
        threading.Thread(target=lock.acquire, name="locked", daemon=True).start()
        threading.Thread(target=event.wait, name="waiting", daemon=True).start()
        gate = hs.testing.Gate(s)
        try:
            s.synchronize()
        except hs.StallError as exc:
            text = str(exc)
        assert "thread waiting waits in Event.wait()" in text, text
        assert "thread locked waits for a lock that is taken" in text, text
        gate.open()
        os._exit(0)
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("signalled", [False, True])
def test_V2_a_thread_that_was_not_seen_to_begin_is_ordered_by_what_it_waits_for_only(signalled: bool) -> None:
    with hs.sanitize(on="collect") as report:
        work, ready, done = Work(), threading.Event(), threading.Event()

        def second() -> None:
            if signalled:
                ready.wait(LIMIT)
            work.second()
            done.set()

        work.first()
        ready.set()
        _thread.start_new_thread(second, ())
        assert done.wait(LIMIT)
    assert not report
    assert bool(report.by_host_timing) is not signalled
