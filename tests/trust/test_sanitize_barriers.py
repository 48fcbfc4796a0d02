"""What a barrier of host threads orders for the sanitizer, and what it does not."""

from __future__ import annotations

import _thread
import threading
from typing import Any

import halstream as hs
import pytest
from test_sanitize_threads import LIMIT, Work, _with_waiter


def test_V7_who_leaves_a_barrier_late_does_not_come_after_what_others_did_since(backend: str) -> None:
    work, barrier, gate = Work(), threading.Barrier(2), _thread.allocate_lock()
    inside: Any = barrier._cond  # type: ignore[attr-defined]
    gate.acquire()

    def leave_late(_: Any) -> None:
        assert gate.acquire(timeout=LIMIT)
        gate.release()
        inside._lock.acquire()

    def open_gate() -> None:
        while not inside._waiters:  # until the main thread has arrived again
            pass
        gate.release()

    def other() -> None:
        work.aside()
        barrier.wait(LIMIT)
        work.second()
        barrier.wait(LIMIT)

    with hs.sanitize() as report:
        thread = threading.Thread(target=other)
        inside._acquire_restore = leave_late
        thread.start()
        while barrier.n_waiting < 1:
            pass
        barrier.wait(LIMIT)
        opener = threading.Thread(target=open_gate)
        opener.start()
        work.first()
        barrier.wait(LIMIT)
        thread.join(LIMIT)
        opener.join(LIMIT)
    assert len(report.all) == 1, str(report)


def test_V7_the_action_of_a_barrier_comes_between_those_that_arrive_and_those_that_leave(backend: str) -> None:
    work, done = Work(), []

    def action() -> None:
        work.second()
        done.append(1)

    barrier = threading.Barrier(2, action)

    def other() -> None:
        work.first()
        barrier.wait(LIMIT)
        work.first()

    with hs.sanitize() as report:
        work.aside()
        thread = threading.Thread(target=other)
        thread.start()
        barrier.wait(LIMIT)
        thread.join(LIMIT)
        work.second()
    assert done == [1] and not report.all, str(report)


def test_V7_an_abort_orders_those_that_wait_at_the_barrier(backend: str) -> None:
    work, barrier = Work(), threading.Barrier(2)

    def wait() -> None:
        with pytest.raises(threading.BrokenBarrierError):
            barrier.wait(LIMIT)

    def abort() -> None:
        while barrier.n_waiting < 1:
            pass
        barrier.abort()

    with hs.sanitize() as report:
        _with_waiter(work, wait, abort)
    assert not report.all, str(report)
