"""Programs with an order of host threads that happens to be right, each with a twin in which it is kept."""

from __future__ import annotations

import concurrent.futures
import threading

import halstream as hs

from ._host import N
from ._shapes_help import Shapes

PROGRAMS = Shapes("turns of host threads")


@PROGRAMS.add("core")
def event_set_before_the_record(ordered: bool) -> None:
    """A producer sets its `Event` before it has recorded the event that the consumer waits for."""
    producing, consuming = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, out = hs.zeros(N), hs.zeros(N)
    ready, filled = threading.Event(), hs.Event()
    producing.synchronize()
    hs.synchronize()

    def produce() -> None:
        x.fill(7, producing)
        if not ordered:
            ready.set()
        filled.record(producing)
        if ordered:
            ready.set()

    thread = threading.Thread(target=produce, name="producer")
    thread.start()
    ready.wait()
    filled.wait(consuming)
    out.copy_from(x, consuming)
    thread.join()
    assert out.numpy(consuming).tolist() == [7] * N


@PROGRAMS.add("core")
def refill_checked_without_a_lock(ordered: bool) -> None:
    """Two threads see that a buffer is empty, and both refill it."""
    stream, buffer = hs.Stream(), hs.zeros(N)
    filled = {"by": 0}
    lock = threading.Lock() if ordered else None

    def refill() -> None:
        if filled["by"]:
            return
        buffer.fill(1, stream)
        stream.synchronize()
        filled["by"] += 1

    def use() -> None:
        if lock is None:
            refill()
        else:
            with lock:
                refill()

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert filled["by"] == 1


@PROGRAMS.add("core")
def wake_up_that_is_lost(ordered: bool) -> None:
    """A waiter looks at a flag before it takes the condition: a notification between the two wakes nobody."""
    stream, changed, ready = hs.Stream(), threading.Condition(), [False]

    def finish() -> None:
        stream.synchronize()
        with changed:
            ready[0] = True
            changed.notify()

    thread = threading.Thread(target=finish, name="finisher")
    thread.start()
    if ordered:
        with changed:
            while not ready[0]:
                changed.wait()
    elif not ready[0]:
        with changed:
            changed.wait()
    thread.join()


@PROGRAMS.add("core")
def stream_shared_by_two_threads(ordered: bool) -> None:
    """Two threads fill one staging buffer on a stream that they share, and each copies what it finds there."""
    shared, staging = hs.Stream(), hs.zeros(N)
    lock, found = threading.Lock(), dict[int, list[int]]()
    outs = {number: hs.zeros(N) for number in (1, 2)}

    def work(number: int) -> None:
        staging.fill(number, shared)
        outs[number].copy_from(staging, shared)

    def worker(number: int) -> None:
        if ordered:
            with lock:
                work(number)
        else:
            work(number)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(worker, outs))
    for number, out in outs.items():
        found[number] = out.numpy(shared).tolist()
    assert found == {1: [1] * N, 2: [2] * N}


@PROGRAMS.add("core")
def locks_taken_in_two_orders(ordered: bool) -> None:
    """Two threads take the locks of two streams, each its own first."""
    first, second = hs.Stream(), hs.Stream()
    locks = {first: threading.Lock(), second: threading.Lock()}

    def move(source: hs.Stream, target: hs.Stream) -> None:
        one, two = (first, second) if ordered else (source, target)
        with locks[one]:
            one.query()
            with locks[two]:
                target.wait(source.record())

    thread = threading.Thread(target=move, args=(second, first), name="mover")
    thread.start()
    move(first, second)
    thread.join()
