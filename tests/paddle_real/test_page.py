"""The forms of the stream and event calls that Paddle documents, on the installed Paddle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


def test_Y7_streams_are_made_in_all_documented_forms(paddle: Any) -> None:
    place = paddle.CustomPlace("custom_cpu", 0)
    for stream in (
        paddle.device.Stream(),
        paddle.device.Stream("custom_cpu"),
        paddle.device.Stream("custom_cpu:0"),
        paddle.device.Stream(place),
        paddle.device.Stream(device=place, priority=None, blocking=False),
    ):
        assert isinstance(stream, paddle.device.Stream)
        assert stream.device.get_device_id() == 0


def test_Y7_events_are_recorded_in_all_documented_forms(paddle: Any) -> None:
    stream = paddle.device.Stream()
    first = stream.record_event()
    assert isinstance(first, paddle.device.Event)
    second = paddle.device.Event()
    assert stream.record_event(second) is second
    second.record()
    second.record(stream)
    stream.synchronize()
    paddle.device.synchronize("custom_cpu:0")
    assert first.query() and second.query() and stream.query()


def test_Y4_a_stream_waits_for_an_event_and_for_itself(paddle: Any) -> None:
    first, second = paddle.device.Stream(), paddle.device.Stream()
    event = paddle.device.Event()
    second.wait_event(event)  # never recorded: nothing to wait for
    event.record(first)
    assert second.wait_event(event) is None
    assert first.wait_stream(first) is None
    assert second.wait_stream(first) is None
    second.synchronize()
    assert event.query() and first.query() and second.query()


def test_Y1_the_current_stream_is_exchanged_and_restored(paddle: Any) -> None:
    before = paddle.device.current_stream()
    stream = paddle.device.Stream()
    with paddle.device.stream_guard(stream):
        assert paddle.device.current_stream().stream_base == stream.stream_base
    assert paddle.device.current_stream("custom_cpu:0").stream_base == before.stream_base
    previous = paddle.device.set_stream(stream)
    assert previous.stream_base == before.stream_base
    paddle.device.set_stream(previous)
    assert paddle.device.current_stream().stream_base == before.stream_base


def test_Y3_a_copy_to_another_device_is_ordered_with_both(paddle: Any, held: Callable[[Any], Any]) -> None:
    if tuple(int(part) for part in paddle.__version__.split(".")[:2]) < (3, 3):
        pytest.skip("this Paddle itself waits for the source's device")
    paddle.set_device("custom_cpu:1")
    x = paddle.ones([4])
    paddle.device.synchronize()
    gate = held(paddle.device.current_stream())
    y = (x * 2).to("custom_cpu:0")
    source = x * 3
    computed = paddle.device.current_stream("custom_cpu:1").record_event()
    assert not paddle.device.current_stream("custom_cpu:0").query(), "the copy came before its source"
    target = held(paddle.device.current_stream("custom_cpu:0"))
    z = source.to("custom_cpu:0")  # behind the gate of the target
    gate.open()
    computed.synchronize()
    assert not paddle.device.current_stream("custom_cpu:1").query(), "later work may take the source's memory"
    target.open()
    assert y.numpy().tolist() == [2] * 4 and z.numpy().tolist() == [3] * 4
    paddle.device.synchronize("custom_cpu:1")


def test_Y1_both_devices_compute_and_copy_to_each_other(paddle: Any) -> None:
    paddle.set_device("custom_cpu:1")
    x = paddle.arange(6, dtype="float32").reshape([2, 3]) * 2
    assert str(x.place) == "Place(custom_cpu:1)"
    y = x.to("custom_cpu:0")
    assert str(y.place) == "Place(custom_cpu:0)"
    assert y.numpy().tolist() == [[0, 2, 4], [6, 8, 10]]
    assert x.cpu().numpy().tolist() == y.numpy().tolist()
