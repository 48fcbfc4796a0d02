"""paddle.device: what waits for what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream.paddle as paddle
import numpy as np
import pytest
from halstream.paddle import device
from paddle_help import CUSTOM

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
BOTH = pytest.mark.parametrize("name", [CUSTOM, "gpu:0"])


@pytest.mark.row(24, 91)
@BOTH
def test_the_three_calls_and_their_states(name: str) -> None:
    s1, s2 = device.Stream(name), device.Stream(name)
    e = device.Event(device=name)
    s1.record_event(e)
    s2.wait_event(e)
    s2.synchronize(LIMIT)
    s1.synchronize(LIMIT)
    assert e.query() is True
    assert s1.query() is True
    assert s2.query() is True


@pytest.mark.row(24)
def test_a_stream_waits_for_the_event_of_another(hold: Any, settle: Callable[[], None]) -> None:
    s1, s2 = device.Stream(), device.Stream()
    gate = hold(s1)
    e = s1.record_event()
    s2.wait_event(e)
    ran: list[int] = []
    s2.call(ran.append, 1)
    settle()
    assert ran == []
    assert s2.query() is False
    gate.open()
    s2.synchronize(LIMIT)
    assert ran == [1]
    assert s1.query() is True


@pytest.mark.row(25)
@BOTH
def test_waiting_for_an_unrecorded_event_is_nothing(name: str) -> None:
    s = device.Stream(name)
    assert s.wait_event(device.Event(device=name)) is None
    s.synchronize(LIMIT)


@pytest.mark.row(26)
@BOTH
def test_a_stream_may_wait_for_itself(name: str) -> None:
    s = device.Stream(name)
    s.nop()
    assert s.wait_stream(s) is None
    s.synchronize(LIMIT)


@pytest.mark.row(27)
def test_wait_stream_takes_the_work_of_the_call_only(hold: Any) -> None:
    s1, s2 = device.Stream(), device.Stream()
    assert s1.wait_stream(s2) is None
    s1.synchronize(LIMIT)
    first = hold(s2)
    s1.wait_stream(s2)
    second = hold(s2)
    assert s1.query() is False
    first.open()
    s1.synchronize(LIMIT)
    assert s2.query() is False
    second.open()
    s2.synchronize(LIMIT)


def test_wait_stream_and_wait_event_cross_devices(hold: Any) -> None:
    s0, s1 = device.Stream("gpu:0"), device.Stream("gpu:1")
    gate = hold(s1)
    s0.wait_stream(s1)
    s0.wait_event(s1.record_event())
    assert s0.query() is False
    gate.open()
    s0.synchronize(LIMIT)


@pytest.mark.row(28)
@BOTH
def test_work_under_a_guard_gives_the_values_of_work_outside(name: str) -> None:
    paddle.set_device(name)
    a = np.arange(12.0).reshape(3, 4)
    outside, inside = np.empty((3, 3)), np.empty((3, 3))
    device.current_stream().call(np.matmul, a, a.T, outside)
    device.synchronize()
    s = device.Stream()
    with device.stream_guard(s):
        device.current_stream().call(np.matmul, a, a.T, inside)
        s.synchronize(LIMIT)
    assert np.array_equal(inside, outside)


@pytest.mark.row(29)
def test_work_split_over_two_streams_is_as_in_sequence() -> None:
    s1, s2 = device.Stream(), device.Stream()
    ready = device.Event()
    order: list[int] = []
    for i in range(200):
        s1.call(order.append, 2 * i)
        s1.record_event(ready)
        s2.wait_event(ready)
        s2.call(order.append, 2 * i + 1)
        s1.wait_stream(s2)
    s1.synchronize(LIMIT)
    assert order == list(range(400))


@pytest.mark.row(30)
def test_recording_again_does_not_move_the_waiter(hold: Any) -> None:
    s1, s2, s3 = (device.Stream() for _ in range(3))
    e = device.Event()
    first = hold(s1)
    s1.record_event(e)
    s2.wait_event(e)
    hold(s3)
    s3.record_event(e)
    assert s2.query() is False
    first.open()
    s2.synchronize(LIMIT)
    assert e.query() is False


@pytest.mark.row(30)
def test_recording_again_does_not_release_the_waiter(hold: Any, settle: Callable[[], None]) -> None:
    s1, s2, s3 = (device.Stream() for _ in range(3))
    e = device.Event()
    gate = hold(s1)
    s1.record_event(e)
    s2.wait_event(e)
    s3.record_event(e)
    e.synchronize(LIMIT)
    settle()
    assert s2.query() is False
    gate.open()
    s2.synchronize(LIMIT)


def test_synchronize_waits_for_the_device_and_not_for_the_other(hold: Any) -> None:
    held = device.Stream("gpu:1")
    gate = hold(held)
    device.synchronize("gpu:0")
    assert held.query() is False
    gate.open()
    device.synchronize("gpu:1")
    assert held.query() is True


# -- idioms of programs -------------------------------------------------------


def test_side_stream(hold: Any) -> None:
    order: list[str] = []
    main = device.current_stream()
    s = device.Stream()
    main.call(order.append, "before")
    s.wait_stream(device.current_stream())
    with device.stream_guard(stream=s):
        device.current_stream().call(order.append, "side")
    device.current_stream().wait_stream(s)
    device.current_stream().call(order.append, "after")
    device.synchronize()
    assert order == ["before", "side", "after"]


def test_ready_and_done() -> None:
    s = device.Stream()
    ran: list[int] = []
    ready = device.Event()
    ready.record()
    s.wait_event(ready)
    with device.stream_guard(s):
        done = device.Event()
        device.current_stream().call(ran.append, 1)
        done.record(s)
    done.synchronize(LIMIT)
    assert ran == [1]


def test_swap_without_a_guard() -> None:
    new = device.Stream()
    old = device.set_stream(new)
    assert device.current_stream() is new
    device.set_stream(old)
    assert device.current_stream().stream_base == old.stream_base


def test_timing_of_a_region() -> None:
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    start.record()
    device.current_stream().delay(0.005)
    end.record()
    device.synchronize()
    assert start.elapsed_time(end) >= 5


def test_a_library_uses_the_current_stream_of_the_call() -> None:
    s = device.Stream("gpu:0")
    outside = device.current_stream("gpu:0").stream_base.cuda_stream
    with device.stream_guard(s):
        inside = device.current_stream("gpu:0").stream_base
        assert inside.cuda_stream == inside.raw_stream == s.handle
    assert device.current_stream("gpu:0").stream_base.cuda_stream == outside


def test_a_stream_of_a_communication_library() -> None:
    raw = device.cuda.Stream(0)
    s = device.Stream(stream_base=raw)
    with device.stream_guard(s):
        assert device.current_stream("gpu:0").stream_base is raw
    assert hasattr(s, "stream_base")
