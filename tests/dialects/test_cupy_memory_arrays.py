"""cupy.ndarray, as far as programs about streams use it."""

from __future__ import annotations

import warnings
from typing import Any

import halstream as hs
import halstream.cupy as cp
import numpy as np
import pytest
from halstream import cupyx
from halstream.cupy.cuda import Device, MemoryPointer, PinnedMemoryPointer, Stream

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]


def test_attributes_of_an_array() -> None:
    a = cp.zeros((3, 4), np.int16)
    assert isinstance(a, cp.ndarray) and isinstance(a.data, MemoryPointer)
    assert (a.shape, a.ndim, a.size, a.nbytes, a.itemsize) == ((3, 4), 2, 12, 24, 2)
    assert (a.strides, a.dtype, a.device, len(a)) == ((8, 2), np.int16, Device(0), 3)
    assert a[1:].data.ptr == a.data.ptr + 8 and a.reshape(2, -1).shape == (2, 6)
    assert cp.get_array_module(a) is cp and cp.get_array_module(np.zeros(1)) is np
    with pytest.raises(TypeError, match="Implicit conversion"):
        np.sqrt(np.asarray(a))
    b = cp.ndarray((4,), np.int16, memptr=a.data + 8)
    b.fill(7)
    assert a.get()[1].tolist() == [7] * 4
    with Device(1):
        assert cp.empty(3).device == Device(1)


def test_round_trip() -> None:
    for host in (np.arange(6.0).reshape(2, 3), np.array(5, np.int8), np.empty((0, 3)), np.arange(1 << 16)):
        a = cp.asarray(host)
        host_now = host.copy()
        host += 1  # the source is the caller's again
        np.testing.assert_array_equal(cp.asnumpy(a), host_now)
        assert cp.asarray(a) is a and cp.array(a) is not a
    assert cp.array([1, 2], np.float32, ndmin=2).get().tolist() == [[1, 2]]
    f = cp.array(np.arange(6).reshape(2, 3)).get(order="F")
    assert f.flags.f_contiguous and f.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert cp.asnumpy([1, 2]).tolist() == [1, 2]


def test_wrong_targets_and_sources() -> None:
    a = cp.zeros(4)
    for wrong, error in (([0] * 4, TypeError), (np.zeros(4, np.int8), TypeError), (np.zeros(3), ValueError)):
        with pytest.raises(error):
            a.get(out=wrong)
        with pytest.raises(error):
            a.set(wrong)
    with pytest.raises(ValueError, match="order"):
        a.get(order="X")


def test_arithmetic_is_work_of_the_current_stream(hold: Any) -> None:
    stream = Stream(non_blocking=True)
    with stream:
        a = cp.arange(4, dtype=np.float32)
        gate = hold(stream)
        b = (a + 1) * 2 - a / 2
        c = b.sum()
        assert b.dtype == np.float32 and not stream.done
        gate.open()
        assert b.get().tolist() == [2.0, 3.5, 5.0, 6.5] and float(c) == 17.0
        assert (1 - a).get().tolist() == [1, 0, -1, -2]
        assert (a == 2).get().tolist() == [False, False, True, False]
        assert a.astype(int).get().dtype == int
        a[1:3] = 9
        a[3:] = b[:1]
        assert str(a) == "[0. 9. 9. 2.]"
        assert cp.matmul(cp.ones((2, 3)), cp.ones((3, 2))).get().tolist() == [[3, 3], [3, 3]]


@pytest.mark.row(83)
def test_blocking_copies_to_pinned_memory(hold: Any) -> None:
    stream = Stream(non_blocking=True)
    out = cupyx.empty_pinned((4,), np.float64)
    with stream:
        a = cp.zeros(4)
        a.fill(3)
        assert cp.asnumpy(a, out=out, blocking=True) is out
    assert stream.done and out.tolist() == [3] * 4
    gate = hold(stream)
    a.get(stream=stream, out=out, blocking=False)
    out[:] = 8  # too early: the copy is still to come
    assert not stream.done
    gate.open()
    stream.synchronize()
    assert out.tolist() == [3] * 4


@pytest.mark.row(84)
def test_out_is_backed_by_pinned_memory() -> None:
    y = cupyx.empty_like_pinned(np.zeros((2, 3), np.int32))
    x = cp.arange(6, dtype=np.int32).reshape(2, 3)
    z = cp.asnumpy(x, out=y)
    assert z is y and y.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert isinstance(y.base, PinnedMemoryPointer)
    assert y.base.ptr == y.ctypes.data
    assert cupyx.zeros_pinned(3).tolist() == [0] * 3


def test_set_reads_pinned_memory_when_the_copy_runs(hold: Any) -> None:
    stream = Stream(non_blocking=True)
    source = cupyx.zeros_pinned(4)
    a = cp.ones(4)
    Stream.null.synchronize()
    gate = hold(stream)
    a.set(source, stream=stream)
    source[:] = 5
    gate.open()
    assert a.get(stream=stream).tolist() == [5] * 4
    with hold(stream), stream:
        b = cp.asarray(source)  # kept alive by the stream, not by the caller
        c = cp.asarray(np.arange(1 << 15))
        del source
        assert not stream.done
    with stream:
        assert b.get().tolist() == [5] * 4 and c.get()[-1] == (1 << 15) - 1


@pytest.mark.row(86)
@pytest.mark.parametrize("consumer", ["null", "ptds", "plain"])
@pytest.mark.parametrize("producer", ["null", "ptds", "plain"])
def test_dlpack_orders_the_consumers_stream(producer: str, consumer: str, hold: Any) -> None:
    streams = {"null": Stream.null, "ptds": Stream.ptds, "plain": Stream(non_blocking=True)}
    other = Stream(non_blocking=True) if producer == consumer == "plain" else streams[consumer]
    with streams[producer]:
        a = cp.zeros(4)
        gate = hold(hs.Stream.from_handle(streams[producer].ptr))
        a.fill(6)
        capsule = a.__dlpack__(stream=other.ptr or 1, max_version=(1, 0))
        assert not other.done
        gate.open()
        other.synchronize()

    class Made:
        def __dlpack_device__(self) -> Any:
            return a.__dlpack_device__()

        def __dlpack__(self, **_: Any) -> Any:
            return capsule

    view = hs.from_dlpack(Made())
    assert view.numpy(other).tolist() == [6] * 4 and view.ptr == a.data.ptr


@pytest.mark.row(87)
def test_dlpack_stream_0() -> None:
    a = cp.zeros(4)
    with pytest.warns(UserWarning, match="Stream 0"):
        a.__dlpack__(stream=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        a.__dlpack__(stream=1)
        a.__dlpack__(stream=-1)
    for wrong in (-2, "x"):
        with pytest.raises(ValueError):
            a.__dlpack__(stream=wrong)


@pytest.mark.row(91)
def test_copies_to_the_host_can_be_forbidden() -> None:
    a = cp.zeros(3)
    with cupyx.allow_synchronize(False):
        with pytest.raises(cupyx.DeviceSynchronized):
            a.get()
        with pytest.raises(cupyx.DeviceSynchronized):
            Device().synchronize()
        with cupyx.allow_synchronize(True):
            assert a.get().tolist() == [0] * 3
        with pytest.raises(cupyx.DeviceSynchronized):
            float(a.sum())
    assert a.get().tolist() == [0] * 3
    assert issubclass(cupyx.DeviceSynchronized, RuntimeError)


def test_an_order_is_a_letter() -> None:
    for make in (cp.zeros, cp.empty, cp.ndarray):
        with pytest.raises(TypeError, match="order not understood"):
            make((2, 3), order=np.dtype("float32"))
