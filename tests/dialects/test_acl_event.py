"""Kinds of events, what they answer, and time."""

from __future__ import annotations

import pytest
from acl_help import LIMIT, core, device_0, elsewhere, finish, ok, streams
from halstream.acl import rt

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]

SYNC, PROGRESS, TIME_LINE = 0x1, 0x2, 0x8


@pytest.mark.row(49)
def test_flags_of_ex_events():
    for flag in (0, 0x10, 0x20, 0x41, 0x80, 0x11):
        assert rt.create_event_ex_with_flag(flag) == (0, 107000), hex(flag)
    for flag in (0x1, 0x2, 0x3, 0x8, 0x9, 0xB):
        event, ret = rt.create_event_ex_with_flag(flag)
        assert ret == 0, hex(flag)
        assert event != 0
    # Events between processes are not there yet.
    assert rt.create_event_ex_with_flag(0x40) == (0, 207000)


@pytest.mark.row(50)
def test_flags_of_old_events():
    for flag in (0, 0x40, 0x11, 0x21, 0x30):
        assert rt.create_event_with_flag(flag) == (0, 107000), hex(flag)
    for flag in (0x1, 0x8, 0xE, 0xF, 0x20):
        event, ret = rt.create_event_with_flag(flag)
        assert ret == 0, hex(flag)
        assert event != 0


@pytest.mark.row(53)
def test_query_event_status(hold):
    ex, old = ok(rt.create_event_ex_with_flag(SYNC)), ok(rt.create_event())
    assert rt.query_event_status(ex) == (1, 0)
    assert rt.query_event_status(old) == (0, 0)
    assert rt.query_event_status(ok(rt.create_event_with_flag(SYNC))) == (0, 0)
    for event in (ex, old):
        (stream,) = streams(1)
        gate = hold(core(stream))
        ok(rt.record_event(event, stream))
        assert rt.query_event_status(event) == (0, 0)
        assert elsewhere(rt.query_event_status, event) == (0, 0)
        gate.open()
        finish(stream)
        assert rt.query_event_status(event) == (1, 0)


@pytest.mark.row(54)
def test_query_event_and_its_waits(hold):
    ex, old = ok(rt.create_event_ex_with_flag(SYNC)), ok(rt.create_event())
    assert rt.query_event(ex)[1] == 207000
    assert rt.query_event_wait_status(ex)[1] == 207000
    assert rt.query_event(old) == (0, 0)
    assert rt.query_event_wait_status(old) == (0, 0)
    first, second = streams(2)
    gate = hold(core(first))
    ok(rt.record_event(old, first))
    assert rt.query_event(old) == (1, 0)
    assert rt.query_event_wait_status(old) == (0, 0)
    ok(rt.stream_wait_event(second, old))
    assert rt.query_event_wait_status(old) == (1, 0)
    gate.open()
    finish(second)
    assert rt.query_event(old) == (0, 0)
    assert rt.query_event_wait_status(old) == (0, 0)


@pytest.mark.row(57)
def test_codes_of_time_limits(hold):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    (stream,) = streams(1)
    gate = hold(core(stream))
    ok(rt.record_event(event, stream))
    assert rt.synchronize_event_with_timeout(event, 50) == 507047
    assert rt.synchronize_device_with_timeout(50) == 507046
    for wrong in (0, -2):
        assert rt.synchronize_event_with_timeout(event, wrong) == 107000
        assert rt.synchronize_device_with_timeout(wrong) == 107000
    gate.open()
    assert rt.synchronize_event_with_timeout(event, -1) == 0
    assert rt.synchronize_device_with_timeout(-1) == 0


def two_records(make, seconds: float) -> tuple[int, int]:
    start, end = ok(make()), ok(make())
    (stream,) = streams(1)
    ok(rt.record_event(start, stream))
    core(stream).delay(seconds)
    ok(rt.record_event(end, stream))
    finish(stream)
    return start, end


@pytest.mark.row(58)
def test_elapsed_time(hold):
    start, end = two_records(lambda: rt.create_event_ex_with_flag(TIME_LINE), 0.02)
    ms, ret = rt.event_elapsed_time(start, end)
    assert ret == 0
    assert isinstance(ms, float)
    assert 15 <= ms < 5000
    assert rt.event_elapsed_time(end, start) == (-ms, 0)
    fresh = ok(rt.create_event_ex_with_flag(TIME_LINE))
    assert rt.event_elapsed_time(start, fresh) == (0.0, 507000)
    assert rt.event_elapsed_time(fresh, end) == (0.0, 507000)
    untimed = two_records(lambda: rt.create_event_ex_with_flag(SYNC), 0)
    assert rt.event_elapsed_time(*untimed) == (0.0, 107006)
    (stream,) = streams(1)
    gate = hold(core(stream))
    ok(rt.record_event(fresh, stream))
    assert rt.event_elapsed_time(start, fresh) == (0.0, 107006)
    gate.open()
    finish(stream)
    assert rt.event_elapsed_time(start, fresh)[1] == 0


@pytest.mark.row(59)
def test_default_events_are_timed():
    start, end = two_records(rt.create_event, 0.001)
    ms, ret = rt.event_elapsed_time(start, end)
    assert ret == 0
    assert 0.5 <= ms < 5000


@pytest.mark.row(60)
def test_timestamps():
    (stream,) = streams(1)
    events = [ok(rt.create_event_ex_with_flag(TIME_LINE)) for _ in range(20)]
    assert rt.event_get_timestamp(events[0]) == (0, 507000)
    for event in events:
        core(stream).delay(0.0005)
        ok(rt.record_event(event, stream))
    finish(stream)
    stamps = [ok(rt.event_get_timestamp(event)) for event in events]
    assert stamps == sorted(stamps)
    # Microseconds: the same distance as the elapsed time, which is in milliseconds.
    ms = ok(rt.event_elapsed_time(events[0], events[-1]))
    assert (stamps[-1] - stamps[0]) / 1000 == pytest.approx(ms, abs=0.01)
    assert rt.event_get_timestamp(ok(rt.create_event_ex_with_flag(SYNC)))[1] == 507000


def test_numbers_of_events():
    event = ok(rt.create_event_ex_with_flag(SYNC))
    assert rt.get_event_id(event)[1] == 0
    assert rt.get_event_id(ok(rt.create_event_ex_with_flag(PROGRESS)))[1] == 507000
    left = ok(rt.get_event_avail_num())
    another = ok(rt.create_event())
    assert rt.get_event_avail_num() == (left - 1, 0)
    ok(rt.destroy_event(another))
    assert rt.get_event_avail_num() == (left, 0)


def test_events_for_captures_answer_no_query():
    event = ok(rt.create_event_with_flag(0x20))
    assert rt.query_event(event)[1] == 207000
    assert rt.query_event_status(event)[1] == 207000
    assert rt.query_event_wait_status(event)[1] == 207000
    assert rt.synchronize_event(event) == 207000
    assert rt.event_elapsed_time(event, event)[1] == 207000


def test_an_event_of_one_device_on_a_stream_of_another():
    event = ok(rt.create_event_ex_with_flag(SYNC))
    (here,) = streams(1)
    ok(rt.set_device(1))
    (there,) = streams(1)
    assert rt.record_event(event, there) == 107000
    # Waiting may cross devices.
    ok(rt.set_device(0))
    ok(rt.record_event(event, here))
    ok(rt.set_device(1))
    assert rt.stream_wait_event(there, event) == 0
    assert rt.synchronize_stream_with_timeout(there, LIMIT) == 0


def test_destroying_an_event_never_waits(hold):
    event = ok(rt.create_event())
    (stream,) = streams(1)
    hold(core(stream))
    ok(rt.record_event(event, stream))
    assert rt.destroy_event(event) == 0
    assert rt.destroy_event(event) == 107017
    assert rt.stream_query(stream) == (1, 0)
