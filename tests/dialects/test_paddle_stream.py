"""paddle.device.Stream: how it is made, what it is equal to, and what it shows."""

from __future__ import annotations

import copy
import ctypes
import inspect
import pickle
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import pytest
from halstream._core import _interop
from halstream.paddle import device
from paddle_help import CUSTOM, REGISTERED

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
NAMES = [CUSTOM, f"{CUSTOM}:0", "gpu", "gpu:0", "cuda:0", "GPU:0", "dcu:0", "npu:0", 0]


def core_priority(stream: Any) -> int:
    """Return the priority as the core has it; paddle's streams do not show theirs."""
    return hs.Stream.from_handle(stream.handle).priority


@pytest.mark.row(1)
def test_every_documented_way_to_name_the_device() -> None:
    paddle.set_device(CUSTOM)
    place = paddle.CustomPlace(CUSTOM, 0)
    streams = [
        device.Stream(),
        device.Stream(CUSTOM),
        device.Stream(f"{CUSTOM}:0"),
        device.Stream(place),
    ]
    assert all(s.device == place for s in streams)
    assert len({s.handle for s in streams}) == 4


@pytest.mark.row(1)
@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_first_device(name: Any) -> None:
    assert device.Stream(name)._ordinal == 0


def test_names_of_the_second_device() -> None:
    for name in (f"{CUSTOM}:1", "gpu:1", "cuda:1", 1, paddle.CUDAPlace(1)):
        assert device.Stream(name)._ordinal == 1


@pytest.mark.row(4)
@pytest.mark.parametrize(("priority", "level"), [(1, -1), (-1, -1), (2, 0), (0, 0), (None, 0)])
def test_priority_one_is_high_and_two_is_normal(priority: int | None, level: int) -> None:
    assert core_priority(device.Stream(device="gpu:0", priority=priority)) == level


@pytest.mark.row(5)
def test_a_stream_on_the_device_that_get_device_names() -> None:
    s = device.Stream(device=device.get_device(), priority=2)
    assert isinstance(s, device.Stream)
    assert str(s.device) == f"Place({device.get_device()})"


@pytest.mark.row(6)
def test_a_stream_has_its_base_and_its_device() -> None:
    assert isinstance(device.Stream("gpu:1").stream_base, device.cuda.Stream)
    assert device.Stream("gpu:1").device == paddle.CUDAPlace(1)
    custom = device.Stream(f"{CUSTOM}:1")
    assert isinstance(custom.stream_base, paddle.base.core.CustomDeviceStream)
    assert custom.stream_base.place == custom.device == paddle.CustomPlace(CUSTOM, 1)
    assert hasattr(custom, "stream_base")
    assert not hasattr(hs.Stream(), "stream_base")


@pytest.mark.row(7)
@pytest.mark.parametrize("name", ["invalid_device:0", "", "cpu:0", "CUSTOM_CPU", f"{CUSTOM}:a"])
def test_a_name_of_no_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        device.Stream(device=name)


def test_a_device_that_does_not_exist_is_refused() -> None:
    for name in (f"gpu:{hs.device_count()}", f"{CUSTOM}:{hs.device_count()}", -1):
        with pytest.raises(ValueError):
            device.Stream(name)


@pytest.mark.parametrize("place", ["cpu", paddle.CPUPlace()])
def test_the_cpu_has_no_streams(place: Any) -> None:
    for call in (device.Stream, device.current_stream, device.synchronize):
        with pytest.raises(TypeError, match=f"^device should be gpu, xpu, {','.join(REGISTERED)}$"):
            call(place)
    with pytest.raises(TypeError, match="device should be"):
        device.Event(device=place)


def test_the_cpu_as_expected_place_has_no_streams() -> None:
    paddle.set_device("cpu")
    for call in (device.Stream, device.Event, device.current_stream, device.synchronize):
        with pytest.raises(TypeError, match=f"^device should be gpu, xpu, {','.join(REGISTERED)}$"):
            call()


@pytest.mark.row(9)
@pytest.mark.parametrize("base", ["x", 1, object()])
def test_a_stream_base_that_is_none_is_refused(base: Any) -> None:
    text = "stream_base should be CUDAStream, XPUStream, CustomDeviceStream"
    with pytest.raises(TypeError, match=text):
        device.Stream(stream_base=base)
    with pytest.raises(TypeError, match=text):
        device.Stream(None, 2, base)


def test_a_stream_around_a_base_takes_everything_from_it() -> None:
    base = device.cuda.Stream(1, 1)
    for s in (device.Stream("cpu", 7, stream_base=base), device.Stream(None, 2, base)):
        assert s.stream_base is base
        assert s.device == paddle.CUDAPlace(1)
        assert core_priority(s) == -1
        assert s.handle == base.raw_stream


def test_the_documented_form_and_its_order() -> None:
    assert str(inspect.signature(device.Stream)).startswith(
        "(device: 'Any' = None, priority: 'int | None' = None, blocking: 'Any' = False"
    )
    assert device.Stream("gpu:0", 2, False).query()
    assert device.Stream("gpu:0", None, None).query()


@pytest.mark.row(10, 12)
def test_the_class_is_one_in_every_namespace() -> None:
    assert isinstance(paddle.cuda.Stream(), device.Stream)
    assert paddle.cuda.Stream is device.Stream is paddle.Stream
    assert device.cuda.Stream() is not None
    assert device.cuda.Event(True, False, False) is not None


# -- blocking ---------------------------------------------------------------


def test_a_stream_takes_no_part_in_the_order_of_the_default_stream(hold: Any) -> None:
    s = device.Stream("gpu:0")
    assert s.non_blocking
    hold(device.current_stream("gpu:0"))
    s.nop()
    s.synchronize(LIMIT)


def test_a_blocking_stream_returns_after_its_work_is_done() -> None:
    s = device.Stream("gpu:0", blocking=True)
    ran: list[int] = []
    for i in range(3):
        s.call(ran.append, i)
        assert ran[-1] == i
    assert s.query()


def test_a_blocking_stream_holds_its_caller(hold: Any, settle: Callable[[], None]) -> None:
    other = device.Stream("gpu:0")
    s = device.Stream("gpu:0", None, True)
    gate = hold(other)
    returned = threading.Event()
    thread = threading.Thread(target=lambda: (s.wait_stream(other), returned.set()), daemon=True)
    thread.start()
    settle()
    assert not returned.is_set()
    gate.open()
    assert returned.wait(LIMIT)
    thread.join(LIMIT)


def test_a_blocking_stream_is_ordered_with_the_default_stream(hold: Any, settle: Callable[[], None]) -> None:
    gate = hold(device.current_stream("gpu:0"))
    s = device.Stream("gpu:0", blocking=True)
    assert not s.non_blocking
    ran = threading.Event()
    thread = threading.Thread(target=lambda: s.call(ran.set), daemon=True)
    thread.start()
    settle()
    assert not ran.is_set()
    gate.open()
    assert ran.wait(LIMIT)
    thread.join(LIMIT)


# -- identity ---------------------------------------------------------------


@pytest.mark.row(54)
def test_streams_are_equal_to_themselves_only() -> None:
    s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
    assert s1 == s1
    assert s1 != s2
    again = device.Stream(stream_base=s1.stream_base)
    assert again != s1
    assert again.stream_base == s1.stream_base
    assert again.stream_base is s1.stream_base
    assert s1.__eq__(again) is NotImplemented


@pytest.mark.row(55)
def test_a_stream_is_equal_to_nothing_else() -> None:
    s = device.Stream()
    for other in ("text", None, 0, s.device, object()):
        assert (s == other) is False
        assert (s != other) is True


def test_the_same_stream_in_another_dialect_is_equal() -> None:
    s = device.Stream("gpu:0")
    same = hs.Stream.from_handle(s.handle)
    assert s == same
    assert same == s
    assert hash(s) == hash(same)
    assert s != hs.Stream()


@pytest.mark.row(56)
def test_the_hash_stays_and_is_that_of_every_wrapper() -> None:
    s = device.Stream()
    first = hash(s)
    s.nop()
    s.synchronize(LIMIT)
    assert hash(s) == first
    assert hash(device.Stream(stream_base=s.stream_base)) == first
    assert hash(device.Stream()) != first


def test_the_base_is_one_object_while_it_is_referenced() -> None:
    s = device.Stream("gpu:0")
    base = s.stream_base
    assert s.stream_base is base
    device.set_stream(s)
    assert device.current_stream("gpu:0").stream_base is base
    assert paddle.base.core._get_current_stream(0) is base
    assert base.wait_stream(s) is None


@pytest.mark.row(57)
def test_the_text_of_a_stream() -> None:
    for name in ("gpu:1", CUSTOM):
        s = device.Stream(name)
        assert repr(s) == f"<paddle.device.Stream device={s.device} stream={s.handle:#x}>"
    assert repr(device.current_stream("gpu:0")).endswith("stream=0x0>")
    s.close()
    assert repr(s) == f"<paddle.device.Stream device={s.device} stream=0x0>"


@pytest.mark.row(59)
def test_the_raw_handle_is_an_int_for_ctypes() -> None:
    s = device.Stream("gpu:0")
    base = s.stream_base
    assert type(base.cuda_stream) is int
    assert base.cuda_stream == base.raw_stream == s.cuda_stream == s.handle
    assert ctypes.c_void_p(base.cuda_stream).value == s.handle
    assert s._as_parameter_.value == s.handle
    custom = device.Stream(CUSTOM).stream_base
    assert type(custom.raw_stream) is int
    assert custom.raw_stream == custom.cuda_stream


@pytest.mark.row(60)
def test_the_cuda_stream_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_interop, "cuda_driver_loadable", lambda: False)
    s = device.Stream("gpu:0")
    assert s.__cuda_stream__() == (0, s.handle)


def test_streams_are_not_copied_or_pickled() -> None:
    for thing in (device.Stream(), device.Stream().stream_base, device.Event()):
        with pytest.raises(TypeError, match="cannot pickle"):
            pickle.dumps(thing)
        with pytest.raises(TypeError, match="cannot pickle"):
            copy.copy(thing)


def test_what_is_not_a_name_of_paddle_is_not_there() -> None:
    assert not hasattr(device, "default_stream")
    assert not hasattr(device.Event(), "ipc_handle")
    assert not hasattr(device.Stream(), "priority")


# -- wrong operands ---------------------------------------------------------


@pytest.mark.parametrize("wrong", [None, 1, "x", object()])
def test_operands_that_are_no_streams_or_events(wrong: Any) -> None:
    s = device.Stream()
    with pytest.raises(AttributeError, match="has no attribute 'event_base'"):
        s.wait_event(wrong)
    with pytest.raises(AttributeError, match="has no attribute 'stream_base'"):
        s.wait_stream(wrong)
    if wrong is not None:
        with pytest.raises(AttributeError, match="has no attribute 'record'"):
            s.record_event(wrong)
    raw = device.cuda.Stream()
    for call in (raw.wait_event, raw.wait_stream):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            call(wrong)


def test_a_wrapper_and_a_base_may_be_mixed() -> None:
    s, e = device.Stream("gpu:0"), device.Event(device="gpu:0")
    raw, raw_event = device.cuda.Stream(), device.cuda.Event()
    assert s.record_event(raw_event) is raw_event
    assert raw.record_event(e) is e
    for left, right, event in ((s, raw, raw_event), (raw, s, e)):
        left.wait_event(event)
        left.wait_stream(right)
    e.record(raw)
    raw_event.record(s)
    s.synchronize(LIMIT)
    raw.synchronize(LIMIT)
    assert e.query()
    assert raw_event.query()


def test_the_base_streams_check_what_they_are_given() -> None:
    for wrong in ("x", object(), 1.5, paddle.CPUPlace()):
        with pytest.raises(TypeError, match="incompatible constructor arguments"):
            device.cuda.Stream(wrong)
    for priority in (0, 3):
        with pytest.raises(ValueError):
            device.cuda.Stream(priority=priority)
    with pytest.raises(ValueError):
        device.cuda.Stream(hs.device_count())
    assert device.cuda.Stream(-1).place == paddle.CUDAPlace(0)
    assert device.cuda.Stream(paddle.CUDAPlace(1), 1).priority == -1
    core = paddle.base.core
    custom = core.CustomDeviceStream(CUSTOM, 1, 1, False)
    assert custom.place == paddle.CustomPlace(CUSTOM, 1)
    assert custom.priority == -1
    place = paddle.CustomPlace(CUSTOM, 1)
    assert core.CustomDeviceStream(place, priority=2, blocking=False).place == place
    with pytest.raises(RuntimeError, match="interface not found"):
        core.CustomDeviceStream("no_such_type")
    with pytest.raises(TypeError):
        core.CustomDeviceStream(1)
    for absent in (core.XPUStream, core.XPUEvent):
        with pytest.raises(RuntimeError, match="Unavailable"):
            absent()
