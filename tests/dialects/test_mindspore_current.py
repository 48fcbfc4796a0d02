"""mindspore: the current stream, StreamCtx and set_cur_stream."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest
from halstream import mindspore
from halstream.mindspore import hal, runtime

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]


def in_thread(function: Callable[[], Any]) -> Any:
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    return result[0]


def enter_and_leave() -> None:
    with hal.StreamCtx(hal.current_stream()):
        pass


@pytest.mark.row(2)
def test_the_current_stream_is_the_default_stream_at_first() -> None:
    assert hal.current_stream() == hal.default_stream()
    assert runtime.current_stream() == runtime.default_stream()


@pytest.mark.row(3, 4)
def test_set_cur_stream_and_back() -> None:
    s1 = hal.Stream()
    assert hal.set_cur_stream(s1) is None
    assert hal.current_stream() == s1
    hal.set_cur_stream(hal.default_stream())
    assert hal.current_stream() == hal.default_stream()


def test_current_stream_returns_the_same_object_that_was_set() -> None:
    s1 = hal.Stream()
    hal.set_cur_stream(s1)
    assert hal.current_stream() is s1
    with hal.StreamCtx(s2 := hal.Stream()):
        assert hal.current_stream() is s2


@pytest.mark.row(14)
def test_a_context_makes_its_stream_current() -> None:
    s1 = hal.Stream()
    with hal.StreamCtx(s1):
        assert (hal.current_stream() == s1) is True


@pytest.mark.row(15)
def test_a_context_restores_the_previous_stream() -> None:
    previous = hal.Stream()
    hal.set_cur_stream(previous)
    with hal.StreamCtx(hal.Stream()):
        assert hal.current_stream() != previous
    assert (hal.current_stream() == previous) is True


@pytest.mark.row(17)
def test_a_context_of_none_changes_nothing() -> None:
    s = hal.Stream()
    hal.set_cur_stream(s)
    with hal.StreamCtx(None) as bound:
        assert bound is None
        assert hal.current_stream() == s
    assert hal.current_stream() == s


def test_a_setting_inside_a_context_of_none_survives() -> None:
    t = hal.Stream()
    with hal.StreamCtx(None):
        hal.set_cur_stream(t)
    assert hal.current_stream() == t


@pytest.mark.row(20)
@pytest.mark.parametrize(
    "step",
    [
        hal.current_stream,
        hal.default_stream,
        hal.communication_stream,
        hal.synchronize,
        lambda: hal.set_cur_stream(hal.current_stream()),
        lambda: hal.current_stream().query(),
        lambda: hal.current_stream().synchronize(),
        lambda: hal.current_stream().record_event(),
        enter_and_leave,
    ],
    ids=[
        "current_stream",
        "default_stream",
        "communication_stream",
        "synchronize",
        "set_cur_stream",
        "query",
        "stream_synchronize",
        "record_event",
        "StreamCtx",
    ],
)
def test_a_thousand_calls(step: Callable[[], Any]) -> None:
    s = hal.Stream()
    hal.set_cur_stream(s)
    for _ in range(1000):
        step()
    assert hal.current_stream() == s


@pytest.mark.row(48)
def test_set_cur_stream_arguments() -> None:
    s = hal.Stream()
    hal.set_cur_stream(s)
    assert hal.set_cur_stream(None) is None
    assert hal.current_stream() == s
    for value in (1, "x", 1.5, hal.Event()):
        with pytest.raises(TypeError) as info:
            hal.set_cur_stream(value)  # type: ignore[arg-type]
        assert str(info.value) == (
            f"For 'set_cur_stream', the argument 'stream' should be Stream, but got {type(value)}."
        )


@pytest.mark.row(50)
def test_stream_ctx_arguments() -> None:
    for value in (1, "x", hal.Event()):
        with pytest.raises(TypeError) as info:
            hal.StreamCtx(value)  # type: ignore[arg-type]
        assert str(info.value) == (
            f"For 'StreamCtx', the argument 'ctx_stream' should be Stream, but got {type(value)}."
        )
    missing = re.escape("StreamCtx.__init__() missing 1 required positional argument: 'ctx_stream'")
    with pytest.raises(TypeError, match=missing):
        hal.StreamCtx()  # type: ignore[call-arg]


@pytest.mark.row(51)
def test_a_context_binds_none() -> None:
    with hal.StreamCtx(hal.Stream()) as x:
        assert x is None


@pytest.mark.row(52)
def test_an_exception_passes_and_the_previous_stream_is_current_again() -> None:
    previous = hal.Stream()
    hal.set_cur_stream(previous)
    with pytest.raises(ValueError, match=r"^boom$"), hal.StreamCtx(hal.Stream()):
        raise ValueError("boom")
    assert hal.current_stream() == previous


@pytest.mark.row(53)
def test_contexts_nest() -> None:
    outer, a, b = hal.Stream(), hal.Stream(), hal.Stream()
    hal.set_cur_stream(outer)
    with hal.StreamCtx(a):
        with hal.StreamCtx(b):
            assert hal.current_stream() == b
        assert hal.current_stream() == a
    assert hal.current_stream() == outer


@pytest.mark.row(54)
def test_attributes_of_a_context() -> None:
    s, previous = hal.Stream(), hal.Stream()
    hal.set_cur_stream(previous)
    ctx = hal.StreamCtx(s)
    assert ctx.stream is s
    assert ctx.prev_stream is None
    with ctx:
        assert ctx.prev_stream == previous
    assert hal.StreamCtx(None).stream is None


@pytest.mark.row(55)
def test_the_previous_stream_is_taken_on_entering() -> None:
    s, t = hal.Stream(), hal.Stream()
    ctx = hal.StreamCtx(s)
    hal.set_cur_stream(t)
    with ctx:
        assert hal.current_stream() == s
    assert hal.current_stream() == t


@pytest.mark.row(56)
def test_a_stream_set_in_one_thread_is_current_in_another() -> None:
    s = hal.Stream()
    hal.set_cur_stream(s)
    assert in_thread(hal.current_stream) == s
    t = hal.Stream()
    in_thread(lambda: hal.set_cur_stream(t))
    assert hal.current_stream() == t


def test_a_context_is_its_threads_own() -> None:
    with hal.StreamCtx(hal.Stream()):
        assert in_thread(hal.current_stream) == hal.default_stream()


def test_a_setting_inside_a_context_ends_with_it() -> None:
    outer, inner = hal.Stream(), hal.Stream()
    hal.set_cur_stream(outer)
    with hal.StreamCtx(hal.Stream()):
        hal.set_cur_stream(inner)
        assert hal.current_stream() == inner
    assert hal.current_stream() == outer


def test_one_context_object_can_be_used_again_and_nested() -> None:
    outer = hal.Stream()
    hal.set_cur_stream(outer)
    ctx = hal.StreamCtx(s := hal.Stream())
    with ctx, ctx:
        assert hal.current_stream() == s
    assert hal.current_stream() == outer
    with ctx:
        assert hal.current_stream() == s
    assert hal.current_stream() == outer


def test_leaving_what_was_not_entered_does_nothing() -> None:
    outer = hal.Stream()
    with hal.StreamCtx(outer):
        assert hal.StreamCtx(hal.Stream()).__exit__(None, None, None) is None
        assert hal.current_stream() == outer


@pytest.mark.row(57)
def test_the_names_of_runtime_are_also_top_level() -> None:
    assert mindspore.runtime.__all__ == sorted(mindspore.runtime.__all__)
    assert mindspore.hal.__all__ == sorted(mindspore.hal.__all__)
    for name in mindspore.runtime.__all__:
        assert getattr(mindspore, name) is getattr(mindspore.runtime, name)
        assert name in mindspore.__all__


@pytest.mark.row(101)
def test_stream_is_looked_up_in_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halstream.mindspore.hal.Stream", lambda: "patched")
    assert mindspore.hal.Stream() == "patched"


def test_the_current_stream_is_one_for_all_dialects() -> None:
    core = hs.Stream()
    with core:
        assert hal.current_stream().handle == core.handle
        assert type(hal.current_stream()) is hal.Stream
    s = hal.Stream()
    with hal.StreamCtx(s):
        assert hs.current_stream() is s
    hal.set_cur_stream(core)
    assert hal.current_stream().handle == core.handle


def test_current_streams_of_two_devices_are_independent() -> None:
    if hs.device_count() < 2:
        pytest.skip("needs two devices")
    with hs.Device(1):
        far = hal.Stream()
    assert far.device_id == 1
    with hal.StreamCtx(far):
        assert hal.current_stream() == hal.default_stream()
        with hs.Device(1):
            assert hal.current_stream() == far
