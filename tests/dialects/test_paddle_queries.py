"""paddle: what is told about builds and devices, Device objects, places, external streams."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import pytest
from halstream.paddle import device
from paddle_help import CUSTOM, REGISTERED

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

LIMIT = 10.0
Device = device.Device


# -- builds and counts --------------------------------------------------------


@pytest.mark.row(73)
def test_devices_are_available_and_counted() -> None:
    for names in (device, paddle.cuda):
        assert names.is_available() is True
        assert names.device_count() == hs.device_count()
    assert device.cuda.device_count() == hs.device_count()
    assert device.cpu.device_count() == device.xpu.device_count() == 0
    assert device.custom_device.device_count() == (hs.device_count() if REGISTERED else 0)
    assert device.custom_device.device_count("no_such_type") == 0


@pytest.mark.row(74, 93)
def test_the_lists_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    custom = [f"{kind}:{number}" for kind in REGISTERED for number in (0, 1)]
    assert device.get_available_custom_device() == custom
    assert device.get_available_device() == ["gpu:0", "gpu:1", *custom]
    assert device.get_all_device_type() == ["gpu", *REGISTERED]
    assert device.get_all_custom_device_type() == REGISTERED


@pytest.mark.row(93)
def test_a_type_with_one_device_is_listed_without_an_ordinal() -> None:
    code = (
        "import halstream.paddle as p\nprint(p.device.get_available_custom_device(), p.device.get_available_device())"
    )
    env = os.environ | {"HALSTREAM_HOST_DEVICES": "1", "HALSTREAM_BACKEND": "host"}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == "['custom_cpu'] ['gpu', 'custom_cpu']", ran.stderr


def test_the_build_flags() -> None:
    assert paddle.is_compiled_with_cuda() is True
    for name in ("rocm", "xpu", "ipu", "cinn", "distribute"):
        assert getattr(paddle, f"is_compiled_with_{name}")() is False
    for name in ("custom_cpu", "npu"):
        assert paddle.is_compiled_with_custom_device(name) is (name in REGISTERED)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        device.is_compiled_with_custom_device(1)  # type: ignore[arg-type]
    assert device.get_cudnn_version() is None


@pytest.mark.row(78, 79)
def test_the_properties_of_a_device() -> None:
    properties = device.get_device_properties()
    assert isinstance(device.get_device_name(), str)
    assert device.get_device_name("gpu:0") == properties.name
    assert device.get_device_capability(0) == (properties.major, properties.minor)
    assert properties.total_memory > 0
    assert properties.multi_processor_count > 0
    assert repr(properties).startswith(f"_gpuDeviceProperties(name='{properties.name}', major=")
    for names in (device, device.cuda, paddle.cuda):
        for call in (
            names.get_device_properties,
            names.get_device_name,
            names.get_device_capability,
        ):
            assert call(paddle.CUDAPlace(1)) is not None
            for wrong in ("cpu:2", "cpu", 9, 1.5):
                with pytest.raises(ValueError):
                    call(wrong)


def test_the_modules_of_devices() -> None:
    get = device.get_device_module
    assert get() is get("gpu:1") is get("cuda") is get(paddle.CUDAPlace(0)) is paddle.cuda
    assert get("cpu") is device.cpu
    assert get("xpu") is device.xpu
    assert get(paddle.CPUPlace()) is device
    for name in (CUSTOM, "npu", "mlu", paddle.CustomPlace(CUSTOM, 0)):
        assert get(name) is device.custom_device
    assert paddle.get_device_module is get
    with pytest.raises(RuntimeError, match="Unsupported device type: zzz"):
        get("zzz")


def test_the_custom_layer() -> None:
    custom = device.custom_device
    s = custom.create_stream(1, priority=1)
    assert isinstance(s, custom.Stream)
    assert s.place == paddle.CustomPlace(CUSTOM, 1)
    assert hs.Stream.from_handle(s.handle).priority == -1
    e = custom.create_event(device_id=1)
    e.record(s)
    assert custom.synchronize("any:1") is None
    assert e.query()
    assert type(e.raw_event) is int
    assert custom.current_stream(1) == hs.Device(1).default_stream
    for wrong in (f"{CUSTOM}:a", f"{CUSTOM}:", 1.5):
        with pytest.raises(ValueError):
            custom.current_stream(wrong)
    assert isinstance(device.cuda.create_stream(1), device.cuda.Stream)
    assert isinstance(device.cuda.create_event(True), device.cuda.Event)
    for call in (device.xpu.synchronize, device.xpu.current_stream):
        with pytest.raises(RuntimeError, match="not compiled with XPU"):
            call()


# -- Device -------------------------------------------------------------------


@pytest.mark.row(75)
@pytest.mark.parametrize(
    ("args", "text", "kind", "index"),
    [
        (("cuda",), "cuda:0", "cuda", 0),
        (("cpu", 0), "cpu", "cpu", None),
        (("cpu",), "cpu", "cpu", None),
        ((4,), "cuda:4", "cuda", 4),
        (("cuda", 1), "cuda:1", "cuda", 1),
        (("cuda:1",), "cuda:1", "cuda", 1),
        (("gpu",), "gpu:0", "gpu", 0),
        (("npu:1",), "npu:1", "npu", 1),
        (("CUDA:0",), "cuda:0", "cuda", 0),
        ((Device("cuda:2"),), "cuda:2", "cuda", 2),
        ((paddle.CPUPlace(),), "cpu", "cpu", None),
    ],
)
def test_what_a_device_is(args: tuple[Any, ...], text: str, kind: str, index: int | None) -> None:
    d = Device(*args)
    assert d == text
    assert repr(d) == repr(text)
    assert isinstance(d, str)
    assert (d.type, d.index) == (kind, index)
    assert paddle.device(*args) == d


def test_a_place_is_a_device() -> None:
    d = Device(paddle.CUDAPlace(1))
    assert (d, d.type, d.index) == ("gpu:1", "gpu", 1)


@pytest.mark.row(76)
def test_what_is_no_device() -> None:
    with pytest.raises(ValueError, match="Device type must be specified if index is given"):
        Device(None, 1)
    for wrong in ("abc", "abc:0"):
        with pytest.raises(ValueError, match="Unsupported device type: abc"):
            Device(wrong)
    for nothing in (3.14, None):
        with pytest.raises(TypeError, match="Unsupported type for Device"):
            Device(nothing)
    with pytest.raises(ValueError):
        Device("cuda:x")


@pytest.mark.row(73)
def test_the_default_device() -> None:
    assert isinstance(paddle.get_default_device(), str)
    assert paddle.get_default_device() == paddle.device("cuda")
    assert paddle.set_default_device("gpu") is None
    assert paddle.get_default_device() == paddle.device("cuda")
    paddle.set_default_device("cpu")
    assert paddle.get_default_device() == "cpu"
    paddle.set_default_device(f"{CUSTOM}:1")
    assert paddle.get_default_device() == f"{CUSTOM}:1"


def test_devices_can_be_copied_and_pickled() -> None:
    d = paddle.device("cuda:1")
    for other in (copy.copy(d), copy.deepcopy(d), pickle.loads(pickle.dumps(d))):
        assert type(other) is Device
        assert (other, other.index) == (d, 1)
    assert d.__dlpack_device__() == (2, 1)


# -- places -------------------------------------------------------------------


@pytest.mark.row(84, 85, 88)
def test_places_are_equal_by_value() -> None:
    custom = paddle.CustomPlace
    assert paddle.CPUPlace() == paddle.CPUPlace()
    assert paddle.CUDAPlace(1) == paddle.CUDAPlace(1)
    assert custom(CUSTOM, 0) == custom(CUSTOM, 0)
    assert hash(paddle.CUDAPlace(1)) == hash(paddle.CUDAPlace(1))
    different = [
        paddle.CPUPlace(),
        paddle.CUDAPlace(0),
        paddle.CUDAPlace(1),
        *(custom(kind, number) for kind in {CUSTOM, "npu"} for number in (0, 1)),
        paddle.CUDAPinnedPlace(),
    ]
    assert len(set(different)) == len(different)
    assert (paddle.CPUPlace() == 1) is False
    base = paddle.base.core.Place()
    assert base != paddle.CPUPlace()
    base.set_place(paddle.CUDAPlace(1))
    assert base == paddle.CUDAPlace(1)
    assert not isinstance(base, paddle.CUDAPlace)
    assert device.current_stream(base).device == base


@pytest.mark.row(86, 87)
def test_the_text_of_places() -> None:
    for place, text in (
        (paddle.CPUPlace(), "Place(cpu)"),
        (paddle.CUDAPlace(0), "Place(gpu:0)"),
        (paddle.CUDAPinnedPlace(), "Place(gpu_pinned)"),
        (paddle.CustomPlace(CUSTOM, 0), f"Place({CUSTOM}:0)"),
        (paddle.base.core.Place(), "Place(undefined:0)"),
    ):
        assert str(place) == repr(place) == text


@pytest.mark.row(89)
def test_places_can_be_copied_and_pickled() -> None:
    for place in (
        paddle.CPUPlace(),
        paddle.CUDAPlace(1),
        paddle.CustomPlace(CUSTOM, 1),
        paddle.base.core.Place(),
    ):
        for other in (copy.copy(place), copy.deepcopy(place), pickle.loads(pickle.dumps(place))):
            assert other == place
            assert type(other) is type(place)


def test_queries_of_places() -> None:
    gpu, custom = paddle.CUDAPlace(1), paddle.CustomPlace(CUSTOM, 1)
    assert gpu.get_device_id() == gpu.gpu_device_id() == 1
    assert custom.get_device_id() == custom.custom_device_id() == 1
    assert custom.get_device_type() == custom.custom_device_type() == CUSTOM
    assert gpu.custom_device_type() == ""
    kinds = ["cpu", "gpu", "xpu", "ipu", "cuda_pinned", "xpu_pinned", "custom"]
    for place, kind in (
        (paddle.CPUPlace(), "cpu"),
        (gpu, "gpu"),
        (custom, "custom"),
        (paddle.CUDAPinnedPlace(), "cuda_pinned"),
    ):
        assert [k for k in kinds if getattr(place, f"is_{k}_place")()] == [kind]
    assert gpu.__dlpack_device__() == (2, 1)
    assert paddle.CPUPlace().__dlpack_device__() == (1, 0)
    assert gpu._equals(paddle.CUDAPlace(1))


def test_what_places_refuse() -> None:
    for wrong in (-1, hs.device_count()):
        with pytest.raises(ValueError, match="use wrong place"):
            paddle.CUDAPlace(wrong)
        with pytest.raises(ValueError, match="use wrong place"):
            paddle.CustomPlace(CUSTOM, wrong)
    with pytest.raises(ValueError, match="use wrong place"):
        paddle.CustomPlace("no_such_type", 0)
    for call in (
        lambda: paddle.CUDAPlace("x"),  # type: ignore[arg-type]
        lambda: paddle.CUDAPlace(1.5),  # type: ignore[arg-type]
        lambda: paddle.CustomPlace(0, 0),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="incompatible constructor arguments"):
            call()
    with pytest.raises(TypeError):
        paddle.CustomPlace(CUSTOM)  # type: ignore[call-arg]
    for absent in (lambda: device.XPUPlace(0), device.IPUPlace, paddle.IPUPlace):
        with pytest.raises(ValueError, match="use wrong place"):
            absent()


# -- external streams and capture ----------------------------------------------


@pytest.mark.row(81)
def test_an_external_stream_has_the_handle() -> None:
    s = device.Stream("gpu:0")
    for where in (0, paddle.CUDAPlace(0), None, "cuda:0"):
        for names in (device, paddle.cuda):
            other = names.get_stream_from_external(s.handle, where)
            assert isinstance(other, device.Stream)
            assert other.stream_base.cuda_stream == s.handle
            assert other.device == paddle.CUDAPlace(0)


@pytest.mark.row(82)
def test_the_stream_outlives_an_external_wrapper() -> None:
    s = device.Stream("gpu:0")
    other = device.get_stream_from_external(s.handle)
    del other
    gc.collect()
    e = s.record_event()
    e.synchronize(LIMIT)
    assert s.query()


def test_what_is_no_external_stream() -> None:
    with pytest.raises(ValueError):
        device.get_stream_from_external(0)
    with pytest.raises(hs.InvalidHandleError) as caught:
        device.get_stream_from_external(123456789)
    assert isinstance(caught.value, OSError)
    paddle.set_device("cpu")
    with pytest.raises(AttributeError, match="get_device_id"):
        device.get_stream_from_external(1)


@pytest.mark.row(83)
def test_nothing_is_being_captured() -> None:
    assert device.is_current_stream_capturing() is False
    assert paddle.cuda.is_current_stream_capturing() is False


@pytest.mark.row(73)
def test_check_error() -> None:
    assert paddle.cuda.check_error(0) is None
    with pytest.raises(RuntimeError, match="invalid argument") as caught:
        paddle.cuda.check_error(1)
    assert isinstance(caught.value, paddle.cuda.CudaError)
    with pytest.raises(RuntimeError, match="out of memory") as caught:
        paddle.cuda.check_error(2)
    assert isinstance(caught.value, paddle.cuda.OutOfMemoryError)
    assert not isinstance(caught.value, paddle.cuda.CudaError)
