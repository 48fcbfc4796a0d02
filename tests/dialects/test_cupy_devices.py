"""cupy.cuda: Device, its contexts, and the current stream of each device."""

from __future__ import annotations

import re
import threading
from operator import eq, ne
from typing import Any

import halstream as hs
import pytest
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Stream, get_current_stream, runtime

pytestmark = pytest.mark.dialect("cupy")

LIMIT = 10.0
Error = runtime.CUDARuntimeError


@pytest.mark.row(15, 17)
def test_current_stream_is_per_device(backend: str) -> None:
    with Device(0):
        s = Stream()
        with s:
            with Device(1):
                assert get_current_stream() is Stream.null
            assert get_current_stream() is s
        s.use()
        with Device(1):
            assert get_current_stream() is Stream.null
        assert get_current_stream() is s


@pytest.mark.row(16)
def test_current_stream_of_another_device(backend: str) -> None:
    s = Stream()
    with s, Device(1):
        assert get_current_stream(0) is s
        assert get_current_stream(1) is get_current_stream() is Stream.null


def test_use_inside_a_device_context_stays(backend: str) -> None:
    streams = []
    for n in range(2):
        with Device(n):
            streams.append(Stream().use())
    for n in range(2):
        assert get_current_stream(n) is streams[n]
        with Device(n):
            assert get_current_stream() is streams[n]


def test_use_on_another_device_outlives_the_stream_context(backend: str) -> None:
    s0 = Stream()
    with s0:
        with Device(1):
            s1 = Stream().use()
        with Stream():
            pass
        assert get_current_stream(1) is s1 and get_current_stream(0) is s0
    assert get_current_stream(1) is s1 and get_current_stream(0) is Stream.null


@pytest.mark.row(18, 19)
def test_streams_of_other_devices_are_refused(backend: str) -> None:
    s = Stream()
    with Device(1):
        with pytest.raises(RuntimeError, match=r"device 0.*device is 1") as info:
            s.__enter__()
        assert isinstance(info.value, hs.WrongDeviceError)
        with pytest.raises(RuntimeError, match=r"device 0.*device is 1"):
            s.use()
        assert get_current_stream() is Stream.null
    with s:
        assert get_current_stream() is s


@pytest.mark.row(62)
def test_equality(backend: str) -> None:
    same, other = (Device(0), Device(0)), (Device(0), Device(1))
    assert eq(*same) is True and ne(*same) is False
    assert eq(*other) is False and ne(*other) is True
    for thing in (0, None, object()):
        for pair in ((Device(0), thing), (thing, Device(0))):
            assert eq(*pair) is False and ne(*pair) is True


@pytest.mark.row(63)
def test_order(backend: str) -> None:
    a, b = Device(0), Device(1)
    assert a < b and a <= b and b > a and b >= a and a <= Device(0) and a >= Device(0)
    assert not (a > b or a >= b or b < a or b <= a)
    for other in (0, None, object()):
        for compare in ("<", "<=", ">", ">="):
            for text in (f"a {compare} o", f"o {compare} a"):
                with pytest.raises(TypeError):
                    eval(text, {"a": a, "o": other})


def test_forms(backend: str) -> None:
    assert repr(Device(1)) == "<CUDA Device 1>" and int(Device(1)) == 1
    assert Device(Device(1)).id == Device("1").id == 1 and Device().id == 0
    assert Device(-1).id == -1
    device = Device(0)
    device.id = 1
    assert device == Device(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(device)
    with pytest.raises(AttributeError):
        device.other = 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="invalid literal"):
        Device("x")
    with pytest.raises(TypeError):
        Device(object())


@pytest.mark.row(64)
def test_attributes(backend: str) -> None:
    attributes = Device(0).attributes
    assert isinstance(attributes, dict) and "MaxThreadsPerBlock" in attributes
    assert all(isinstance(k, str) and isinstance(v, int) for k, v in attributes.items())
    assert attributes["StreamPrioritiesSupported"] == 1
    with pytest.raises(Error, match="cudaErrorInvalidDevice"):
        Device(99).attributes  # noqa: B018
    with pytest.raises(Error, match="cudaErrorInvalidValue"):
        runtime.deviceGetAttribute(100000, 0)


@pytest.mark.row(65)
def test_pci_bus_id(backend: str) -> None:
    for n in range(2):
        text = Device(n).pci_bus_id
        assert re.fullmatch(r"[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]", text)
        assert Device.from_pci_bus_id(text) == Device(n)
    for wrong, status in (("x", 1), ("", 1), ("0000:00:00.0.0", 1), ("ffff:7f:00.0", 101)):
        with pytest.raises(Error) as info:
            Device.from_pci_bus_id(wrong)
        assert info.value.status == status
    with pytest.raises(TypeError, match="Expected str, got int"):
        Device.from_pci_bus_id(1)  # type: ignore[arg-type]


@pytest.mark.row(68)
def test_use_and_nested_contexts(backend: str) -> None:
    dev0, dev1 = Device(0), Device(1)
    assert dev1.use() is dev1 and cuda.get_device_id() == 1
    with dev0 as entered:
        assert entered is dev0 and cuda.get_device_id() == 0
        with dev1, dev0:
            assert Device() == dev0
        assert Device() == dev0
    assert Device() == dev1
    dev0.use()
    assert runtime.getDevice() == 0


@pytest.mark.row(69)
def test_use_inside_a_context(backend: str) -> None:
    dev0, dev1 = Device(0), Device(1)
    dev1.use()
    with dev0:
        dev1.use()
        assert Device() == dev1
        with dev1:
            pass
        assert Device() == dev1
    assert Device() == dev1
    dev0.use()
    with dev0:
        dev1.use()
    assert Device() == dev0


def test_use_outlives_a_stream_context(backend: str) -> None:
    with Stream():
        Device(1).use()
    assert Device() == Device(1) and get_current_stream(0) is Stream.null


@pytest.mark.row(70)
def test_threads_have_their_own_stacks(backend: str) -> None:
    barrier = threading.Barrier(2)
    seen: dict[int, list[int]] = {}

    def walk(first: int, second: int) -> None:
        mine = seen.setdefault(first, [])
        with Device(first):
            barrier.wait(LIMIT)
            mine.append(cuda.get_device_id())
            with Device(second):
                barrier.wait(LIMIT)
                mine.append(cuda.get_device_id())
            barrier.wait(LIMIT)
            mine.append(cuda.get_device_id())
        barrier.wait(LIMIT)
        mine.append(cuda.get_device_id())

    threads = [threading.Thread(target=walk, args=a) for a in ((0, 1), (1, 0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert seen == {0: [0, 1, 0, 0], 1: [1, 0, 1, 0]}


@pytest.mark.row(71)
def test_device_that_does_not_exist(backend: str) -> None:
    far = Device(100)
    for call in (far.use, far.__enter__, far.synchronize, lambda: far.pci_bus_id):
        with pytest.raises(Error) as info:
            call()
        assert str(info.value).startswith("cudaErrorInvalidDevice: invalid device ordinal (")
        assert "device 100 does not exist" in info.value.detail
    with Device(0):
        assert cuda.get_device_id() == 0
    with pytest.raises(IndexError):
        far.__exit__()


def test_synchronize(hold: Any) -> None:
    s = Stream()
    gate = hold(s)
    with pytest.raises(Error, match="cudaErrorTimeout"):
        Device(0).synchronize(timeout=0.01)
    Device(1).synchronize(timeout=LIMIT)
    gate.open()
    Device(0).synchronize()
    assert s.done


def test_new_thread_starts_on_device_0(backend: str) -> None:
    Device(1).use()
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(cuda.get_device_id()))
    thread.start()
    thread.join(LIMIT)
    assert seen == [0]


def test_names_that_are_not_built_raise(backend: str) -> None:
    for name in ("cublas_handle", "cusparse_handle"):
        with pytest.raises(hs.NotSupportedError):
            getattr(Device(0), name)


def test_queries(backend: str) -> None:
    assert cuda.is_available() is True
    assert Device(0).compute_capability == cuda.device.get_compute_capability()
    assert cuda.get_local_runtime_version() == runtime.runtimeGetVersion() >= 12000
