"""Streams: life, queries, time limits, attributes, and the messages of failures."""

from __future__ import annotations

import time

import halstream as hs
import pytest
from acl_help import LIMIT, Call, core, device_0, elsewhere, finish, ok, streams
from halstream import acl
from halstream.acl import _table, rt

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]


def test_null_where_a_handle_is_needed():
    (stream,) = streams(1)
    assert rt.destroy_stream(0) == 100000
    assert rt.destroy_stream_force(0) == 100000
    assert rt.destroy_event(0) == 100000
    assert rt.record_event(0, stream) == 100000
    assert rt.stream_wait_event(stream, 0) == 100000
    assert rt.synchronize_event(0) == 100000
    assert rt.query_event_status(0) == (0, 100000)
    assert rt.event_elapsed_time(0, 0) == (0.0, 100000)


@pytest.mark.row(48)
def test_use_after_destroy():
    event = ok(rt.create_event_ex_with_flag(1))
    gone, stream = streams(2)
    ok(rt.destroy_stream(gone))
    for call in (rt.destroy_stream, rt.synchronize_stream, rt.stream_abort):
        assert call(gone) == 107017
    assert rt.stream_query(gone) == (0xFFFF, 107017)
    assert rt.record_event(event, gone) == 107017
    ok(rt.destroy_event(event))
    assert rt.destroy_event(event) == 107017
    assert rt.record_event(event, stream) == 107017
    assert rt.synchronize_event(event) == 107017
    assert rt.query_event_status(event) == (0, 107017)
    # A handle of another kind, and numbers that are no handle.
    other = ok(rt.create_event_ex_with_flag(1))
    assert rt.synchronize_stream(other) == 107017
    assert rt.synchronize_event(stream) == 107017
    for number in (1, 2, 2**63, -1):
        assert rt.synchronize_stream(number) == 107017
        assert rt.synchronize_event(number) == 107017


@pytest.mark.needs("unknown-handles")
def test_a_number_that_is_no_handle_of_the_library():
    assert rt.synchronize_stream(2**40) == 107017
    assert rt.synchronize_event(2**40) == 107017


def test_no_driver_is_asked_about_a_stream_that_was_destroyed(monkeypatch):
    """A driver may crash on a number that is no handle of its own."""
    asked = []
    monkeypatch.setattr(hs.Stream, "from_handle", asked.append)
    gone, kept = streams(2)
    ok(rt.destroy_stream(gone))
    default = ok(rt.ctx_get_current_default_stream())
    assert rt.synchronize_stream(gone) == 107017
    assert rt.synchronize_stream(kept) == 0
    ok(rt.reset_device(0))
    assert rt.synchronize_stream(default) == 107017
    assert asked == []


@pytest.mark.row(55)
def test_stream_query(hold):
    (stream,) = streams(1)
    assert rt.stream_query(stream) == (0, 0)
    gate = hold(core(stream))
    assert rt.stream_query(stream) == (1, 0)
    assert elsewhere(rt.stream_query, stream) == (1, 0)
    gate.open()
    finish(stream)
    assert rt.stream_query(stream) == (0, 0)


@pytest.mark.row(56)
def test_synchronize_stream_with_timeout(hold):
    (stream,) = streams(1)
    gate = hold(core(stream))
    start = time.monotonic()
    assert rt.synchronize_stream_with_timeout(stream, 50) == 507046
    assert time.monotonic() - start >= 0.05
    for wrong in (0, -2):
        assert rt.synchronize_stream_with_timeout(stream, wrong) == 107000
    waiting = Call(rt.synchronize_stream_with_timeout, stream, -1)
    gate.open()
    assert waiting.result() == 0


def test_destroying_a_stream_waits_for_its_work(hold, settle):
    (stream,) = streams(1)
    context = ok(rt.get_context())
    seen: list[int] = []
    gate = hold(core(stream))
    core(stream).call(seen.append, 1)

    def destroy():
        ok(rt.set_context(context))
        return rt.destroy_stream(stream)

    destroying = Call(destroy)
    settle()
    assert not destroying.ended.is_set()
    gate.open()
    assert destroying.result() == 0
    assert seen == [1]


@pytest.mark.needs("abort")
def test_force_drops_the_work(hold):
    (stream,) = streams(1)
    seen: list[int] = []
    hold(core(stream))
    core(stream).call(seen.append, 1)
    assert rt.destroy_stream_force(stream) == 0
    assert rt.stream_query(stream)[1] == 107017
    ok(rt.synchronize_device_with_timeout(LIMIT))
    assert seen == []


@pytest.mark.needs("abort")
def test_abort_ends_waits_for_the_stream(hold):
    (stream,) = streams(1)
    seen: list[int] = []
    hold(core(stream))
    core(stream).call(seen.append, 1)
    waiting = Call(rt.synchronize_stream, stream)
    assert waiting.waits()
    assert rt.stream_abort(stream) == 0
    assert waiting.result() == 107023
    finish(stream)
    assert seen == []
    core(stream).call(seen.append, 2)
    finish(stream)
    assert seen == [2]


DROPS = [rt.stream_abort, rt.destroy_stream_force, lambda _: rt.device_task_abort(0, 0)]


@pytest.mark.parametrize("drop", DROPS)
def test_work_is_dropped_or_the_stream_stays_as_it_was(drop, hold):
    (stream,) = streams(1)
    seen: list[int] = []
    gate = hold(core(stream))
    core(stream).call(seen.append, 1)
    code = drop(stream)
    gate.open()
    if code == 207000:  # the driver cannot take work back
        finish(stream)
        assert seen == [1]
    else:
        assert code == 0
        ok(rt.synchronize_device_with_timeout(LIMIT))
        assert seen == []


def test_streams_are_numbered_and_counted():
    left = ok(rt.get_stream_available_num())
    made = streams(3)
    assert rt.get_stream_available_num() == (left - 3, 0)
    numbers = [ok(rt.stream_get_id(stream)) for stream in made]
    assert len(set(numbers)) == 3
    assert ok(rt.stream_get_id(0)) not in numbers
    ok(rt.destroy_stream(made[0]))
    assert rt.get_stream_available_num() == (left - 2, 0)


def test_flags_of_streams():
    stream = ok(rt.create_stream_with_config(0, 0x3))
    assert rt.stream_get_flags(stream) == (0x3, 0)
    assert rt.stream_get_flags(ok(rt.create_stream_with_config(0, 0x1003))) == (0x3, 0)
    assert rt.stream_get_flags(ok(rt.create_stream())) == (0, 0)
    for flag in (0x4, 0x10, 0x20):
        assert rt.create_stream_with_config(0, flag) == (0, 207000)


def test_attributes_of_streams():
    (stream,) = streams(1)
    for where in (stream, 0):
        assert rt.get_stream_attribute(where, 3) == ({"userCustomTag": 0}, 0)
        assert rt.set_stream_attribute(where, 3, {"userCustomTag": 7}) == 0
        assert rt.get_stream_attribute(where, 3) == ({"userCustomTag": 7}, 0)
    assert rt.get_stream_attribute(stream, 5) == ({"reserved": [0, 0, 0, 0]}, 0)
    assert rt.get_stream_attribute(stream, 99) == ({}, 107000)
    assert rt.set_stream_attribute(stream, 99, {}) == 107000
    assert rt.set_stream_overflow_switch(stream, 1) == 0
    assert rt.get_stream_overflow_switch(stream) == (1, 0)
    assert rt.get_stream_attribute(stream, 2) == ({"overflowSwitch": 1}, 0)


def test_attributes_stay_with_the_handle_of_another_dialects_stream():
    stream = hs.Stream()
    assert rt.set_stream_attribute(stream.handle, 3, {"userCustomTag": 7}) == 0
    assert rt.get_stream_attribute(stream.handle, 3) == ({"userCustomTag": 7}, 0)


def test_failure_mode_cannot_be_undone():
    (stream,) = streams(1)
    assert rt.set_stream_failure_mode(stream, 0) == 0
    assert rt.set_stream_failure_mode(stream, 2) == 107000
    assert rt.set_stream_failure_mode(stream, 1) == 0
    assert rt.set_stream_failure_mode(stream, 1) == 0
    assert rt.set_stream_failure_mode(stream, 0) == 207000
    assert rt.get_stream_attribute(stream, 1) == ({"failureMode": 1}, 0)
    ok(rt.create_context(0))
    assert rt.set_stream_failure_mode(stream, 1) == 107003


def test_the_message_of_a_failure():
    assert acl.get_recent_err_msg() is None
    assert rt.set_device(99) == 107001
    text = acl.get_recent_err_msg()
    assert text is not None
    assert text.startswith("EE1001: acl.rt.set_device failed, error code is 107001")
    assert "ACL_ERROR_RT_INVALID_DEVICEID" in text
    assert "99" in text
    # It is given once, and to the thread that failed.
    assert acl.get_recent_err_msg() is None
    rt.set_device(99)
    assert elsewhere(acl.get_recent_err_msg) is None
    assert acl.get_recent_err_msg() is not None


def test_the_code_of_the_last_failure():
    assert rt.peek_at_last_error(0) == 0
    assert rt.destroy_event(0) == 100000
    assert rt.peek_at_last_error(0) == 100000
    assert rt.peek_at_last_error(0) == 100000
    assert elsewhere(rt.peek_at_last_error, 0) == 0
    assert rt.get_last_error(0) == 100000
    assert rt.get_last_error(0) == 0
    assert rt.get_last_error(1) == 107000


def test_one_message_for_the_process(tmp_path):
    config = tmp_path / "acl.json"
    config.write_text('{"err_msg_mode": "1"}')
    ok(acl.init(str(config)))
    elsewhere(rt.set_device, 99)
    text = acl.get_recent_err_msg()
    assert text is not None
    assert "set_device" in text


def test_streams_of_other_dialects(hold):
    stream = hs.Stream(0)
    event = ok(rt.create_event_ex_with_flag(1))
    gate = hold(stream)
    assert rt.record_event(event, stream.handle) == 0
    assert rt.stream_query(stream.handle) == (1, 0)
    gate.open()
    assert rt.synchronize_stream_with_timeout(stream.handle, LIMIT) == 0
    # It belongs to its maker.
    assert rt.destroy_stream(stream.handle) == 107000
    stream.synchronize(timeout=LIMIT / 1000)


@pytest.mark.needs("every-stream")
def test_streams_run_out():
    left = ok(rt.get_stream_available_num())
    made = streams(left)
    assert rt.get_stream_available_num() == (0, 0)
    assert rt.create_stream() == (0, 207008)
    ok(rt.destroy_stream(made[-1]))
    ok(rt.create_stream())


def test_streams_of_destroyed_contexts_count_no_more():
    before = ok(rt.get_stream_available_num())
    for _ in range(4):
        context = ok(rt.create_context(0))
        streams(500)
        ok(rt.destroy_context(context))
        ok(rt.set_device(0))
        assert ok(rt.get_stream_available_num()) == before
        ok(rt.reset_device(0))
    assert not any(isinstance(o, _table.Stream) and o.closed for o in _table.objects.values())
