"""DLPack both ways: with NumPy, and with producers and consumers written here."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


def name_of(capsule: Any) -> str:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype, function.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return str(function(capsule).decode())


@pytest.mark.needs("host")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (4, 1, 2), (1, 2, 1, 3, 1, 2, 1, 1, 2, 2)])
def test_an_array_and_a_numpy_array_share_memory_both_ways(dtype: str, shape: tuple[int, ...]) -> None:
    values = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
    ours = hs.asarray(values)
    theirs = np.from_dlpack(ours)
    assert theirs.dtype == values.dtype and theirs.shape == shape
    assert theirs.__array_interface__["data"][0] == ours.ptr
    np.testing.assert_array_equal(theirs, values)

    back = hs.from_dlpack(values)
    assert back.ptr == values.__array_interface__["data"][0]
    assert back.dtype == values.dtype and back.shape == shape
    np.testing.assert_array_equal(back.numpy(), values)


@pytest.mark.needs("host")
def test_a_stream_works_on_borrowed_memory_without_blocking_the_host(hold: Hold) -> None:
    theirs = np.zeros(1 << 16)
    ours = hs.from_dlpack(theirs)
    s = hs.Stream()
    gate = hold(s)
    ours.fill(3.0, s)
    s.call(lambda view: view.__iadd__(1.0), ours)
    assert not theirs.any()
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert (theirs == 4.0).all()


@pytest.mark.needs("host")
def test_an_export_waits_for_the_work_that_is_pending_on_the_memory(hold: Hold) -> None:
    ours, other = hs.zeros(4), hs.Stream()
    hs.synchronize()
    s = hs.Stream(non_blocking=True)
    gate = hold(s)
    ours.fill(7.0, s)
    hold(other)  # what other streams do does not matter
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(np.from_dlpack(ours).copy()), daemon=True)
    thread.start()
    thread.join(0.05)
    assert not seen
    gate.open()
    thread.join(LIMIT)
    np.testing.assert_array_equal(seen[0], np.full(4, 7.0))


@pytest.mark.needs("host")
def test_an_export_does_not_wait_for_work_behind_the_use_of_the_memory(hold: Hold) -> None:
    ours, s = hs.zeros(4), hs.Stream(non_blocking=True)
    hs.synchronize()
    ours.fill(7.0, s)
    hold(s)
    np.testing.assert_array_equal(np.from_dlpack(ours), np.full(4, 7.0))


@pytest.mark.needs("host")
def test_memory_in_stream_order_is_shown_after_its_former_owners_work(hold: Hold) -> None:
    s = hs.Stream(non_blocking=True)
    gate = hold(s)
    first = hs.empty(4, stream=s)
    first.fill(1.0, s)
    first._memory.free()
    second = hs.empty(4, stream=s)
    assert second.ptr == first.ptr
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(np.from_dlpack(second)), daemon=True)
    thread.start()
    thread.join(0.05)
    assert not seen
    gate.open()
    thread.join(LIMIT)
    assert seen


def test_between_arrays_of_the_runtime_streams_are_ordered_and_the_host_does_not_wait(hold: Hold) -> None:
    ours, a, b = hs.zeros(4), hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    hs.synchronize()
    gate = hold(a)
    ours.fill(5.0, a)
    same = hs.from_dlpack(ours, stream=b)
    assert same.ptr == ours.ptr and same.device == ours.device
    target = hs.pinned_empty(4)
    same.copy_to(target, b)
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)
    np.testing.assert_array_equal(target, np.full(4, 5.0))


@pytest.mark.parametrize("version", [None, (0, 8)])
def test_a_consumer_from_before_version_1_gets_a_capsule_without_one(version: Any) -> None:
    capsule = hs.zeros(3).__dlpack__(max_version=version)
    assert name_of(capsule) == "dltensor"
    again = hs.from_dlpack(capsule)
    assert again.shape == (3,) and name_of(capsule) == "used_dltensor"


@pytest.mark.parametrize("version", [(1, 0), (1, 3), (2, 0)])
def test_a_consumer_of_version_1_gets_a_versioned_capsule(version: tuple[int, int]) -> None:
    capsule = hs.zeros(3).__dlpack__(max_version=version)
    assert name_of(capsule) == "dltensor_versioned"
    hs.from_dlpack(capsule)
    assert name_of(capsule) == "used_dltensor_versioned"


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_a_capsule_is_consumed_once(version: Any) -> None:
    capsule = hs.zeros(3).__dlpack__(max_version=version)
    first = hs.from_dlpack(capsule)
    with pytest.raises(BufferError, match="consumed already") as caught:
        hs.from_dlpack(capsule)
    assert isinstance(caught.value, hs.InvalidValueError)
    np.testing.assert_array_equal(first.numpy(), np.zeros(3))


class Old:
    """A producer from before version 1.0: no arguments but the stream."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, *, stream: Any = None) -> Any:
        assert stream is None
        return self.array.__dlpack__()


@pytest.mark.needs("host")
def test_a_producer_from_before_version_1_is_understood() -> None:
    theirs = np.arange(4)
    ours = hs.from_dlpack(Old(theirs))
    assert ours.ptr == theirs.__array_interface__["data"][0]


@pytest.mark.needs("host")
def test_what_is_read_only_stays_so() -> None:
    theirs = np.arange(4.0)
    theirs.flags.writeable = False
    ours = hs.from_dlpack(theirs)
    assert ours.readonly and ours[1:].readonly and not hs.zeros(3).readonly
    for write in (
        lambda: ours.fill(1.0),
        lambda: ours.copy_from(np.zeros(4)),
        lambda: hs.zeros(4).copy_to(ours),
        lambda: hs.Stream().call(print, writes=[ours]),
    ):
        with pytest.raises(hs.InvalidValueError, match="read-only"):
            write()
    assert not np.from_dlpack(ours).flags.writeable
    assert not np.asarray(ours).flags.writeable
    with pytest.raises(BufferError, match=r"max_version=\(1, 0\)"):
        ours.__dlpack__()
    s, seen = hs.Stream(), []
    s.call(lambda view: seen.append(view.flags.writeable), ours)
    s.synchronize(timeout=LIMIT)
    assert seen == [False]
    np.testing.assert_array_equal(theirs, np.arange(4.0))


@pytest.mark.needs("host")
def test_a_copy_shares_no_memory_and_has_the_flag_of_a_copy() -> None:
    ours = hs.asarray(np.arange(4.0))
    theirs = np.from_dlpack(ours, copy=True)
    ours.fill(0.0)
    hs.synchronize()
    np.testing.assert_array_equal(theirs, np.arange(4.0))

    source = np.arange(4.0)
    taken = hs.from_dlpack(source, copy=True)
    source[:] = 0
    np.testing.assert_array_equal(taken.numpy(), np.arange(4.0))


@pytest.mark.needs("host")
def test_what_is_not_in_order_is_copied_unless_that_is_forbidden() -> None:
    source = np.arange(12).reshape(3, 4)
    for strange in (source.T, source[:, ::2], source[::-1]):
        ours = hs.from_dlpack(strange)
        np.testing.assert_array_equal(ours.numpy(), strange)
        assert not np.shares_memory(np.asarray(ours), source)
        with pytest.raises(BufferError, match="not in C order"):
            hs.from_dlpack(strange, copy=False)
    column = source[:, :1].T  # strides of lengths 1 mean nothing, but these rows are apart
    np.testing.assert_array_equal(hs.from_dlpack(column).numpy(), column)


@pytest.mark.needs("host")
def test_a_round_trip_names_the_same_memory_and_device() -> None:
    ours = hs.asarray(np.arange(4.0), device=1)
    back = hs.from_dlpack(np.from_dlpack(ours))
    assert back.ptr == ours.ptr and back.device == hs.Device(1)
    moved = hs.from_dlpack(np.from_dlpack(ours), device=0)
    assert moved.ptr != ours.ptr and moved.device == hs.Device(0)
    np.testing.assert_array_equal(moved.numpy(), np.arange(4.0))
    with pytest.raises(BufferError, match="another device"):
        hs.from_dlpack(ours, device=0, copy=False)


@pytest.mark.needs("host")
def test_an_empty_tensor_can_be_exported_and_imported() -> None:
    assert np.from_dlpack(hs.empty((0, 3), "i4")).shape == (0, 3)
    ours = hs.from_dlpack(np.empty((2, 0), "f4"))
    assert ours.shape == (2, 0) and ours.dtype == np.float32


@pytest.mark.needs("host")
@pytest.mark.parametrize("stream", [-1, 0, 1, 2, 64, "default"])
def test_memory_of_the_host_takes_no_stream_of_others(stream: Any) -> None:
    for copy in (None, True):
        with pytest.raises(BufferError, match="stream=None"):
            hs.zeros(3).__dlpack__(stream=stream, copy=copy)


@pytest.mark.needs("host")
def test_the_device_is_the_cpu_and_no_other_is_possible() -> None:
    for ours in (hs.zeros(3, device=0), hs.zeros(3, device=1)):
        assert ours.__dlpack_device__() == (1, 0)
        ours.__dlpack__(dl_device=(1, 0), copy=False)
        with pytest.raises(BufferError, match="device"):
            ours.__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("dtype", ["S3", "M8[s]", ">i4", [("x", "i4"), ("y", "f4")]])
def test_an_element_type_that_dlpack_lacks_is_refused(dtype: Any) -> None:
    with pytest.raises(BufferError, match="no element type"):
        hs.empty(3, dtype).__dlpack__()


class Unnumbered(Old):
    """A producer of the CPU that gives its device no number, as paddle's tensors."""

    def __dlpack_device__(self) -> Any:
        return 1, None


@pytest.mark.needs("host")
def test_a_device_without_a_number_is_number_0() -> None:
    theirs = np.arange(4)
    assert hs.from_dlpack(Unnumbered(theirs)).ptr == theirs.__array_interface__["data"][0]


class Elsewhere:
    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 3

    def __dlpack__(self, **asked: Any) -> Any:
        raise AssertionError("asked for a tensor that cannot be used")


@pytest.mark.needs("host")
@pytest.mark.parametrize(("kind", "words"), [(2, "a CUDA device"), (8, "Metal"), (99, "type 99")])
def test_a_tensor_on_another_kind_of_device_is_refused_before_its_capsule_is_requested(kind: int, words: str) -> None:
    with pytest.raises(BufferError, match=words):
        hs.from_dlpack(Elsewhere(kind))


@pytest.mark.parametrize("wrong", [None, 3, [1, 2], object()])
def test_what_has_nothing_to_do_with_dlpack_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="__dlpack__"):
        hs.from_dlpack(wrong)


def test_a_capsule_of_something_else_is_refused() -> None:
    import datetime

    with pytest.raises(BufferError, match="none of DLPack"):
        hs.from_dlpack(datetime.datetime_CAPI)
