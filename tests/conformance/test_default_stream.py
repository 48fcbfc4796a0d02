"""The order of the default streams with others (S5)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def test_S5_default_stream_waits_for_blocking_streams(hold: Hold, settle: Callable[[], None]) -> None:
    s, default, ran = hs.Stream(), hs.Device(0).default_stream, []
    gate = hold(s)
    default.call(ran.append, "default")
    settle()
    assert not default.query()
    assert ran == []
    gate.open()
    default.synchronize(timeout=LIMIT)
    assert ran == ["default"]


def test_S5_blocking_streams_wait_for_the_default_stream(hold: Hold, settle: Callable[[], None]) -> None:
    s, default, ran = hs.Stream(), hs.Device(0).default_stream, []
    gate = hold(default)
    s.call(ran.append, "s")
    settle()
    assert not s.query()
    assert ran == []
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert ran == ["s"]


def test_S5_non_blocking_streams_are_outside_that_order(hold: Hold) -> None:
    free, default, ran = hs.Stream(non_blocking=True), hs.Device(0).default_stream, []
    gate = hold(default)
    free.call(ran.append, "free")
    free.synchronize(timeout=LIMIT)
    assert ran == ["free"]
    assert not default.query()
    gate.open()
    default.synchronize(timeout=LIMIT)
    held = hold(free)
    default.call(ran.append, "default")
    default.synchronize(timeout=LIMIT)
    assert ran == ["free", "default"]
    assert not free.query()
    held.open()


def test_S5_earlier_work_of_a_blocking_stream_does_not_wait_for_later_default_work(hold: Hold) -> None:
    s, default = hs.Stream(), hs.Device(0).default_stream
    s.nop()
    s.synchronize(timeout=LIMIT)
    hold(default)
    assert s.query()
    s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize("wait", ["for a completed event", "for its own record", "for an idle stream"])
def test_S5_a_wait_on_the_default_stream_orders_blocking_streams(
    hold: Hold, settle: Callable[[], None], wait: str
) -> None:
    first, later, free = hs.Stream(), hs.Stream(), hs.Stream(non_blocking=True)
    default, ran = hs.Device(0).default_stream, []
    event = (default if wait == "for its own record" else free).record()
    event.synchronize(timeout=LIMIT)
    gate = hold(first)
    default.wait(free if wait == "for an idle stream" else event)
    later.call(ran.append, "later")
    settle()
    assert not later.query()
    assert ran == []
    gate.open()
    later.synchronize(timeout=LIMIT)
    assert ran == ["later"]


def test_S5_a_wait_for_an_event_without_record_orders_nothing(hold: Hold) -> None:
    first, later = hs.Stream(), hs.Stream()
    hold(first)
    hs.Device(0).default_stream.wait(hs.Event())
    later.nop()
    later.synchronize(timeout=LIMIT)


def test_S5_default_streams_of_two_devices_are_independent(hold: Hold) -> None:
    hold(hs.Device(0).default_stream)
    other = hs.Stream(device=1)
    other.nop()
    other.synchronize(timeout=LIMIT)
    hs.Device(1).default_stream.synchronize(timeout=LIMIT)


def test_S5_the_per_thread_default_stream_is_the_callers_own(hold: Hold) -> None:
    mine = hs.Device(0).per_thread_stream
    assert mine == hs.Device(0).per_thread_stream
    assert mine != hs.Device(0).default_stream
    hold(mine)
    seen: dict[str, Any] = {}

    def other() -> None:
        stream = hs.Device(0).per_thread_stream
        stream.nop()
        stream.synchronize(timeout=LIMIT)
        seen["same"] = stream == mine
        seen["idle"] = stream.query()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(LIMIT)
    assert seen == {"same": False, "idle": True}
    assert not mine.query()
