"""paddle.device.Event: how it is made, its states, and the time between two."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import pytest
from halstream._core._reap import reap
from halstream.paddle import device
from paddle_help import CUSTOM

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
BOTH = pytest.mark.parametrize("name", [CUSTOM, "gpu:0", "gpu:1"])


@pytest.mark.row(2)
def test_the_device_may_come_first() -> None:
    paddle.set_device(CUSTOM)
    place = paddle.CustomPlace(CUSTOM, 0)
    events = [
        device.Event(),
        device.Event(None),
        device.Event(CUSTOM),
        device.Event(f"{CUSTOM}:0"),
        device.Event(place),
        device.Event(device=place),
        device.Event(CUSTOM, True),
        device.Event(CUSTOM, enable_timing=True, blocking=True),
    ]
    assert all(e.device == place for e in events)


@pytest.mark.row(3)
def test_both_flags_with_and_without_a_device() -> None:
    assert device.Event(device="gpu:1", enable_timing=True, blocking=True).device == (paddle.CUDAPlace(1))
    assert device.Event(enable_timing=True, blocking=True).query()
    assert device.Event(True, True).query()


def elapsed_or_error(start: Any, end: Any, stream: Any) -> Any:
    start.record(stream)
    end.record(stream)
    try:
        return start.elapsed_time(end)
    except OSError as exc:
        return exc


def test_a_bool_as_first_argument_is_enable_timing() -> None:
    s = device.Stream("gpu:0")
    timed = elapsed_or_error(device.Event(True), device.Event(True, blocking=True), s)
    assert isinstance(timed, float)
    untimed = elapsed_or_error(device.Event(False), device.Event(False, True), s)
    assert isinstance(untimed, hs.TimingDisabledError)
    # With the device first the second is the timing, as up to 3.2.
    older = elapsed_or_error(device.Event("gpu:0", True), device.Event("gpu:0", True), s)
    assert isinstance(older, float)


def test_the_form_of_3_3_is_what_inspect_shows() -> None:
    names = list(inspect.signature(device.Event).parameters)
    assert names == ["enable_timing", "blocking", "interprocess", "device"]


@pytest.mark.parametrize("args", [(object(),), (True, "x")])
def test_a_flag_without_a_truth_value_is_refused(args: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        device.Event(*args)
    with pytest.raises(TypeError, match="incompatible constructor arguments"):
        device.cuda.Event(*args)


def test_an_unknown_argument_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"^Event.__init__\(\) got an unexpected keyword"):
        device.Event(bogus=1)
    with pytest.raises(TypeError, match=r"^Event.__init__\(\) takes from 1 to 4 positional"):
        device.Event(*[True] * 9)


@pytest.mark.row(6)
@BOTH
def test_an_event_has_its_base_and_its_device(name: str) -> None:
    e = device.Event(device=name)
    assert e.device == device.device_to_place(name)
    assert e.event_base is e.event_base
    assert e.event_base.place == e.device
    s = device.Stream(name)
    e.event_base.record(s)
    s.synchronize(LIMIT)
    assert e.query()


def test_the_base_keeps_the_event_and_closes_it_once() -> None:
    e = device.Event(device="gpu:0")
    base, ident = e.event_base, e._id
    del e
    gc.collect()
    assert ident not in reap
    assert base.query()
    del base
    gc.collect()
    assert reap.count(ident) == 1


@pytest.mark.row(8)
@pytest.mark.parametrize("name", ["invalid_device:0", f"{CUSTOM}:9", ""])
def test_a_name_of_no_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        device.Event(device=name)
    with pytest.raises(ValueError):
        device.Event(name)


@pytest.mark.row(11)
def test_the_class_is_one_in_every_namespace() -> None:
    assert paddle.Event is paddle.cuda.Event is device.Event
    for method in ("record", "synchronize", "elapsed_time", "query"):
        assert callable(getattr(paddle.Event, method))


# -- states -----------------------------------------------------------------


@pytest.mark.row(13, 22)
@BOTH
def test_an_unrecorded_event_is_complete(name: str) -> None:
    e = device.Event(device=name)
    assert e.query() is True
    assert e.synchronize() is None


@pytest.mark.row(14, 20, 22)
@BOTH
def test_after_record_and_synchronize_the_event_is_complete(name: str) -> None:
    s, e = device.Stream(name), device.Event(device=name)
    assert e.record(s) is None
    assert e.synchronize() is None
    assert e.query() is True


@pytest.mark.row(15, 16, 23)
@BOTH
def test_record_event_and_synchronize_of_the_stream(name: str) -> None:
    s, e = device.Stream(name), device.Event(device=name)
    assert s.query() is True
    s.record_event(e)
    assert s.synchronize() is None
    assert e.query() is True
    assert s.query() is True
    s.synchronize()


@pytest.mark.row(14, 15)
def test_a_recorded_event_is_pending_until_the_work_is_done(hold: Any) -> None:
    s, e = device.Stream(CUSTOM), device.Event(CUSTOM)
    gate = hold(s)
    s.record_event(e)
    assert e.query() is False
    assert s.query() is False
    with pytest.raises(TimeoutError):
        e.synchronize(timeout=0.01)
    gate.open()
    e.synchronize(LIMIT)
    assert e.query() is True


@pytest.mark.row(17)
@BOTH
def test_record_event_makes_an_event_on_its_own_device(name: str) -> None:
    s = device.Stream(name)
    e = s.record_event()
    assert type(e) is device.Event
    assert e.device == s.device
    e.synchronize(LIMIT)


@pytest.mark.row(18)
def test_record_event_gives_the_event_back() -> None:
    s, e = device.Stream("gpu:0"), device.Event(device="gpu:0")
    assert s.record_event(e) is e
    assert s.record_event(event=e) is e


@pytest.mark.row(19)
def test_record_takes_the_current_stream_at_the_call(hold: Any) -> None:
    paddle.set_device(CUSTOM)
    s, e = device.Stream(), device.Event()
    hold(s)
    e.record()
    e.synchronize()
    assert e.query() is True
    with device.stream_guard(s):
        e.record()
    assert e.query() is False


def test_record_takes_the_current_stream_of_the_events_device(hold: Any) -> None:
    s, e = device.Stream("gpu:1"), device.Event(device="gpu:1")
    hold(s)
    device.set_stream(s)
    paddle.set_device("gpu:0")
    e.record()
    assert e.query() is False


@pytest.mark.row(21, 23)
def test_recording_again_overwrites(hold: Any) -> None:
    s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
    e = device.Event(device="gpu:0")
    held = hold(s1)
    e.record(s1)
    assert e.query() is False
    e.record(s2)
    e.synchronize(LIMIT)
    assert e.query() is True
    e.record(s1)
    # Directly after a record either answer is right where nothing holds the stream.
    assert e.query() is False
    held.open()
    e.synchronize(LIMIT)
    e.record(s2)
    assert e.query() in (True, False)


def test_an_event_of_another_device_is_refused() -> None:
    e = device.Event(device="gpu:1")
    with pytest.raises(hs.WrongDeviceError) as caught:
        device.Stream("gpu:0").record_event(e)
    assert isinstance(caught.value, OSError)
    assert isinstance(caught.value, paddle.base.core.EnforceNotMet)


@pytest.mark.row(58)
@BOTH
def test_the_text_of_an_event(name: str) -> None:
    e = device.Event(device=name)
    assert repr(e) == str(e) == f"Event(device={e.device}, event_base={e.event_base})"


def test_events_are_equal_to_themselves_only() -> None:
    e = device.Event()
    assert e == e
    assert e != device.Event()
    assert hash(e) == hash(e)


def test_a_stream_that_is_none_is_refused_with_the_attribute_it_lacks() -> None:
    for wrong in ("x", 1, object()):
        with pytest.raises(AttributeError, match="has no attribute 'stream_base'"):
            device.Event().record(wrong)
        with pytest.raises(AttributeError, match="has no attribute 'event_base'"):
            device.Event().elapsed_time(wrong)
        with pytest.raises(TypeError):
            device.cuda.Event().elapsed_time(wrong)


# -- time -------------------------------------------------------------------


@pytest.mark.row(31, 35, 36)
@BOTH
def test_elapsed_time_is_in_milliseconds(name: str) -> None:
    s = device.Stream(name)
    start, end = (device.Event(device=name, enable_timing=True) for _ in range(2))
    start.record(s)
    s.delay(0.02)
    end.record(s)
    elapsed = start.elapsed_time(end)
    assert isinstance(elapsed, float)
    assert 20 <= elapsed < 20_000
    assert start.event_base.elapsed_time(end.event_base) == elapsed


@pytest.mark.row(32, 33)
@BOTH
def test_elapsed_time_of_real_work_is_more_than_zero(name: str) -> None:
    s = device.Stream(name)
    start, end = (device.Event(device=name, enable_timing=True) for _ in range(2))
    start.record(s)
    s.call(lambda: sum(range(1000)))
    end.record(s)
    assert start.elapsed_time(end) > 0


def test_elapsed_time_waits_for_the_end(hold: Any) -> None:
    import threading

    s = device.Stream("gpu:0")
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    start.record(s)
    gate = hold(s)
    end.record(s)
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.append(start.elapsed_time(end)), daemon=True)
    thread.start()
    assert end.query() is False
    assert not found
    gate.open()
    thread.join(LIMIT)
    assert found


def test_events_of_a_custom_device_always_record_times() -> None:
    paddle.set_device(CUSTOM)
    s = device.Stream()
    for start, end in (
        (device.Event(), device.Event()),
        (s.record_event(), s.record_event()),
        (s.stream_base.record_event(), s.stream_base.record_event()),
    ):
        start.record(s)
        end.record(s)
        assert start.elapsed_time(end) >= 0


def test_events_of_a_gpu_record_times_only_with_enable_timing() -> None:
    s = device.Stream("gpu:0")
    start, end = s.record_event(), s.record_event()
    with pytest.raises(OSError) as caught:
        start.elapsed_time(end)
    assert isinstance(caught.value, hs.TimingDisabledError)


@pytest.mark.row(34)
@BOTH
def test_elapsed_time_of_unrecorded_events_fails_and_leaves_nothing_behind(name: str) -> None:
    start, end = (device.Event(device=name, enable_timing=True) for _ in range(2))
    with pytest.raises(OSError) as caught:
        start.elapsed_time(end)
    assert isinstance(caught.value, hs.UnrecordedError)
    s = device.Stream(name)
    start.record(s)
    end.record(s)
    s.synchronize(LIMIT)
    assert start.elapsed_time(end) >= 0


def test_elapsed_time_while_the_start_is_pending(hold: Any, settle: Callable[[], None]) -> None:
    s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
    start, end = device.Event(enable_timing=True), device.Event(enable_timing=True)
    hold(s1)
    start.record(s1)
    end.record(s2)
    with pytest.raises(OSError) as caught:
        start.elapsed_time(end)
    assert isinstance(caught.value, hs.NotReadyError)
