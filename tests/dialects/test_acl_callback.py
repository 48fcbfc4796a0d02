"""Functions of the host in stream order."""

from __future__ import annotations

import threading

import pytest
from acl_help import LIMIT, Call, core, device_0, finish, ok, streams
from halstream.acl import _table, rt, util

pytestmark = pytest.mark.dialect("acl")

__all__ = ["device_0"]

NO_BLOCK, BLOCK = 0, 1


@pytest.fixture
def me():
    return threading.get_ident()


@pytest.mark.row(61)
def test_a_callback_needs_a_subscription(me):
    (stream,) = streams(1)
    assert rt.launch_callback(print, None, BLOCK, stream) == 107015
    ok(rt.subscribe_report(me, stream))
    ok(rt.unsubscribe_report(me, stream))
    assert rt.launch_callback(print, None, BLOCK, stream) == 107015
    finish(stream)


@pytest.mark.row(62)
def test_codes_of_process_report(me):
    (stream,) = streams(1)
    assert rt.process_report(50) == 107012
    ok(rt.subscribe_report(me, stream))
    assert rt.process_report(50) == 507012
    assert rt.process_report(0) == 100000
    assert rt.process_report(-2) == 100000
    ok(rt.unsubscribe_report(me, stream))
    assert rt.process_report(50) == 107012


@pytest.mark.row(63)
def test_callbacks_run_on_the_subscribed_thread_in_order(hold, settle, me):
    (stream,) = streams(1)
    seen: list[tuple[object, int]] = []

    def note(what: object) -> None:
        seen.append((what, threading.get_ident()))

    ok(rt.subscribe_report(me, stream))
    gate = hold(core(stream))
    # A gate instead of a function: those go where the callbacks go.
    for i in range(3):
        ok(rt.launch_callback(note, [i], BLOCK, stream))
    later = ok(rt.create_event_ex_with_flag(1))
    ok(rt.record_event(later, stream))
    assert rt.process_report(50) == 507012
    gate.open()
    settle()
    assert seen == []
    assert rt.query_event_status(later) == (0, 0)
    while len(seen) < 3:
        ok(rt.process_report(LIMIT))
    finish(stream)
    assert seen == [([i], me) for i in range(3)]
    assert rt.process_report(50) == 507012


def test_work_does_not_wait_for_a_callback_without_block(me):
    (stream,) = streams(1)
    seen: list[int] = []
    ok(rt.subscribe_report(me, stream))
    ok(rt.launch_callback(seen.append, 1, NO_BLOCK, stream))
    later = ok(rt.create_event_ex_with_flag(1))
    ok(rt.record_event(later, stream))
    ok(rt.synchronize_event_with_timeout(later, LIMIT))
    assert seen == []
    ok(rt.process_report(LIMIT))
    assert seen == [1]


def test_arguments_of_launch_callback(me):
    (stream,) = streams(1)
    ok(rt.subscribe_report(me, stream))
    assert rt.launch_callback(print, None, 2, stream) == 100000
    with pytest.raises(TypeError, match="launch_callback args parse failed"):
        rt.launch_callback(None, None, BLOCK, stream)


@pytest.mark.row(64)
def test_host_functions_need_no_subscription(hold):
    (stream,) = streams(1)
    seen: list[object] = []
    gate = hold(core(stream))
    assert rt.launch_host_func(stream, seen.append, "ran") == 0
    assert seen == []
    gate.open()
    assert rt.synchronize_stream_with_timeout(stream, LIMIT) == 0
    assert seen == ["ran"]


@pytest.mark.row(65)
def test_a_stream_has_one_subscriber(me):
    first, second = streams(2)
    assert rt.subscribe_report(me, first) == 0
    assert rt.subscribe_report(me, first) == 107011
    assert rt.subscribe_report(me + 64, first) == 107011
    assert rt.subscribe_report(me, second) == 0
    assert rt.unsubscribe_report(me + 64, first) == 107012
    ok(rt.unsubscribe_report(me, first))
    assert rt.unsubscribe_report(me, first) == 107011
    # The second stream still has it.
    assert rt.process_report(50) == 507012


def test_a_thread_serves_one_device(me):
    (first,) = streams(1)
    ok(rt.subscribe_report(me, first))
    ok(rt.set_device(1))
    (second,) = streams(1)
    assert rt.subscribe_report(me, second) == 107012
    ok(rt.unsubscribe_report(me, first))
    assert rt.subscribe_report(me, second) == 0


@pytest.mark.row(66)
def test_functions_of_the_core_run_beside_a_subscription(me):
    (stream,) = streams(1)
    ok(rt.subscribe_report(me, stream))
    seen: list[int] = []
    core(stream).call(seen.append, 1)
    finish(stream)
    assert seen == [1]
    ok(rt.unsubscribe_report(me, stream))


@pytest.mark.row(65)
@pytest.mark.parametrize(
    "end", ["destroy_stream", pytest.param("destroy_stream_force", marks=pytest.mark.needs("abort"))]
)
def test_a_destroyed_stream_leaves_no_subscription(me, end):
    (stream,) = streams(1)
    ok(rt.subscribe_report(me, stream))
    ok(getattr(rt, end)(stream))
    assert rt.process_report(50) == 107012
    assert not _table.queues


@pytest.mark.row(65)
def test_a_destroyed_context_leaves_no_subscription(me):
    context = ok(rt.create_context(0))
    ok(rt.subscribe_report(me, ok(rt.create_stream())))
    ok(rt.subscribe_report(me, 0))
    ok(rt.destroy_context(context))
    assert not _table.queues


@pytest.mark.row(65)
@pytest.mark.parametrize("block_type", [NO_BLOCK, BLOCK])
def test_a_callback_that_ends_its_subscription_is_the_last_one(me, block_type):
    (stream,) = streams(1)
    ok(rt.subscribe_report(me, stream))
    answers: list[int] = []
    ok(rt.launch_callback(lambda handle: answers.append(rt.unsubscribe_report(me, handle)), stream, block_type, stream))
    ok(rt.process_report(LIMIT))
    assert answers == [0]
    assert not _table.queues
    assert rt.process_report(50) == 107012
    finish(stream)


@pytest.mark.row(66)
def test_host_functions_and_subscriptions_do_not_mix(me):
    (stream,) = streams(1)
    ok(rt.subscribe_report(me, stream))
    assert rt.launch_host_func(stream, print, None) == 107011
    ok(rt.unsubscribe_report(me, stream))
    (other,) = streams(1)
    seen: list[int] = []
    ok(rt.launch_host_func(other, seen.append, 1))
    finish(other)
    assert rt.subscribe_report(me, other) == 107011
    assert seen == [1]


class Loop:
    """A thread of `start_thread` that runs reports until told to end."""

    def __init__(self) -> None:
        self.on = True
        self.codes: list[int] = []
        self.thread, ret = util.start_thread(self.run, [20])
        assert ret == 0
        assert self.thread != 0

    def run(self, args: list[int]) -> None:
        self.ident = threading.get_ident()
        while self.on:
            ret = rt.process_report(args[0])
            if ret not in (0, 107012, 507012):
                self.codes.append(ret)

    def end(self) -> None:
        self.on = False
        assert util.stop_thread(self.thread) == 0
        assert self.codes == []


@pytest.mark.row(83)
def test_callbacks_on_a_thread_of_start_thread(unraisable):
    (stream,) = streams(1)
    loop = Loop()
    seen: list[tuple[object, int]] = []

    def fail(args: object) -> None:
        raise ZeroDivisionError(args)

    ok(rt.subscribe_report(loop.thread, stream))
    ok(rt.launch_callback(fail, [0], BLOCK, stream))
    ok(rt.launch_callback(lambda args: seen.append((args, threading.get_ident())), [1, 2], BLOCK, stream))
    finish(stream)
    ok(rt.unsubscribe_report(loop.thread, stream))
    loop.end()
    assert seen == [([1, 2], loop.thread)]
    assert loop.ident == loop.thread
    assert [error.type for error in unraisable] == [ZeroDivisionError]


def test_a_callback_may_call_the_runtime(me):
    (stream,) = streams(1)
    event = ok(rt.create_event_ex_with_flag(1))
    (other,) = streams(1)
    results: list[object] = []

    def use(marker: int) -> None:
        results.append(rt.record_event(marker, other))
        results.append(rt.synchronize_event_with_timeout(marker, LIMIT))

    ok(rt.subscribe_report(me, stream))
    ok(rt.launch_callback(use, event, BLOCK, stream))
    ok(rt.process_report(LIMIT))
    finish(stream)
    assert results == [0, 0]


def test_an_exception_in_a_host_function_does_not_stop_the_stream(unraisable):
    (stream,) = streams(1)
    seen: list[int] = []
    ok(rt.launch_host_func(stream, int, "no number"))
    ok(rt.launch_host_func(stream, seen.append, 1))
    finish(stream)
    assert seen == [1]
    assert [error.type for error in unraisable] == [ValueError]


def test_process_report_waits_for_ever(me, hold):
    (stream,) = streams(1)
    gate = hold(core(stream))
    seen: list[int] = []
    ready = threading.Event()
    context = ok(rt.get_context())
    waiting = Call(lambda: (ready.wait(LIMIT / 1000), rt.set_context(context), rt.process_report(-1)))
    thread = waiting._thread.ident
    assert thread is not None
    ok(rt.subscribe_report(thread, stream))
    ok(rt.launch_callback(seen.append, 1, BLOCK, stream))
    ready.set()
    gate.open()
    assert waiting.result() == (True, 0, 0)
    assert seen == [1]
    finish(stream)
