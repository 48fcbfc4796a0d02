"""What an array is copied from: NumPy's arrays, buffers and other arrays, and what is refused."""

from __future__ import annotations

from typing import Any

import halstream as hs
import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("backend")

SIZE = 64


def pinned(dtype: Any = np.uint8, size: int = SIZE) -> Any:
    array = hs.pinned_empty(size, dtype)
    array[:] = np.arange(size).astype(dtype)
    return array


@pytest.mark.parametrize("dtype", ["u1", "i4", "i8", "f4", "f8", "c16", "?"])
def test_M3_a_copy_of_a_numpy_array_has_its_bytes(dtype: str) -> None:
    s, source = hs.Stream(), pinned(dtype)
    target = hs.empty(SIZE, dtype)
    target.copy_from(source, s)
    assert (target.numpy(s) == source).all()


def test_M3_pageable_memory_may_change_after_the_copy() -> None:
    s, source = hs.Stream(), np.arange(SIZE, dtype=np.uint8)
    target, gate = hs.empty(SIZE, np.uint8), hs.testing.Gate(s)
    target.copy_from(source, s)
    source[:] = 255
    gate.open()
    assert (target.numpy(s) == np.arange(SIZE)).all()


def test_M3_arrays_in_one_piece_and_in_order_of_fortran() -> None:
    s, source = hs.Stream(), np.asfortranarray(np.arange(12, dtype=np.int32).reshape(3, 4))
    target = hs.empty((3, 4), np.int32)
    target.copy_from(source, s)
    assert (target.numpy(s).ravel() == source.ravel(order="K")).all()


class Subclass(np.ndarray):
    """A program's array, whose attributes may be its own."""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(np.arange(SIZE, dtype="u1").view(Subclass), id="subclass"),
        pytest.param(bytearray(range(SIZE)), id="buffer"),
        pytest.param(memoryview(bytes(range(SIZE))), id="memoryview"),
    ],
)
def test_M3_other_sources_are_copied(source: Any) -> None:
    s, target = hs.Stream(), hs.empty(SIZE, np.uint8)
    target.copy_from(source, s)
    assert (target.numpy(s) == np.arange(SIZE)).all()


def test_M3_a_copy_is_on_the_current_stream_or_from_an_array() -> None:
    s, target = hs.Stream(), hs.empty(SIZE, np.uint8)
    with s:
        target.copy_from(pinned())
    other = hs.empty(SIZE, np.uint8)
    other.copy_from(target, s)
    assert (other.numpy(s) == np.arange(SIZE)).all()


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param(np.zeros(SIZE, "i1"), "dtype int8", id="type"),
        pytest.param(np.zeros(SIZE // 4, "i4"), "dtype int32", id="as many bytes of another type"),
        pytest.param(np.zeros(SIZE + 1, "u1"), "65 bytes", id="longer"),
        pytest.param(np.zeros(SIZE - 1, "u1"), "63 bytes", id="shorter"),
        pytest.param(np.zeros(2 * SIZE, "u1")[::2], "one piece", id="strides"),
    ],
)
def test_M5_a_source_that_does_not_fit_is_an_error(source: Any, text: str) -> None:
    target = hs.empty(SIZE, np.uint8)
    with pytest.raises(hs.InvalidValueError, match=text):
        target.copy_from(source, hs.Stream())


def test_M5_numbers_in_the_other_order_of_bytes_are_an_error() -> None:
    target, s = hs.empty(SIZE, np.int32), hs.Stream()
    with pytest.raises(hs.InvalidValueError, match="dtype"):
        target.copy_from(np.zeros(SIZE, np.dtype(np.int32).newbyteorder()), s)
    swapped = hs.empty(SIZE, np.dtype(np.int32).newbyteorder())
    with pytest.raises(hs.InvalidValueError, match="dtype"):
        swapped.copy_from(np.zeros(SIZE, np.int32), s)


def test_M5_a_shape_or_a_type_that_was_assigned_counts() -> None:
    target, s = hs.empty(SIZE, np.uint8), hs.Stream()
    target.copy_from(pinned(), s)
    target.shape = (SIZE // 2,)
    with pytest.raises(hs.InvalidValueError, match="64 bytes"):
        target.copy_from(pinned(), s)
    target.copy_from(pinned(size=SIZE // 2), s)
    target.dtype = np.dtype(np.int8)
    with pytest.raises(hs.InvalidValueError, match="dtype"):
        target.copy_from(pinned(size=SIZE // 2), s)


def test_M5_a_copy_to_memory_that_was_freed_is_an_error() -> None:
    target, s = hs.empty(SIZE, np.uint8), hs.Stream()
    target._memory.free()
    with pytest.raises(hs.InvalidValueError):
        target.copy_from(pinned(), s)
    s.close()
    with pytest.raises(hs.ClosedError):
        hs.empty(SIZE, np.uint8).copy_from(pinned(), s)
    with pytest.raises(TypeError):
        hs.empty(SIZE, np.uint8).copy_from(pinned(), object())  # type: ignore[arg-type]
