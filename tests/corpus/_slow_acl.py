"""Twins of the programs in `_stuck_acl` that end by themselves."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from halstream import acl

from ._acl import begin, made, ok
from ._slow_help import SECONDS, after


def _record(event: int, stream: int) -> Callable[[], None]:
    """Return a function that another thread of the program can call."""
    context = made(acl.rt.get_context())

    def record() -> None:
        ok(acl.rt.set_context(context), acl.rt.record_event(event, stream))

    return record


def future_record() -> None:
    """Another thread records the event."""
    begin()
    stream, other = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    event = made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    ok(acl.rt.stream_wait_event(stream, event))
    with after(_record(event, other)):
        ok(acl.rt.synchronize_stream(stream))
    ok(acl.rt.destroy_stream(stream), acl.rt.destroy_stream(other), acl.rt.destroy_event(event))


def two_futures() -> None:
    """Another thread records the event at which the circle begins."""
    begin()
    first, second, third = (made(acl.rt.create_stream()) for _ in range(3))
    mine, its = (made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC)) for _ in range(2))
    ok(acl.rt.stream_wait_event(first, mine), acl.rt.record_event(its, first))
    ok(acl.rt.stream_wait_event(second, its), acl.rt.record_event(mine, second))
    with after(_record(mine, third)):
        ok(acl.rt.synchronize_stream(first))
    ok(*map(acl.rt.destroy_stream, (first, second, third)), *map(acl.rt.destroy_event, (mine, its)))


def nobody_reports() -> None:
    """The thread that runs the callbacks is late."""
    begin()
    stream = made(acl.rt.create_stream())
    subscribed, ran = threading.Event(), []

    def serve() -> None:
        subscribed.wait()
        time.sleep(SECONDS)
        ok(acl.rt.process_report(10_000))

    server = threading.Thread(target=serve, name="reports")
    server.start()
    ok(acl.rt.subscribe_report(server.ident, stream))
    ok(acl.rt.launch_callback(ran.append, 1, acl.ACL_CALLBACK_BLOCK, stream))
    subscribed.set()
    ok(acl.rt.synchronize_stream(stream))
    server.join()
    ok(acl.rt.unsubscribe_report(server.ident, stream), acl.rt.destroy_stream(stream))
    assert ran == [1]


SLOW: dict[str, Callable[[], None]] = {run.__name__: run for run in (future_record, two_futures, nobody_reports)}
