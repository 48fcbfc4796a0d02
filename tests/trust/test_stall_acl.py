"""W1: waits of AscendCL programs that can never end."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from typing import Any

import halstream as hs
import pytest
from stall_help import chain, place

pytestmark = pytest.mark.needs("stalls")

here = functools.partial(place, __file__)


@pytest.fixture
def acl(backend: str) -> Iterator[Any]:
    """The ACL dialect with device 0 current, and nothing left afterwards."""
    from halstream import acl

    assert acl.rt.set_device(0) == 0
    yield acl
    assert acl.rt.device_task_abort(0, 10_000) == 0
    acl.rt.reset_device_force(0)


def test_W1_an_event_of_cann_that_waits_for_a_record_in_the_future(acl: Any) -> None:
    rt = acl.rt
    (event, _), (stream, _), (other, _) = rt.create_event_with_flag(1), rt.create_stream(), rt.create_stream()
    assert rt.stream_wait_event(stream, event) == 0  # waits
    assert rt.stream_wait_event(other, event) == 0
    core = hs.Stream.from_handle(stream)
    with pytest.raises(hs.StallError) as exc:
        core.synchronize()
    chain(
        exc,
        f"stream {core.index} ",
        "a wait for event",
        "from " + here("waits"),
        "is not recorded",
        "Record",
    )
    # The dialect's own functions never raise.
    assert rt.synchronize_stream(stream) == 507000
    assert "is not recorded" in acl.get_recent_err_msg()
    assert rt.record_event(event, hs.Stream.from_handle(rt.create_stream()[0]).handle) == 0
    assert rt.synchronize_stream(stream) == 0


def test_W1_two_streams_of_cann_that_wait_for_each_other(acl: Any) -> None:
    rt = acl.rt
    events = [rt.create_event_with_flag(1)[0] for _ in range(2)]
    streams = [rt.create_stream()[0] for _ in range(2)]
    for i in range(2):
        assert rt.stream_wait_event(streams[i], events[1 - i]) == 0
        assert rt.record_event(events[i], streams[i]) == 0
    with pytest.raises(hs.StallError) as exc:
        hs.synchronize(0)
    chain(
        exc,
        "each of these waits for the next", "and 1 other stream(s)",
        "a wait for event", "is not recorded yet", "a wait for event", "is not recorded yet", "Break the circle",
    )  # fmt: skip
    assert rt.stream_abort(streams[0]) == 0
    assert rt.stream_abort(streams[1]) == 0


def test_W1_a_report_that_no_thread_takes(acl: Any) -> None:
    rt = acl.rt
    stream, _ = rt.create_stream()
    me = threading.get_ident()
    assert rt.subscribe_report(me, stream) == 0
    assert rt.launch_callback(print, None, 1, stream) == 0
    core = hs.Stream.from_handle(stream)
    with pytest.raises(hs.StallError) as exc:
        core.synchronize()
    chain(exc, "the first is a report", "no thread takes the reports", "process the reports")
    assert rt.process_report(10_000) == 0
    assert rt.synchronize_stream(stream) == 0
    # And nothing can come any more.
    assert rt.process_report(-1) == 507000
    assert "waits for a report" in acl.get_recent_err_msg()
    assert rt.unsubscribe_report(me, stream) == 0
