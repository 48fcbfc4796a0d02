"""paddle: the choice of a device, and what is told about builds and devices."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import pytest
from halstream.paddle import device
from paddle_help import CUSTOM, REGISTERED

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


# -- set_device ---------------------------------------------------------------


@pytest.mark.row(61)
def test_the_cpu_can_be_chosen() -> None:
    place = paddle.set_device("cpu")
    assert paddle.get_device() == "cpu"
    for expected in (
        place,
        paddle.base.framework._current_expected_place(),
        paddle.framework._current_expected_place(),
    ):
        assert type(expected) is paddle.CPUPlace
    assert device.current_device() == 0


@pytest.mark.row(62)
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("gpu:0", "gpu:0"),
        ("gpu", "gpu:0"),
        ("cuda:1", "gpu:1"),
        ("GPU:1", "gpu:1"),
        (" gpu:1 ", "gpu:1"),
        (CUSTOM, f"{CUSTOM}:0"),
        (f"{CUSTOM}:1", f"{CUSTOM}:1"),
        ("npu:1", "npu:1"),
        ("CPU", "cpu"),
    ],
)
def test_get_device_returns_the_chosen_device(name: str, told: str) -> None:
    place = device.set_device(name)
    assert device.get_device() == told
    assert paddle.framework._current_expected_place() == place
    assert device.Event.__module__.startswith("halstream.paddle")


@pytest.mark.row(63)
def test_set_device_returns_the_place() -> None:
    assert paddle.set_device(CUSTOM).is_custom_place()
    assert paddle.set_device(paddle.CUDAPlace(1)) == paddle.CUDAPlace(1)
    assert paddle.get_device() == "gpu:1"
    assert paddle.set_device(0) == paddle.CUDAPlace(0)
    assert paddle.set_device(None) == paddle.CUDAPlace(0)


@pytest.mark.row(67)
@pytest.mark.parametrize("name", ["xxx", "cpu:1", "gpu:x", "", "gpux", "gpu:x:1"])
def test_a_name_of_no_device_is_refused_with_the_names_that_are(name: str) -> None:
    text = "The device must be a string which is like 'cpu', 'gpu', 'gpu:x',"
    with pytest.raises(ValueError, match=text) as caught:
        paddle.set_device(name)
    types = "".join(f", '{name}', '{name}:x'" for name in ["npu", *REGISTERED])
    assert str(caught.value).endswith(types)
    assert paddle.get_device() == "gpu:0"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ("xpu", "not compiled with XPU"),
        ("xpu:0", "not compiled with XPU"),
        ("ipu", "not compiled with IPU"),
        ("gpu:0x", "invalid literal"),
        (f"{CUSTOM}:", "invalid literal"),
        ("gpu:9", "use wrong place"),
        (-1, "Device index must be non-negative, got -1"),
        (1.5, "Incompatible Place Type"),
        (object(), "Incompatible Place Type"),
    ],
)
def test_what_set_device_refuses(wrong: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        paddle.set_device(wrong)


def test_an_int_means_the_type_that_is_current() -> None:
    paddle.set_device(CUSTOM)
    assert paddle.set_device(1) == paddle.CustomPlace(CUSTOM, 1)
    paddle.set_device("cpu")
    assert paddle.set_device(0) == paddle.CPUPlace()
    with pytest.raises(ValueError, match="CPU device only supports index 0, got 1"):
        paddle.set_device(1)


def test_a_bare_name_means_what_the_launcher_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLAGS_selected_gpus", "1")
    monkeypatch.setenv(f"FLAGS_selected_{CUSTOM}s", "1,0")
    assert paddle.get_device() == "gpu:1"
    assert paddle.set_device("gpu") == paddle.CUDAPlace(1)
    assert paddle.set_device(CUSTOM) == paddle.CustomPlace(CUSTOM, 1)
    assert paddle.set_device("gpu:0") == paddle.CUDAPlace(0)
    assert paddle.get_device() == "gpu:0"


@pytest.mark.row(80, 92)
def test_the_runtime_has_the_device_at_once() -> None:
    paddle.set_device("gpu:1")
    assert hs.current_device() == hs.Device(1)
    assert hs.Stream()._ordinal == 1
    assert device.current_device() == 1
    paddle.set_device(f"{CUSTOM}:0")
    assert hs.current_device() == hs.Device(0)


def test_the_choice_is_for_the_process() -> None:
    paddle.set_device(f"{CUSTOM}:1")
    assert in_thread(paddle.get_device) == f"{CUSTOM}:1"
    in_thread(lambda: paddle.set_device("cpu"))
    assert paddle.get_device() == "cpu"


def test_the_cpu_leaves_the_device_of_other_dialects() -> None:
    paddle.set_device("gpu:1")
    paddle.set_device("cpu")
    assert hs.current_device() == hs.Device(1)


def test_a_device_chosen_by_another_dialect_is_current() -> None:
    paddle.set_device(f"{CUSTOM}:0")
    with hs.Device(1):
        assert paddle.get_device() == f"{CUSTOM}:1"
        paddle.set_device("gpu:0")
        assert paddle.get_device() == "gpu:0"
        assert hs.current_device() == hs.Device(0)
    assert paddle.get_device() == f"{CUSTOM}:0"


def test_another_dialect_changes_the_number_and_not_the_type() -> None:
    with device.device_guard("gpu:0"):
        paddle.set_device(f"{CUSTOM}:0")
        hs.set_device(1)
        assert paddle.get_device() == f"{CUSTOM}:1"
    assert paddle.get_device() == "gpu:0"


# -- guards -------------------------------------------------------------------


@pytest.mark.row(68)
@pytest.mark.parametrize("wrong", [None, 1, 1.5, object()])
def test_device_guard_refuses_what_is_no_device(wrong: Any) -> None:
    with pytest.raises(ValueError, match="'device' must be a string or an instance of a subclass of"):
        device.device_guard(wrong)
    with pytest.raises(ValueError, match="The device must be a string"):
        device.device_guard("x")


@pytest.mark.row(69)
def test_device_guards_by_name_and_by_place_nest() -> None:
    assert paddle.device_guard is device.device_guard
    for outer, inner in (
        (f"{CUSTOM}:1", "cpu"),
        (paddle.CustomPlace(CUSTOM, 1), paddle.CPUPlace()),
    ):
        with device.device_guard(outer) as target:
            assert target is None
            assert paddle.get_device() == f"{CUSTOM}:1"
            kept = device.Stream()
            with device.device_guard(inner):
                assert paddle.get_device() == "cpu"
            assert paddle.get_device() == f"{CUSTOM}:1"
        assert paddle.get_device() == "gpu:0"
        assert kept.device == paddle.CustomPlace(CUSTOM, 1)


@pytest.mark.row(73)
@pytest.mark.parametrize("guard", [device.device, paddle.cuda.device, device.Device])
def test_the_device_of_a_with_block_and_the_one_before(guard: Any) -> None:
    paddle.set_device("gpu:1")
    with guard("cpu"):
        assert paddle.get_device() == "cpu"
    assert paddle.get_device() == "gpu:1"
    with pytest.raises(KeyError), guard("cuda:0"):
        assert paddle.get_device() == "gpu:0"
        paddle.set_device(f"{CUSTOM}:1")
        assert paddle.get_device() == f"{CUSTOM}:1"
        raise KeyError
    assert paddle.get_device() == "gpu:1"


@pytest.mark.row(77)
def test_a_device_object_as_a_context() -> None:
    before = paddle.get_device()
    with paddle.device("cpu") as d:
        assert d == "cpu"
        assert paddle.get_device() == "cpu"
        with d:
            assert paddle.get_device() == "cpu"
        assert paddle.get_device() == "cpu"
    assert paddle.get_device() == before


def test_a_device_guard_is_its_tasks_own() -> None:
    async def one(name: str, mine: asyncio.Event, others: asyncio.Event) -> str:
        with device.device_guard(name):
            mine.set()
            await asyncio.wait_for(others.wait(), LIMIT)
            return paddle.get_device()

    async def both() -> list[str]:
        a, b = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(one("gpu:1", a, b), one("cpu", b, a))

    assert asyncio.run(both()) == ["gpu:1", "cpu"]
    with device.device_guard("cpu"):
        assert in_thread(paddle.get_device) == "gpu:0"


def test_the_device_context_converts_at_its_making() -> None:
    for wrong in ("x", -1):
        with pytest.raises(ValueError):
            device.device(wrong)
    with device.device(None) as target:
        assert target is None
        assert paddle.get_device() == "gpu:0"
    with pytest.raises(ValueError, match="Incompatible Place Type"), device.device(1.5):
        pass


# -- synchronize --------------------------------------------------------------


@pytest.mark.row(64)
def test_synchronize_by_every_name() -> None:
    paddle.set_device(CUSTOM)
    place = paddle.CustomPlace(CUSTOM, 0)
    for args in ((), (CUSTOM,), (f"{CUSTOM}:0",), (place,), (None,)):
        assert device.synchronize(*args) is None


@old_layer
@pytest.mark.row(65)
def test_synchronize_of_the_base_layer() -> None:
    for args in ((), (0,), (paddle.CUDAPlace(0),), (-1,), ("gpu:0",), ("gpu",)):
        assert device.cuda.synchronize(*args) is None
    with pytest.raises(ValueError, match="The current string cpu is not expected"):
        device.cuda.synchronize("cpu")
    for wrong in (1.5, object(), paddle.CPUPlace()):
        with pytest.raises(ValueError, match="device type must be int, str or paddle"):
            device.cuda.synchronize(wrong)


@pytest.mark.row(66)
def test_synchronize_of_paddle_cuda() -> None:
    for args in ((), (None,), (0,), ("cuda:0",), ("gpu:0",)):
        assert paddle.cuda.synchronize(*args) is None


# -- helpers ------------------------------------------------------------------


@pytest.mark.row(72)
@pytest.mark.parametrize("name", ["gpu:1", "cpu", f"{CUSTOM}:0"])
def test_device_to_paddle_without_an_argument_is_get_device(name: str) -> None:
    paddle.set_device(name)
    assert paddle.device._device_to_paddle() == paddle.get_device() == name


def test_the_helpers_of_names() -> None:
    convert, to_paddle = paddle.device._convert_to_place, paddle.device._device_to_paddle
    assert convert(5) == 5
    assert to_paddle(" cuda:1 ") == "gpu:1"
    assert to_paddle(1) == "gpu:1"
    assert to_paddle(1.5) == 1.5
    assert device.device_to_place() == paddle.CUDAPlace(0)
    assert device.device_to_place(1) == paddle.CUDAPlace(1)
    assert device.extract_device_id("gpu:1", "f") == 1
    assert device.extract_device_id(paddle.CustomPlace(CUSTOM, 1), "f") == 1
    assert device.extract_device_id(None, "f") == 0
    for wrong in ("cpu", 1.5, paddle.CPUPlace()):
        with pytest.raises(ValueError, match="Because f only support"):
            device.extract_device_id(wrong, "f")


def test_set_device_of_paddle_cuda() -> None:
    assert paddle.cuda.set_device(1) is None
    assert paddle.get_device() == "gpu:1"
    paddle.cuda.set_device("cuda:0")
    assert paddle.get_device() == "gpu:0"
    paddle.set_device("cpu")
    paddle.cuda.set_device(1)
    assert paddle.get_device() == "gpu:1"
    with pytest.raises(ValueError, match=r"Unsupported device type: <class 'float'>"):
        paddle.cuda.set_device(1.5)
