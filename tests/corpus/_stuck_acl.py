"""Programs in AscendCL that never end."""

from __future__ import annotations

import threading

from halstream import acl

from ._acl import begin, made, ok
from ._stuck_help import Stuck, later, synchronize


def _streams() -> tuple[int, int]:
    """Return a stream to wait for, and one for `release`; both end with that."""
    begin()
    stream, other = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    return stream, other


def _destroy(*streams: int) -> None:
    ok(*map(acl.rt.destroy_stream, streams))


def future_record() -> None:
    """A stream waits for an event that nobody records."""
    stream, other = _streams()
    event = made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC))
    later.extend([lambda: ok(acl.rt.record_event(event, other)), lambda: _destroy(stream, other)])
    ok(acl.rt.stream_wait_event(stream, event))
    synchronize(stream)


def two_futures() -> None:
    """Two streams wait, each for an event that the other records afterwards."""
    first, second = _streams()
    third = made(acl.rt.create_stream())
    mine, its = (made(acl.rt.create_event_with_flag(acl.ACL_EVENT_SYNC)) for _ in range(2))
    later.extend([lambda: ok(acl.rt.record_event(mine, third)), lambda: _destroy(first, second, third)])
    ok(acl.rt.stream_wait_event(first, mine), acl.rt.record_event(its, first))
    ok(acl.rt.stream_wait_event(second, its), acl.rt.record_event(mine, second))
    synchronize(first)


def nobody_reports() -> None:
    """A stream waits for a callback, and the thread that should run it waits for the stream."""
    stream, other = _streams()
    me, ran = threading.get_ident(), []

    def end() -> None:
        if not ran:
            ok(acl.rt.process_report(1000))
        ok(acl.rt.unsubscribe_report(me, stream))
        _destroy(stream, other)

    later.append(end)
    ok(acl.rt.subscribe_report(me, stream))
    ok(acl.rt.launch_callback(ran.append, 1, acl.ACL_CALLBACK_BLOCK, stream))
    synchronize(stream)


STUCK: tuple[Stuck, ...] = (
    Stuck("future_record", future_record, ("waits for stream", "event", "not recorded")),
    Stuck("two_futures", two_futures, ("waits for stream", "event", "not recorded")),
    Stuck("nobody_reports", nobody_reports, ("waits for stream", "report", "no thread takes the reports")),
)
