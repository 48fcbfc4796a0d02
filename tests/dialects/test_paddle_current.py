"""paddle.device: the current stream, set_stream, guards; the base layer's forms of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import numpy as np
import pytest
from halstream.paddle import device
from halstream.paddle._errors import VisibleDeprecationWarning
from paddle_help import CUSTOM

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
old_layer = pytest.mark.filterwarnings("ignore:paddle.device.cuda:halstream.paddle._errors.VisibleDeprecationWarning")


def in_thread(function: Callable[[], Any]) -> Any:
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(function()), daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive()
    return result[0]


def here(name: str = "gpu:0") -> Any:
    return device.current_stream(name)


# -- the current stream -------------------------------------------------------


@pytest.mark.row(37, 38)
def test_every_way_to_name_the_device() -> None:
    paddle.set_device(CUSTOM)
    place = paddle.CustomPlace(CUSTOM, 0)
    for args in ((), (None,), (place,), (CUSTOM,), (f"{CUSTOM}:0",)):
        s = device.current_stream(*args)
        assert isinstance(s, device.Stream)
        assert s.device == place
        assert s.stream_base == device.current_stream().stream_base
    assert device.current_stream(paddle.CUDAPlace(1)).device == paddle.CUDAPlace(1)


@pytest.mark.parametrize("wrong", [1, -1, 1.5, object(), paddle.CUDAPinnedPlace()])
def test_what_names_no_device_with_streams(wrong: Any) -> None:
    for call in (device.current_stream, device.synchronize):
        with pytest.raises(TypeError, match="device should be gpu, xpu,"):
            call(wrong)
        with pytest.raises(ValueError, match="The device must be a string"):
            call("x")


def test_without_a_choice_it_is_the_legacy_default_stream() -> None:
    assert here().handle == 0
    assert here().stream_base == paddle.base.core._get_legacy_default_stream(0)
    assert here() != here()


@pytest.mark.row(41, 42, 91)
def test_set_stream_gives_the_previous_one_back() -> None:
    s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
    first = device.set_stream(s1)
    assert isinstance(first, device.Stream)
    assert first.handle == 0
    assert here() is s1
    assert here().stream_base is s1.stream_base
    assert device.set_stream(s2) is s1
    assert device.set_stream(first) is s2
    assert here().stream_base == first.stream_base


@pytest.mark.row(43)
def test_paddle_cuda_has_the_same_set_stream() -> None:
    assert paddle.cuda.set_stream is device.set_stream
    s = paddle.cuda.Stream()
    assert isinstance(paddle.cuda.set_stream(s), device.Stream)
    assert paddle.cuda.current_stream() is s


def test_set_stream_leaves_the_expected_place_and_the_other_device() -> None:
    before = here().stream_base
    s = device.Stream("gpu:1")
    previous = device.set_stream(s)
    assert previous.device == paddle.CUDAPlace(1)
    assert paddle.get_device() == "gpu:0"
    assert here().stream_base == before
    assert here("gpu:1") is s


def test_set_stream_is_for_the_process() -> None:
    s = device.Stream("gpu:0")
    device.set_stream(s)
    assert in_thread(here) is s
    t = device.Stream("gpu:0")
    in_thread(lambda: device.set_stream(t))
    assert here() is t


@pytest.mark.parametrize("wrong", [None, 1, "x", object(), 1.5])
def test_set_stream_refuses_what_is_no_stream(wrong: Any) -> None:
    with pytest.raises(AttributeError, match="object has no attribute 'stream_base'"):
        device.set_stream(wrong)


def test_a_stream_keeps_the_name_it_was_made_under() -> None:
    s = device.Stream(f"{CUSTOM}:0")
    device.set_stream(s)
    assert device.current_stream(CUSTOM) is s
    # The same device by another name: another object, the same stream.
    other = here()
    assert other.device == paddle.CUDAPlace(0)
    assert other.handle == s.handle


def test_the_current_stream_stays_alive_while_it_is_current() -> None:
    device.set_stream(device.Stream("gpu:0"))
    kept = here().handle
    other = device.Stream("gpu:0")
    assert kept != other.handle
    assert here().query()


# -- guards -------------------------------------------------------------------


@pytest.mark.row(46, 47)
@pytest.mark.parametrize("name", [CUSTOM, "gpu:0", "gpu:1"])
def test_a_guard_makes_its_stream_current_and_restores(name: str) -> None:
    paddle.set_device(name)
    before = device.current_stream()
    s = device.Stream()
    with device.stream_guard(s) as target:
        assert target is None
        assert device.current_stream() is s
        assert device.current_stream().device == s.device
        assert device.current_stream().stream_base == s.stream_base
    assert device.current_stream().device == before.device
    assert device.current_stream().stream_base == before.stream_base


@pytest.mark.row(48)
def test_a_guard_of_none_is_nothing() -> None:
    before = here().stream_base
    for guard in (device.stream_guard(None), device.stream_guard(), device.stream(None)):
        with guard:
            assert here().stream_base == before
    paddle.set_device("cpu")
    with device.stream_guard(None):
        pass


@pytest.mark.row(49)
def test_guards_nest() -> None:
    s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
    with device.stream_guard(s1):
        with device.stream_guard(s2):
            assert here() is s2
        assert here() is s1
    assert here().handle == 0


def test_one_guard_may_be_entered_again() -> None:
    s = device.Stream("gpu:0")
    guard = device.stream_guard(s)
    with guard:
        with guard:
            assert here() is s
        assert here() is s
    assert here().handle == 0


@pytest.mark.row(50)
def test_the_torch_like_spelling() -> None:
    s = paddle.cuda.Stream()
    guard = paddle.cuda.stream(s)
    assert isinstance(guard, device.StreamContext)
    assert device.StreamContext is device.stream_guard is paddle.cuda.StreamContext
    for context in (guard, paddle.cuda.stream(stream=s), device.stream(stream=s)):
        with context:
            assert paddle.cuda.current_stream() is s
    with pytest.raises(TypeError):
        device.stream()  # type: ignore[call-arg]


@pytest.mark.row(53)
def test_a_guard_restores_the_stream_and_propagates_exceptions() -> None:
    s = device.Stream("gpu:0")
    with pytest.raises(KeyError), device.stream_guard(s):
        assert here() is s
        raise KeyError
    assert here().handle == 0


def test_a_guard_leaves_the_expected_place() -> None:
    with device.stream_guard(device.Stream("gpu:1")):
        assert paddle.get_device() == "gpu:0"
        assert here().handle == 0
        assert here("gpu:1").handle != 0
        paddle.set_device("gpu:1")
    assert paddle.get_device() == "gpu:1"


def test_set_stream_in_a_guard_ends_with_it() -> None:
    s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
    with device.stream_guard(s1):
        assert device.set_stream(s2) is s1
        assert here() is s2
    assert here().handle == 0
    assert in_thread(here).handle == 0


def test_a_guard_is_its_threads_own() -> None:
    s = device.Stream("gpu:0")
    with device.stream_guard(s):
        assert in_thread(here).handle == 0


def test_guards_of_two_tasks_are_independent() -> None:
    async def one(s: device.Stream, mine: asyncio.Event, others: asyncio.Event) -> bool:
        with device.stream_guard(s):
            mine.set()
            await asyncio.wait_for(others.wait(), LIMIT)
            return here() is s

    async def both() -> list[bool]:
        a, b = asyncio.Event(), asyncio.Event()
        s1, s2 = device.Stream("gpu:0"), device.Stream("gpu:0")
        return await asyncio.gather(one(s1, a, b), one(s2, b, a))

    assert asyncio.run(both()) == [True, True]


def test_a_guard_refuses_at_its_entry() -> None:
    guard = device.stream_guard(1)
    with pytest.raises(AttributeError, match="'int' object has no attribute 'device'"):
        guard.__enter__()

    class NoStream:
        device = 1

    with (
        pytest.raises(TypeError, match="device should be gpu, xpu,"),
        device.stream_guard(NoStream()),
    ):
        pass
    assert here().handle == 0


def test_streams_of_other_dialects_may_be_current() -> None:
    s = hs.Stream(0)
    with device.stream_guard(s):
        assert isinstance(here(), device.Stream)
        assert here() == s
        assert hs.current_stream() is s
    mine = device.Stream("gpu:0")
    device.set_stream(mine)
    assert hs.current_stream() is mine


# -- the base layer -----------------------------------------------------------


@old_layer
@pytest.mark.row(39)
def test_current_stream_by_number_and_by_place() -> None:
    cuda = device.cuda
    assert cuda.current_stream(0) == cuda.current_stream(paddle.CUDAPlace(0))
    assert cuda.current_stream() == cuda.current_stream(-1) == cuda.current_stream(None)
    assert cuda.current_stream(1) != cuda.current_stream(0)
    assert isinstance(cuda.current_stream(), cuda.Stream)


@old_layer
@pytest.mark.row(40)
def test_current_stream_by_name() -> None:
    # 3.3 takes the names of GPUs, which versions before refused; other strings it still refuses.
    assert device.cuda.current_stream("gpu:0") == device.cuda.current_stream(0)
    for wrong in ("x", "cpu", 1.5, object(), paddle.CPUPlace()):
        with pytest.raises(ValueError):
            device.cuda.current_stream(wrong)


@old_layer
@pytest.mark.row(44)
def test_setting_the_current_stream_to_itself_keeps_the_object() -> None:
    cuda = device.cuda
    current = cuda.current_stream()
    assert cuda._set_current_stream(current) is current
    assert cuda.current_stream() is current
    s = cuda.Stream()
    assert cuda._set_current_stream(s) is current
    assert cuda.current_stream() is s
    assert cuda._set_current_stream(current) is s


@pytest.mark.row(45)
@pytest.mark.parametrize("wrong", [None, np.zeros(5)])
def test_the_base_layer_refuses_what_is_no_stream(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"stream type should be paddle\.device\.cuda"):
        device.cuda._set_current_stream(wrong)


@old_layer
@pytest.mark.row(51)
def test_the_base_guard_refuses_an_array_and_takes_none() -> None:
    with pytest.raises(TypeError), device.cuda.stream_guard(np.zeros(5)):
        pass
    with device.cuda.stream_guard(None):
        assert here().handle == 0


@old_layer
@pytest.mark.row(52)
def test_the_base_guard_of_the_current_stream_keeps_the_object() -> None:
    cuda = device.cuda
    current = cuda.current_stream()
    with cuda.stream_guard(current):
        assert id(cuda.current_stream()) == id(current)
    assert id(cuda.current_stream()) == id(current)


@old_layer
def test_the_base_guard_restores_after_an_exception() -> None:
    cuda = device.cuda
    s = cuda.Stream()
    with pytest.raises(KeyError), cuda.stream_guard(s):
        assert cuda.current_stream() is s
        raise KeyError
    assert here().handle == 0


def test_the_deprecated_layer_names_its_replacement() -> None:
    for call in (
        device.cuda.current_stream,
        device.cuda.synchronize,
        lambda: device.cuda.stream_guard(None),
    ):
        with pytest.warns(VisibleDeprecationWarning, match=r"since 2\.5\.0; use paddle\.device"):
            call()


def test_the_functions_of_base_core() -> None:
    core = paddle.base.core
    s = device.Stream("gpu:1")
    assert core._set_current_stream(s.stream_base).handle == 0
    assert core._get_current_stream(1) is s.stream_base
    assert core._get_current_raw_stream(1) == s.handle
    with pytest.raises(ValueError):
        core._get_current_raw_stream(-1)
    core._device_synchronize(1)
    custom = core.CustomDeviceStream(CUSTOM, 1)
    assert core._set_current_custom_device_stream(CUSTOM, 1, custom) is custom
    assert core._get_current_custom_device_stream(CUSTOM, 1) is custom
    assert custom.place == paddle.CustomPlace(CUSTOM, 1)
    core._synchronize_custom_device(CUSTOM, 1)
    for call in (
        lambda: core._set_current_custom_device_stream(CUSTOM, 1, None),
        lambda: core._set_current_stream(None),
    ):
        with pytest.raises(TypeError):
            call()
