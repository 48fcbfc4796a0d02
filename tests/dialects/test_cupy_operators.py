"""Operators of cupy.ndarray: in place they change the memory, on the current stream."""

from __future__ import annotations

import operator
from typing import Any

import halstream.cupy as cp
import numpy as np
import pytest
from halstream.cupy.cuda import Stream

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]

IN_PLACE = {
    name: getattr(operator, name)
    for name in ("iadd", "isub", "imul", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift")
}


def scale(v: Any) -> None:
    v *= 2


def test_an_in_place_operator_changes_the_array_of_the_caller() -> None:
    a = cp.arange(4)
    same, address = a, a.data.ptr
    scale(a)
    assert same is a and a.data.ptr == address
    assert a.get().tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_operators_compute_what_numpy_computes(name: str) -> None:
    host = np.array([3, 5, 8, 13])
    a = cp.array(host)
    before = a
    a = IN_PLACE[name](a, 2)
    host = IN_PLACE[name](host, 2)
    assert a is before and a.dtype == host.dtype
    assert a.get().tolist() == host.tolist()
    other = cp.array([1, 2, 1, 2])
    a, host = IN_PLACE[name](a, other), IN_PLACE[name](host, np.array([1, 2, 1, 2]))
    assert a is before and a.get().tolist() == host.tolist()


def test_in_place_division_of_floats() -> None:
    a = cp.ones(3, np.float32)
    before = a
    a /= np.float64(4)
    assert a is before and a.dtype == np.float32 and a.get().tolist() == [0.25] * 3


@pytest.mark.parametrize(
    ("dtype", "name", "other", "made"),
    [
        (np.int32, "itruediv", 2, "float64"),
        (np.int64, "imul", 2.5, "float64"),
        (np.uint8, "iadd", np.int16(-1), "int16"),
        (np.float32, "imul", 1j, "complex64"),
    ],
)
def test_a_result_that_does_not_cast_leaves_the_array_as_it_was(dtype: Any, name: str, other: Any, made: str) -> None:
    a = cp.ones(3, dtype)
    what = f"Cannot cast output operand from dtype\\('{made}'\\) to dtype\\('{np.dtype(dtype)}'\\)"
    with pytest.raises(TypeError, match=f"^{what} according to the rule 'same_kind'$"):
        getattr(operator, name)(a, other)
    assert a.dtype == dtype and a.get().tolist() == [1] * 3


def test_an_in_place_operator_does_not_change_the_shape() -> None:
    a = cp.ones(3)
    with pytest.raises(ValueError, match=r"^Out shape is mismatched$"):
        a += cp.ones((2, 3))
    a += cp.ones(1)  # broadcast to the target is possible
    assert a.get().tolist() == [2] * 3


def test_in_place_work_waits_for_the_current_stream(hold: Any) -> None:
    stream = Stream(non_blocking=True)
    with stream:
        a = cp.ones(4)
        stream.synchronize()
        gate = hold(stream)
        a += 1
        assert not stream.done
        gate.open()
        assert a.get().tolist() == [2] * 4


def test_views_are_changed_in_place() -> None:
    a = cp.arange(5)
    a[1:3] += 10
    part = a[3:]
    part *= 2
    assert a.get().tolist() == [0, 11, 12, 6, 8]
    a[1:] += a[:-1]  # the operands overlap: the old values count
    assert a.get().tolist() == [0, 11, 23, 18, 14]


def test_a_matrix_product_in_place_makes_a_new_array() -> None:
    m = cp.ones((2, 2))
    before = m
    m @= m
    assert m is not before and m.get().tolist() == [[2, 2], [2, 2]]
    assert before.get().tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("other", [np.ones(3), [1, 2, 3], "1", object()])
def test_operands_of_the_host_are_refused(other: Any) -> None:
    a = cp.ones(3)
    text = f"^Unsupported type {type(other)}$"
    for name in ("add", "iadd", "mul", "pow"):
        with pytest.raises(TypeError, match=text):
            getattr(operator, name)(a, other)
    for name in ("add", "mul", "pow"):
        with pytest.raises(TypeError, match=text):
            getattr(operator, name)(other, a)


def test_the_other_operators() -> None:
    host = np.array([-3, 0, 5])
    a = cp.array(host)
    for name in ("neg", "pos", "abs", "invert"):
        assert getattr(operator, name)(a).get().tolist() == getattr(operator, name)(host).tolist()
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "floordiv", "mod", "and_", "or_", "xor"):
        function = getattr(operator, name)
        assert function(a, 3).get().tolist() == function(host, 3).tolist()
    assert (7 // cp.array([2, 3])).get().tolist() == [3, 2]
