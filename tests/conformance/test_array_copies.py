"""Copies of arrays: memory of their own with the same contents, dtype and shape."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest

Hold = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("backend")


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


copying = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])


@copying
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (0, 3)])
@pytest.mark.parametrize("dtype", ["u1", "i2", "f8", "c16", [("x", "i4"), ("y", "f8")]])
def test_a_copy_has_the_same_contents_dtype_and_shape(
    copied: Callable[[Any], Any], shape: tuple[int, ...], dtype: Any
) -> None:
    source = np.zeros(shape, np.uint8)
    source[...] = np.arange(source.size).reshape(shape)
    array = hs.asarray(source.astype(dtype))
    again = copied(array)
    assert type(again) is hs.Array
    assert (again.shape, again.dtype) == (array.shape, array.dtype)
    assert again.ptr != array.ptr
    assert (again.numpy() == array.numpy()).all()


@copying
def test_a_copy_shares_no_memory(copied: Callable[[Any], Any]) -> None:
    array = hs.zeros(4)
    again = copied(array)
    again.fill(1.0)
    assert array.numpy().tolist() == [0.0] * 4
    del again
    for value in range(2, 6):  # memory that was given back is given out again
        other = hs.empty(4)
        other.fill(float(value))
        assert array.numpy().tolist() == [0.0] * 4


@copying
def test_a_copy_of_a_view_is_of_the_view_alone(copied: Callable[[Any], Any]) -> None:
    rows = hs.asarray(np.arange(12.0).reshape(4, 3))[1:3]
    again = copied(rows)
    assert again.numpy().tolist() == [[3.0, 4.0, 5.0], [6.0, 7.0, 8.0]]
    assert again._memory.nbytes == again.nbytes


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_made_after_the_work_pending_on_the_array(copied: Callable[[Any], Any], hold: Hold) -> None:
    array, stream = hs.zeros(4), hs.Stream()
    hs.synchronize()
    held = hold(stream)
    array.fill(7.0, stream)
    again = copied(array)  # enqueued, not waited for
    assert not hs.current_stream().query()
    held.open()
    assert again.numpy().tolist() == [7.0] * 4


@copying
def test_a_copy_is_on_a_device(copied: Callable[[Any], Any]) -> None:
    array = hs.zeros(2, device=1)
    again = copied(array)
    # A pickle names no device, which the process that reads it may not have.
    assert again.device == (hs.current_device() if copied is pickled else array.device)
    assert again.numpy().tolist() == [0.0, 0.0]


def test_arrays_in_a_structure_stay_shared_in_its_deep_copy() -> None:
    array = hs.zeros(2)
    first, second = copy.deepcopy([array, array])
    assert first is second and first.ptr != array.ptr
