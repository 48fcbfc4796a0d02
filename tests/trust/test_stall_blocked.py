"""What a thread waits for is told from where it stands, and only where that is certain."""

from __future__ import annotations

import concurrent.futures
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from halstream._stalls import blocked as _blocked

LIMIT = 10.0


class World:
    """Things to wait for; those of the main thread's stay as they are until `end`."""

    def __init__(self) -> None:
        self.lock, self.mine = threading.Lock(), threading.RLock()
        self.lock.acquire()
        self.mine.acquire()
        self.both = [self.lock, self.mine]
        self.named = {"one": self.lock}
        self.condition = threading.Condition(self.mine)
        self.event, self.semaphore = threading.Event(), threading.Semaphore(0)
        self.items, self.simple = queue.Queue[int](), queue.SimpleQueue[int]()
        self.full = queue.Queue[int](1)
        self.full.put(0)
        self.future = concurrent.futures.Future[int]()
        self.thread = threading.Thread(target=self.event.wait)
        self.thread.start()

    def end(self) -> None:
        self.event.set()
        self.lock.release()
        self.mine.release()
        self.semaphore.release()
        self.items.put(1)
        self.simple.put(1)
        self.full.get(timeout=LIMIT)
        self.future.set_result(1)
        self.thread.join(LIMIT)


def with_lock(w: World) -> None:
    with w.lock:
        pass


def with_local_name(w: World) -> None:
    lock = w.lock
    with lock:
        lock.locked()


def acquire(w: World) -> None:
    w.lock.acquire()
    w.lock.release()


def acquire_said_so(w: World) -> None:
    w.lock.acquire(blocking=True)
    w.lock.release()


def bound_method(w: World) -> None:
    take = w.lock.acquire
    take()
    w.lock.release()


def element_of_list(w: World) -> None:
    with w.both[0]:
        pass


def element_of_dict(w: World) -> None:
    name = "one"
    with w.named[name]:
        pass


def in_a_comprehension(w: World) -> None:
    [w.lock.release() for _ in range(1) if w.lock.acquire()]


def owned(w: World) -> None:
    with w.mine:
        pass


def owned_condition(w: World) -> None:
    with w.condition:
        pass


def event(w: World) -> None:
    w.event.wait()


def semaphore(w: World) -> None:
    with w.semaphore:
        pass


def get(w: World) -> None:
    w.items.get()


def put(w: World) -> None:
    w.full.put(1)


def simple(w: World) -> None:
    w.simple.get()


def result(w: World) -> None:
    w.future.result()


def join(w: World) -> None:
    w.thread.join()


BLOCKED: dict[Callable[[World], None], tuple[str, str]] = {
    with_lock: ("a lock that is taken", ""),
    with_local_name: ("a lock that is taken", ""),
    acquire: ("a lock that is taken", ""),
    acquire_said_so: ("a lock that is taken", ""),
    bound_method: ("a lock that is taken", ""),
    element_of_list: ("a lock that is taken", ""),
    element_of_dict: ("a lock that is taken", ""),
    in_a_comprehension: ("a lock that is taken", ""),
    owned: ("a lock that thread MainThread holds", "main"),
    owned_condition: ("a lock that thread MainThread holds", "main"),
    event: ("waits in Event.wait()", ""),
    semaphore: ("waits in Semaphore.acquire()", ""),
    get: ("waits in Queue.get()", ""),
    put: ("waits in Queue.put()", ""),
    simple: ("waits in SimpleQueue.get()", ""),
    result: ("waits in Future.result()", ""),
    join: ("waits for the end of thread", "thread"),
}


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.end()


def look(function: Callable[[World], None], world: World, until: bool) -> _blocked.Block | None:
    """Return what is found of a thread that runs a function; let it get there if it can."""
    thread = threading.Thread(target=function, args=(world,), daemon=True)
    thread.start()
    end = time.monotonic() + (LIMIT if until else 0.3)
    found = None
    while time.monotonic() < end and (found is None) is until:
        frame = sys._current_frames().get(thread.ident or 0)
        found = None if frame is None else _blocked.blocked(frame, thread.ident or 0)
    return found


@pytest.mark.parametrize("function", BLOCKED, ids=lambda function: function.__name__)
def test_a_wait_without_a_time_limit_is_reported(world: World, function: Callable[[World], None]) -> None:
    words, owner = BLOCKED[function]
    found = look(function, world, True)
    assert found is not None
    assert words in found.what
    owners = {"": 0, "main": threading.main_thread().ident, "thread": world.thread.ident}
    assert found.owner == owners[owner]


def _acquire_limited(w: World) -> None:
    w.lock.acquire(timeout=LIMIT)


def _acquire_limited_by_place(w: World) -> None:
    w.lock.acquire(True, LIMIT)


def _event_limited(w: World) -> None:
    w.event.wait(LIMIT)


def _get_limited(w: World) -> None:
    w.items.get(timeout=LIMIT)


def _simple_limited(w: World) -> None:
    w.simple.get(timeout=LIMIT)


def _join_limited(w: World) -> None:
    w.thread.join(LIMIT)


def _result_limited(w: World) -> None:
    w.future.result(LIMIT)


def _asks_again(w: World) -> None:
    while not w.lock.acquire(False) and not w.event.is_set():
        pass


def _computes(w: World) -> None:
    while not w.event.is_set():
        pass


def _passes_the_method_on(w: World) -> None:
    next(map(w.event.wait, [LIMIT]), w.lock.acquire)


def _made_by_a_call(w: World) -> None:
    def lock() -> Any:
        w.event.wait(LIMIT)
        return w.lock

    with lock():
        pass


def _free_lock(w: World) -> None:
    lock = threading.Lock()
    while not w.event.is_set():
        with lock:
            pass


NOT = [
    _acquire_limited, _acquire_limited_by_place, _event_limited, _get_limited, _simple_limited, _join_limited,
    _result_limited, _asks_again, _computes, _passes_the_method_on, _made_by_a_call, _free_lock,
]  # fmt: skip


@pytest.mark.parametrize("function", NOT, ids=lambda function: function.__name__)
def test_a_thread_that_may_go_on_is_let_be(world: World, function: Callable[[World], None]) -> None:
    assert look(function, world, False) is None


def test_a_wait_that_was_ended_is_not_reported(world: World) -> None:
    # Notified, but not running yet: this thread keeps Python's lock in between.
    thread = threading.Thread(target=world.event.wait, daemon=True)
    thread.start()
    assert look(event, world, True) is not None
    switch = sys.getswitchinterval()
    sys.setswitchinterval(100)
    try:
        world.event.set()
        frame = sys._current_frames()[thread.ident or 0]
        assert _blocked.blocked(frame, thread.ident or 0) is None
    finally:
        sys.setswitchinterval(switch)


def test_idle_threads_of_a_pool() -> None:
    with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="idle-pool") as pool:
        pool.submit(int).result(LIMIT)
        worker = next(t for t in threading.enumerate() if t.name.startswith("idle-pool"))
        end = time.monotonic() + LIMIT
        found = None
        while found is None and time.monotonic() < end:
            found = _blocked.blocked(sys._current_frames()[worker.ident or 0], worker.ident or 0)
        assert found is not None
        assert found.idle
