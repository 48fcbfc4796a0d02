"""The clauses about Paddle's custom device, one test or more for each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest


def test_Y1_an_operator_is_enqueued_and_the_call_returns(paddle: Any, held: Callable[[Any], Any]) -> None:
    x = paddle.ones([4])
    paddle.device.synchronize()
    stream = paddle.device.Stream()
    gate = held(stream)
    with paddle.device.stream_guard(stream):
        y = x + x
    assert not stream.query()
    x.add_(paddle.ones([4]))  # on the default stream, which does not wait
    paddle.device.current_stream().synchronize()
    gate.open()
    stream.synchronize()
    assert stream.query()
    assert y.numpy().tolist() == [4, 4, 4, 4], "the operator ran within its call"


def test_Y1_operators_run_in_the_order_of_the_stream(paddle: Any, held: Callable[[Any], Any]) -> None:
    x = paddle.zeros([64])
    gate = held(paddle.device.current_stream())
    for _ in range(50):
        x = x * 2 + 1
        x = x / 2
    gate.open()
    want = 0.0
    for _ in range(50):
        want = (want * 2 + 1) / 2
    assert x.numpy().tolist() == [want] * 64


def test_Y1_an_operator_without_a_kernel_of_its_own_waits_for_its_inputs(paddle: Any) -> None:
    from halstream.paddle import plugin

    assert plugin.operators()["nonzero"] == "fallback"
    assert plugin.operators()["add"] == "stream"
    x = paddle.to_tensor([0.0, 1.0, 0.0, 2.0]) * 3
    assert paddle.nonzero(x).numpy().ravel().tolist() == [1, 3]


def test_Y2_an_operator_is_listed_with_what_it_reads_and_writes(paddle: Any) -> None:
    a, b = paddle.device.Stream(), paddle.device.Stream()
    x = paddle.ones([256])
    paddle.device.synchronize()
    with hs.sanitize(on="collect") as report:
        with paddle.device.stream_guard(a):
            y = x * 2
        with paddle.device.stream_guard(b):
            z = y + 1
        paddle.device.synchronize()
    (finding,) = report.all
    assert {finding.first.operation, finding.second.operation} == {"paddle::scale"}
    assert "test_contract.py" in str(finding)
    del z


def test_Y2_a_wait_orders_it(paddle: Any) -> None:
    a, b = paddle.device.Stream(), paddle.device.Stream()
    x = paddle.ones([256])
    paddle.device.synchronize()
    with hs.sanitize(on="collect") as report:
        with paddle.device.stream_guard(a):
            y = x * 2
        b.wait_stream(a)
        with paddle.device.stream_guard(b):
            z = y + 1
        paddle.device.synchronize()
    assert report.all == []
    assert z.numpy().tolist() == [3] * 256


def test_Y3_a_pageable_source_is_taken_within_the_call(paddle: Any, held: Callable[[Any], Any]) -> None:
    stream = paddle.device.Stream()
    source = paddle.arange(16, dtype="float32").cpu()
    gate = held(stream)
    with paddle.device.stream_guard(stream):
        x = source._copy_to(paddle.CustomPlace("custom_cpu", 0), False)
    paddle.assign(paddle.full_like(source, -1), source)
    gate.open()
    stream.synchronize()
    assert x.numpy().tolist() == list(range(16))


def test_Y4_a_query_is_pending_while_the_work_is(paddle: Any, held: Callable[[Any], Any]) -> None:
    stream, event = paddle.device.Stream(), paddle.device.Event()
    assert event.query()
    gate = held(stream)
    event.record(stream)
    assert not event.query() and not stream.query()
    gate.open()
    event.synchronize()
    assert event.query()


def test_Y4_a_wait_is_for_the_record_before_it(paddle: Any, held: Callable[[Any], Any]) -> None:
    first, second, waiting = (paddle.device.Stream() for _ in range(3))
    event = paddle.device.Event()
    event.record(first)
    waiting.wait_event(event)
    gate = held(second)
    event.record(second)
    waiting.synchronize()  # the record on the second stream is not waited for
    assert not event.query()
    gate.open()


def test_Y4_a_stream_waits_for_an_event(paddle: Any, held: Callable[[Any], Any]) -> None:
    first, second = paddle.device.Stream(), paddle.device.Stream()
    gate = held(first)
    second.wait_event(first.record_event())
    assert not second.query()
    gate.open()
    second.synchronize()


def test_Y5_wait_stream_does_not_block_the_host(paddle: Any, held: Callable[[Any], Any]) -> None:
    first, second = paddle.device.Stream(), paddle.device.Stream()
    gate = held(first)
    second.wait_stream(first)
    assert not second.query()
    gate.open()
    second.synchronize()


def test_Y5_an_event_that_is_dropped_does_not_block_the_host(paddle: Any, held: Callable[[Any], Any]) -> None:
    stream = paddle.device.Stream()
    gate = held(stream)
    event = stream.record_event()
    del event
    assert not stream.query()
    gate.open()


def test_Y5_a_wait_lets_other_threads_run(paddle: Any, held: Callable[[Any], Any]) -> None:
    stream = paddle.device.Stream()
    gate = held(stream)
    opener = threading.Timer(0.05, gate.open)
    opener.start()
    stream.synchronize()  # with Python's lock held throughout the timer would never run
    opener.join(10)
    assert stream.query()


def test_Y6_elapsed_time_is_in_milliseconds(paddle: Any) -> None:
    stream = paddle.device.Stream()
    start, end = paddle.device.Event(enable_timing=True), paddle.device.Event(enable_timing=True)
    start.record(stream)
    hs.Stream.from_handle(stream.stream_base.raw_stream).delay(0.02)
    end.record(stream)
    assert 15 < start.elapsed_time(end) < 10_000


def test_Y6_without_timing_it_is_an_error(paddle: Any) -> None:
    start, end = paddle.device.Event(), paddle.device.Event()
    start.record()
    end.record()
    with pytest.raises(RuntimeError, match="timing"):
        start.elapsed_time(end)


@pytest.mark.parametrize("form", ["custom_cpu", "custom_cpu:1", "place", None])
def test_Y7_a_device_can_be_named_in_every_form(paddle: Any, form: str | None) -> None:
    given = paddle.CustomPlace("custom_cpu", 1) if form == "place" else form
    ordinal = 1 if form in ("custom_cpu:1", "place") else 0
    for made in (paddle.device.Stream(given), paddle.device.Event(given), paddle.device.Event(device=given)):
        assert made.device.get_device_id() == ordinal
    assert paddle.device.Stream(given).record_event().device.get_device_id() == ordinal


def test_Y7_priority_and_blocking_reach_the_stream(paddle: Any) -> None:
    def own(stream: Any) -> hs.Stream:
        return hs.Stream.from_handle(stream.stream_base.raw_stream)

    high, normal = paddle.device.Stream(priority=1), paddle.device.Stream(None, None, False)
    assert own(high).priority < own(normal).priority == 0
    assert own(normal).non_blocking
    assert not own(paddle.device.Stream("custom_cpu", 2, True)).non_blocking


def test_Y8_a_kernel_that_fails_is_an_error_of_the_next_wait(paddle: Any) -> None:
    stream = paddle.device.Stream()
    weight = paddle.ones([4, 2])
    wrong = paddle.to_tensor([9])  # no row of the table
    paddle.device.synchronize()
    with paddle.device.stream_guard(stream):
        paddle.nn.functional.embedding(wrong, weight)
    with pytest.raises(RuntimeError, match="paddle::embedding"):
        stream.synchronize()
    stream.synchronize()  # once


def test_Y9_memory_that_is_dropped_is_not_given_out_before_its_use_ends(
    paddle: Any, held: Callable[[Any], Any]
) -> None:
    stream = paddle.device.Stream()
    gate = held(stream)
    with paddle.device.stream_guard(stream):
        x = paddle.full([1024], 3.0)
        y = x * 2
        del x
        others = [paddle.full([1024], -1.0) for _ in range(8)]
    gate.open()
    stream.synchronize()
    assert y.numpy().tolist() == [6] * 1024
    del others


def test_Y9_memory_that_paddle_gives_back_is_not_given_out_before_its_use_ends(
    paddle: Any, held: Callable[[Any], Any]
) -> None:
    core = paddle.base.core
    if not hasattr(core, "device_empty_cache"):
        pytest.skip("this Paddle gives no memory of custom devices back")
    stream = paddle.device.Stream()
    paddle.full([1 << 20], 0.0)
    gate = held(stream)
    with paddle.device.stream_guard(stream):
        y = paddle.full([1 << 20], 3.0) * 2
    core.device_empty_cache()
    others = [paddle.full([1 << 20], -1.0) for _ in range(4)]
    paddle.device.current_stream().synchronize()
    gate.open()
    stream.synchronize()
    assert float(y.min()) == 6 == float(y.max())
    assert [float(other.max()) for other in others] == [-1] * 4
