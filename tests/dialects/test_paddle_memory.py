"""paddle: figures of device memory, and the place of pinned memory."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import halstream as hs
import halstream.paddle as paddle
import numpy as np
import pytest
from halstream.paddle import device
from paddle_help import CUSTOM, REGISTERED

pytestmark = [pytest.mark.dialect("paddle"), pytest.mark.usefixtures("backend")]

MIB = 1 << 20
Hold = Callable[[Any], Any]
left: dict[int, tuple[int, int]] = {}
LAYERS = [device, device.cuda, device.custom_device, paddle.cuda]


@pytest.fixture(autouse=True)
def empty() -> Iterator[None]:
    """Start and end with nothing in the pool's cache, and peaks at what is held."""

    def clean() -> None:
        gc.collect()
        for number in range(hs.device_count()):
            hs.Device(number).synchronize()
        device.empty_cache()
        for number in range(hs.device_count()):
            device.reset_max_memory_allocated(number)
            device.reset_max_memory_reserved(number)

    clean()
    # What other tests left to live on in this process does not count.
    for number in range(hs.device_count()):
        left[number] = device.memory_allocated(number), device.memory_reserved(number)
    yield
    clean()


def array(stream: Any, nbytes: int = MIB) -> Any:
    return hs.empty(nbytes, np.uint8, stream=stream)


def figures(layer: Any, *where: Any, of: int = 0) -> list[int]:
    """Return the four figures without what was there before the test."""
    allocated, reserved = left[of]
    return [
        layer.memory_allocated(*where) - allocated,
        layer.memory_reserved(*where) - reserved,
        layer.max_memory_allocated(*where) - allocated,
        layer.max_memory_reserved(*where) - reserved,
    ]


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.__name__)
def test_what_is_allocated_reserved_and_most(layer: Any) -> None:
    stream = device.Stream()
    first, second = array(stream), array(stream, 100)
    assert figures(layer) == [MIB + 512] * 4
    second._memory.free()
    assert figures(layer) == [MIB, MIB + 512, MIB + 512, MIB + 512]
    layer.reset_max_memory_allocated()
    assert figures(layer) == [MIB, MIB + 512, MIB, MIB + 512]
    stream.synchronize()
    layer.empty_cache()
    assert figures(layer) == [MIB, MIB, MIB, MIB + 512]
    layer.reset_max_memory_reserved()
    assert figures(layer) == [MIB] * 4
    del first


@pytest.mark.parametrize("where", [1, "gpu:1", f"{CUSTOM}:1", "place", "custom place"])
def test_forms_of_a_device(where: Any) -> None:
    where = {
        "place": paddle.CUDAPlace(1),
        "custom place": paddle.CustomPlace(CUSTOM, 1),
    }.get(where, where)
    keep = array(hs.Stream(1))
    assert figures(device, where, of=1) == figures(device.cuda, where, of=1) == [MIB] * 4
    assert figures(device) == [0] * 4
    assert figures(paddle.cuda, where, of=1) == [MIB] * 4
    assert figures(paddle.cuda, "cuda:1", of=1) == [MIB] * 4
    paddle.set_device("gpu:1")
    assert figures(device, of=1) == figures(paddle.cuda, of=1) == [MIB] * 4
    assert device.cuda.memory_summary(where) == paddle.cuda.memory_summary(where)
    assert f"{left[1][0] + MIB:,} bytes" in device.cuda.memory_summary(where)
    del keep


@pytest.mark.parametrize("name", ["memory_allocated", "max_memory_reserved"])
@pytest.mark.parametrize("wrong", ["abc", "cpu", "gpu1", 1.5, object(), paddle.CPUPlace(), 9])
def test_what_is_no_device_is_a_value_error(name: str, wrong: Any) -> None:
    for layer in (device, device.cuda, paddle.cuda):
        with pytest.raises(ValueError):
            getattr(layer, name)(wrong)


def test_reset_peak_memory_stats_ignores_its_device_argument() -> None:
    for number in (0, 1):
        array(hs.Stream(number))._memory.free()
    device.reset_peak_memory_stats("what is said is ignored")
    assert device.max_memory_allocated(0) == left[0][0]
    assert device.max_memory_allocated(1) == left[1][0] + MIB
    assert device.cuda.reset_peak_memory_stats is paddle.cuda.reset_peak_memory_stats


def test_freed_memory_that_another_stream_uses_is_reserved_and_not_allocated(hold: Hold) -> None:
    mine, other = device.Stream(), device.Stream()
    first = array(mine)
    first.record_stream(other)
    gate = hold(other)
    del first
    assert device.memory_allocated() == left[0][0]
    assert device.memory_reserved() == left[0][1] + MIB
    gate.open()
    other.synchronize()
    assert device.memory_allocated() == left[0][0]


@pytest.mark.parametrize("where", [None, 0, "cuda:0", "gpu:0", "what get_device says"])
def test_free_and_total_bytes(where: Any) -> None:
    if where == "what get_device says":
        where = paddle.get_device()
    free, total = paddle.cuda.mem_get_info(where)
    assert 0 < free <= total
    keep = hs.empty(MIB, np.uint8, 0)
    assert paddle.cuda.mem_get_info(where) == (free - MIB, total)
    assert device.get_device_properties(where).total_memory == total
    del keep


@pytest.mark.parametrize("wrong", ["cpu", paddle.CPUPlace(), paddle.CUDAPinnedPlace()], ids=str)
def test_the_host_has_no_such_figures(wrong: Any) -> None:
    with pytest.raises(ValueError, match="Expected a cuda device, but got"):
        paddle.cuda.mem_get_info(wrong)
    paddle.set_device("cpu")
    with pytest.raises(ValueError, match="Expected a cuda device, but got"):
        paddle.cuda.mem_get_info()
    for call in (device.cpu.max_memory_allocated, device.cpu.max_memory_reserved):
        with pytest.raises(ValueError, match="not supported for the CPU"):
            call()
    for call in (device.xpu.memory_allocated, device.xpu.empty_cache):
        with pytest.raises(RuntimeError, match="not compiled with XPU"):
            call()


# -- CUDAPinnedPlace ----------------------------------------------------------


def test_the_place_of_pinned_memory_can_be_the_expected_one() -> None:
    place = paddle.CUDAPinnedPlace()
    paddle.set_device("gpu:1")
    with device.device_guard(place):
        assert paddle.framework._current_expected_place() == place
        with pytest.raises(ValueError, match=r"Place\(gpu_pinned\) is invalid"):
            paddle.get_device()
        # It has no streams, and what is on the device stays as it is.
        for call in (device.Stream, device.Event, device.current_stream, device.synchronize):
            with pytest.raises(TypeError, match=f"device should be gpu, xpu, {','.join(REGISTERED)}"):
                call()
        assert hs.current_device() == hs.Device(1)
        with pytest.raises(TypeError):
            device.memory_allocated()
    assert paddle.get_device() == "gpu:1"
    assert paddle.set_device(place) is place
    assert paddle.framework._current_expected_place().is_cuda_pinned_place()
    paddle.set_device("gpu:0")
    assert paddle.get_device() == "gpu:0"


def test_pinned_memory_is_read_by_the_stream_not_by_the_call(hold: Hold) -> None:
    stream = device.Stream()
    target = hs.zeros(16, np.uint8, stream=stream)
    source = hs.pinned_empty(16, np.uint8)
    source[:] = 1
    gate = hold(stream)
    target.copy_from(source, stream)
    source[:] = 2
    gate.open()
    assert (target.numpy(stream) == 2).all()
