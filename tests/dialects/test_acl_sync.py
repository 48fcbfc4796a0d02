"""Waiting for events and streams, and order between streams."""

from __future__ import annotations

import random

import pytest
from acl_help import LIMIT, Call, core, device_0, elsewhere, finish, ok, streams
from halstream.acl import rt

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]

SYNC, PROGRESS, TIME_LINE = 0x1, 0x2, 0x8


@pytest.mark.row(1)
def test_event_before_any_stream():
    event, ret = rt.create_event_ex_with_flag(PROGRESS)
    assert ret == 0
    assert event != 0


@pytest.mark.row(2, 4)
def test_synchronize_event_then_destroy_the_stream_first():
    event = ok(rt.create_event_ex_with_flag(PROGRESS))
    stream = ok(rt.create_stream())
    seen: list[int] = []
    for i in range(50):
        core(stream).call(seen.append, i)
    assert rt.record_event(event, stream) == 0
    assert rt.synchronize_event(event) == 0
    assert seen == list(range(50))
    assert rt.destroy_stream(stream) == 0
    assert rt.destroy_event(event) == 0


@pytest.mark.row(3)
def test_work_behind_the_record_is_not_waited_for(hold):
    event = ok(rt.create_event_ex_with_flag(PROGRESS))
    (stream,) = streams(1)
    ok(rt.record_event(event, stream))
    hold(core(stream))
    assert rt.synchronize_event_with_timeout(event, LIMIT) == 0
    assert rt.stream_query(stream) == (1, 0)


@pytest.mark.row(5)
def test_synchronizing_an_unrecorded_event_returns_at_once():
    for made in (
        rt.create_event(),
        rt.create_event_with_flag(SYNC),
        rt.create_event_ex_with_flag(SYNC),
    ):
        event = ok(made)
        assert rt.synchronize_event(event) == 0
        assert rt.synchronize_event_with_timeout(event, LIMIT) == 0


@pytest.mark.row(6)
def test_synchronize_event_twice_and_from_two_threads(hold, settle):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    (stream,) = streams(1)
    gate = hold(core(stream))
    ok(rt.record_event(event, stream))
    waiting = [Call(rt.synchronize_event, event) for _ in range(2)]
    settle()
    assert not any(call.ended.is_set() for call in waiting)
    gate.open()
    assert [call.result() for call in waiting] == [0, 0]
    assert rt.synchronize_event(event) == 0
    assert rt.synchronize_event(event) == 0


@pytest.mark.row(7)
def test_synchronize_event_waits_for_the_second_record(hold):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    (stream,) = streams(1)
    first = hold(core(stream))
    ok(rt.record_event(event, stream))
    second = hold(core(stream))
    ok(rt.record_event(event, stream))
    first.open()
    assert rt.synchronize_event_with_timeout(event, 50) == 507047
    second.open()
    assert rt.synchronize_event_with_timeout(event, LIMIT) == 0


@pytest.mark.row(8)
@pytest.mark.parametrize("flag", [PROGRESS, TIME_LINE, PROGRESS | TIME_LINE])
def test_a_stream_cannot_wait_for_an_event_without_sync(flag):
    event = ok(rt.create_event_ex_with_flag(flag))
    first, second = streams(2)
    ok(rt.record_event(event, first))
    assert rt.stream_wait_event(second, event) == 207000
    assert rt.synchronize_event_with_timeout(event, LIMIT) == 0


@pytest.mark.row(16)
def test_stream_0_is_the_default_stream(hold, settle):
    seen: list[str] = []
    gate = hold(core(0))
    core(0).call(seen.append, "default")
    assert rt.synchronize_stream_with_timeout(0, 50) == 507046
    waiting = Call(lambda: (rt.set_device(0), rt.synchronize_stream(0)))
    settle()
    assert not waiting.ended.is_set()
    gate.open()
    assert waiting.result() == (0, 0)
    assert seen == ["default"]
    assert rt.synchronize_stream(0) == 0
    assert elsewhere(rt.synchronize_stream, 0) == 107002


@pytest.mark.row(17)
def test_synchronizing_an_empty_stream():
    (stream,) = streams(1)
    assert rt.synchronize_stream(stream) == 0


@pytest.mark.row(18)
def test_synchronizing_needs_no_context(hold, settle):
    (stream,) = streams(1)
    gate = hold(core(stream))

    def with_another_context():
        ok(rt.create_context(0))
        return rt.synchronize_stream(stream)

    waiting = Call(with_another_context)
    settle()
    assert not waiting.ended.is_set()
    gate.open()
    assert waiting.result() == 0
    assert elsewhere(rt.synchronize_stream, stream) == 0


@pytest.mark.row(20)
def test_a_wait_orders_two_streams():
    event = ok(rt.create_event_ex_with_flag(SYNC))
    first, second = streams(2)
    producer, consumer = core(first), core(second)
    chance = random.Random(0)
    done = [False] * 1000
    early: list[int] = []

    def check(i: int) -> None:
        if not done[i]:
            early.append(i)

    for i in range(1000):
        if chance.random() < 0.3:
            producer.delay(chance.random() * 1e-4)
        producer.call(done.__setitem__, i, True)
        ok(rt.record_event(event, first))
        ok(rt.stream_wait_event(second, event))
        consumer.call(check, i)
    finish(second)
    finish(first)
    assert early == []
    assert all(done)


@pytest.mark.row(21, 22)
def test_three_streams_wait_without_blocking_the_host(hold, settle):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    first, *others = streams(4)
    seen: list[int] = []
    gate = hold(core(first))
    ok(rt.record_event(event, first))
    for waiting in others:
        assert rt.stream_wait_event(waiting, event) == 0
        core(waiting).call(seen.append, waiting)
    settle()
    assert seen == []
    gate.open()
    for waiting in others:
        finish(waiting)
    assert sorted(seen) == sorted(others)


@pytest.mark.row(23)
def test_waiting_for_an_unrecorded_ex_event_does_nothing():
    event = ok(rt.create_event_ex_with_flag(SYNC))
    (stream,) = streams(1)
    assert rt.stream_wait_event(stream, event) == 0
    finish(stream)


@pytest.mark.row(24)
def test_recording_again_does_not_move_an_earlier_wait(hold):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    first, second = streams(2)
    gate = hold(core(first))
    ok(rt.record_event(event, first))
    ok(rt.stream_wait_event(second, event))
    hold(core(first))
    ok(rt.record_event(event, first))
    assert rt.stream_query(second) == (1, 0)
    gate.open()
    finish(second)
    assert rt.query_event_status(event) == (0, 0)


@pytest.mark.row(25)
def test_waiting_on_the_recording_stream():
    for made in (rt.create_event_ex_with_flag(SYNC), rt.create_event()):
        event = ok(made)
        (stream,) = streams(1)
        ok(rt.record_event(event, stream))
        assert rt.stream_wait_event(stream, event) == 0
        finish(stream)


@pytest.mark.row(26)
def test_destroying_an_event_keeps_the_wait(hold, settle):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    first, second = streams(2)
    seen: list[str] = []
    gate = hold(core(first))
    core(first).call(seen.append, "first")
    ok(rt.record_event(event, first))
    ok(rt.stream_wait_event(second, event))
    assert rt.destroy_event(event) == 0
    core(second).call(seen.append, "second")
    settle()
    assert seen == []
    gate.open()
    finish(second)
    assert seen == ["first", "second"]


@pytest.mark.row(27)
def test_two_streams_wait_for_each_other_in_turn():
    there = ok(rt.create_event_ex_with_flag(SYNC))
    back = ok(rt.create_event_ex_with_flag(SYNC))
    first, second = streams(2)
    seen: list[int] = []
    for i in range(0, 200, 2):
        core(first).call(seen.append, i)
        ok(rt.record_event(there, first))
        ok(rt.stream_wait_event(second, there))
        core(second).call(seen.append, i + 1)
        ok(rt.record_event(back, second))
        ok(rt.stream_wait_event(first, back))
    finish(first)
    finish(second)
    assert seen == list(range(200))


@pytest.mark.row(28)
def test_waiting_for_an_unrecorded_default_event_is_an_error():
    event = ok(rt.create_event())
    first, second = streams(2)
    assert rt.stream_wait_event(second, event) == 107000
    ok(rt.record_event(event, first))
    assert rt.stream_wait_event(second, event) == 0
    finish(second)


@pytest.mark.row(29)
def test_an_event_with_sync_makes_a_stream_wait_for_a_later_record(settle):
    event = ok(rt.create_event_with_flag(SYNC))
    first, second = streams(2)
    seen: list[str] = []
    assert rt.stream_wait_event(second, event) == 0
    core(second).call(seen.append, "after")
    settle()
    assert seen == []
    assert rt.stream_query(second) == (1, 0)
    ok(rt.record_event(event, first))
    finish(second)
    assert seen == ["after"]


@pytest.mark.row(30)
def test_an_event_with_sync_stays_set_until_its_reset(settle):
    event = ok(rt.create_event_with_flag(SYNC))
    first, second = streams(2)
    ok(rt.record_event(event, first))
    ok(rt.stream_wait_event(second, event))
    # Still set: this wait passes without a new record.
    ok(rt.stream_wait_event(second, event))
    finish(second)
    assert rt.reset_event(event, second) == 0
    finish(second)
    ok(rt.stream_wait_event(second, event))
    settle()
    assert rt.stream_query(second) == (1, 0)
    ok(rt.record_event(event, first))
    finish(second)


@pytest.mark.row(31)
def test_ex_events_have_no_reset():
    event = ok(rt.create_event_ex_with_flag(SYNC))
    (stream,) = streams(1)
    assert rt.reset_event(event, stream) == 207000
    assert rt.reset_event(ok(rt.create_event_with_flag(TIME_LINE)), stream) == 207000


def test_an_event_of_the_plain_creator_may_be_reset(hold):
    event = ok(rt.create_event())
    first, second = streams(2)
    gate = hold(core(first))
    for _ in range(2):
        ok(rt.record_event(event, first))
        ok(rt.stream_wait_event(second, event))
        assert rt.reset_event(event, second) == 0
    assert rt.stream_query(second) == (1, 0)
    gate.open()
    finish(second)
    assert rt.query_event_status(event) == (1, 0)
    assert rt.reset_event(event, ok(rt.create_stream())) == 0
    context = ok(rt.create_context(0))
    assert rt.reset_event(event, second) == 107003
    ok(rt.destroy_context(context))


@pytest.mark.row(32)
def test_a_stream_waits_no_longer_than_its_limit(hold):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    first, second = streams(2)
    seen: list[str] = []
    gate = hold(core(first))
    ok(rt.record_event(event, first))
    assert rt.stream_wait_event_with_timeout(second, event, -1) == 107000
    # The unit is the second: a limit in milliseconds would be over in the settling.
    assert rt.stream_wait_event_with_timeout(second, event, 1) == 0
    core(second).call(seen.append, "went on")
    assert rt.synchronize_stream_with_timeout(second, 100) == 507046
    assert rt.synchronize_stream_with_timeout(second, LIMIT) == 107020
    assert seen == ["went on"]
    # Told once.
    assert rt.synchronize_stream_with_timeout(second, LIMIT) == 0
    assert rt.stream_wait_event_with_timeout(second, event, 0) == 0
    assert rt.synchronize_stream_with_timeout(second, 50) == 507046
    gate.open()
    finish(second)


def test_op_wait_timeout_limits_every_wait(hold):
    event = ok(rt.create_event_ex_with_flag(SYNC))
    first, second = streams(2)
    hold(core(first))
    ok(rt.record_event(event, first))
    assert rt.set_op_wait_timeout(1) == 0
    ok(rt.stream_wait_event(second, event))
    assert rt.synchronize_stream_with_timeout(second, LIMIT) == 107020
