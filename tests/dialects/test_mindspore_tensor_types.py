"""mindspore: how tensors are made, which types results have, and how they are printed."""

from __future__ import annotations

import importlib
from typing import Any

import halstream as hs
import halstream.mindspore as ms
import numpy as np
import pytest
from halstream.mindspore import Tensor, ops
from mindspore_help import OnTarget, on_target

__all__ = ["on_target"]

pytestmark = [pytest.mark.dialect("mindspore"), pytest.mark.usefixtures("backend")]


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (2.0, "Float32", ()),
        (3, "Int64", ()),
        (True, "Bool", ()),
        ([1.5, 2], "Float32", (2,)),
        (((1, 2), (3, 4)), "Int64", (2, 2)),
        ([True, False], "Bool", (2,)),
        (1j, "Complex64", ()),
        (np.ones(2), "Float64", (2,)),
        (np.ones((2, 1), np.uint8), "UInt8", (2, 1)),
        (np.float16(1), "Float16", ()),
        ([], "Float32", (0,)),
    ],
)
def test_types_of_new_tensors(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    for t in (Tensor(data), ms.tensor(data), Tensor(Tensor(data)), Tensor(input_data=data, dtype=None)):
        assert (str(t.dtype), t.shape) == (dtype, shape)
        assert type(t.shape) is tuple


def test_a_requested_type_is_used() -> None:
    for source in (np.ones((2, 2)), [[1, 1], [1, 1]], Tensor(np.ones((2, 2)))):
        t = Tensor(source, ms.float32)
        assert t.dtype is ms.float32 is ms.dtype.float32
        assert (t.size, t.ndim, t.itemsize, t.nbytes) == (4, 2, 4, 16)
    on_device = ops.ones(2)
    again = ms.tensor(on_device, ms.int32)
    on_device += 1
    assert again.tolist() == [1, 1]
    assert on_device.astype(ms.bool_).tolist() == [True, True]
    assert on_device.astype(ms.float32, copy=False) is on_device


@pytest.mark.parametrize("wrong", [None, "text", object(), {1: 2}, ["a"], [[1], [1, 2]], np.array(["a"]), {1}])
def test_what_no_tensor_can_hold(wrong: Any) -> None:
    with pytest.raises(TypeError):
        Tensor(wrong)


def test_types_that_are_no_types() -> None:
    for wrong in (np.float32, "float32", 1):
        with pytest.raises(TypeError, match="dtype"):
            Tensor(1.0, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="BFloat16"):
        Tensor(1.0, ms.bfloat16)
    with pytest.raises(hs.NotSupportedError, match="initializers"):
        Tensor(shape=(2,), dtype=ms.float32, init="ones")


def test_names_of_types() -> None:
    names = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bool_ complex64 complex128"
    shown = "Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64 Bool Complex64 Complex128"
    assert [str(getattr(ms, name)) for name in names.split()] == shown.split()
    assert str(ms.bfloat16) == "BFloat16"
    assert ms.half is ms.float16
    assert repr(ms.float32) == "mindspore.float32"
    assert ms.dtype_to_nptype(ms.int16) is np.int16


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.full((1, 2), 4, np.float32), "[[4. 4.]]"),
        (np.array([0.62, 0.28], np.float32), "[0.62 0.28]"),
        (np.array([1.5, -2.25], np.float32), "[ 1.5  -2.25]"),
        (np.array([1234.5, 1], np.float32), "[1.2345e+03 1.0000e+00]"),
        (np.array([1 / 3, 2 / 3], np.float32), "[0.33333334 0.6666667 ]"),
        (np.array([True, False]), "[ True False]"),
        (np.array([1, 20, 300]), "[  1  20 300]"),
        (np.array([np.nan, 1, np.inf], np.float32), "[nan  1. inf]"),
        (np.array([], np.float32), "[]"),
        (np.float32(2), "2.0"),
    ],
)
def test_printing(value: Any, text: str) -> None:
    assert str(Tensor(value)) == text
    assert str(Tensor(Tensor(value).astype(Tensor(value).dtype))) == text


def test_repr() -> None:
    assert repr(ops.ones((2, 2))) == (
        "Tensor(shape=[2, 2], dtype=Float32, value=\n"
        "[[ 1.00000000e+00,  1.00000000e+00],\n"
        " [ 1.00000000e+00,  1.00000000e+00]])"
    )
    assert repr(Tensor([2.0])) == "Tensor(shape=[1], dtype=Float32, value= [ 2.00000000e+00])"
    assert repr(Tensor(2.0)) == "Tensor(shape=[], dtype=Float32, value= 2)"
    assert repr(Tensor([1, 2])) == "Tensor(shape=[2], dtype=Int64, value= [1, 2])"


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (ms.float32, 2, "Float32"),
        (ms.float16, 2.5, "Float16"),
        (ms.int8, 2, "Int8"),
        (ms.int32, 2.5, "Float32"),
        (ms.bool_, 2, "Int64"),
        (ms.float64, 1j, "Complex128"),
        (ms.int32, ms.float32, "Float32"),
        (ms.int64, ms.float16, "Float16"),
        (ms.float32, ms.float64, "Float64"),
        (ms.uint8, ms.int8, "Int16"),
        (ms.bool_, ms.int32, "Int32"),
        (ms.float64, ms.complex64, "Complex128"),
    ],
)
def test_types_of_sums(a: Any, b: Any, result: str) -> None:
    x = ops.ones(2, a)
    y = ops.ones(2, b) if isinstance(b, type(a)) else b
    expected = x.asnumpy().astype(complex) + (y.asnumpy() if isinstance(y, Tensor) else y)
    for total in (x + y, y + x):
        assert str(total.dtype) == result
        assert np.allclose(total.asnumpy(), expected)


def test_quotients_sines_sums_and_comparisons() -> None:
    n = Tensor([1, 2, 4])
    assert (str((n / 2).dtype), (n / 2).tolist()) == ("Float32", [0.5, 1, 2])
    assert (8 / n).tolist() == [8, 4, 2]
    assert (10 - n).tolist() == [9, 8, 6]
    assert str(ops.sin(n).dtype) == "Float32"
    assert (ops.sum(n).item(), str(ops.sum(n).dtype)) == (7, "Int64")
    m = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert ops.sum(m, 0).tolist() == [4, 6]
    assert ops.sum(m, (0, -1), True).tolist() == [[10]]
    assert str(ops.sum(m, dtype=ms.float64).dtype) == "Float64"
    assert (n == 2).tolist() == [False, True, False]
    assert (n != Tensor([1, 2, 3])).tolist() == [False, False, True]
    assert (n == "2") is False
    assert (n != None) is True  # noqa: E711
    assert {n: 1}[n] == 1
    assert Tensor([3], ms.int8).item() == 3
    assert (Tensor([100], ms.int8) + 100).tolist() == [-56]


def test_shapes_that_do_not_fit() -> None:
    a, b = ops.ones((2, 3)), ops.ones((2, 2))
    for wrong in (lambda: a + b, lambda: a == b, lambda: a @ Tensor(1.0)):
        with pytest.raises(ValueError, match=r"shape|dimension"):
            wrong()
    with pytest.raises(RuntimeError, match=r"shape1\[-1\] must be equal to shape2\[-2\], but got 3 and 2"):
        ops.matmul(a, b)
    with pytest.raises(ValueError, match="axis"):
        ops.sum(a, 2)
    for wrong in (lambda: a + "x", lambda: a @ 2, lambda: a @ None, lambda: ops.add(a, "x"), lambda: ops.abs(1)):
        with pytest.raises(TypeError):
            wrong()
    assert ops.matmul(ops.ones((5, 1, 2, 3)), ops.ones((4, 3, 6))).shape == (5, 4, 2, 6)
    assert ops.matmul(ops.ones(3), ops.ones(3)).item() == 3


@pytest.mark.parametrize("name", ["CPU", "GPU"])
def test_operators_with_assignment_make_a_new_tensor_on_cpu_and_gpu(name: str, on_target: OnTarget) -> None:
    on_target(name)
    a = same = Tensor([4.0, 6.0])
    a += 2
    a -= 1
    a *= Tensor([2.0, 3.0])
    a /= 4
    a //= 1
    a **= 2
    assert same.tolist() == [4, 6]
    assert a.tolist() == [4, 25]
    n = same = Tensor([3, 4], ms.int32)
    n /= 2
    assert (str(n.dtype), n.tolist(), same.tolist()) == ("Float32", [1.5, 2], [3, 4])
    n = Tensor([3, 4], ms.int32)
    n += 0.5
    assert (str(n.dtype), n.tolist()) == ("Float32", [3.5, 4.5])


def test_operators_with_assignment_change_the_tensor_on_ascend(on_target: OnTarget) -> None:
    on_target("Ascend")
    a = same = Tensor([1.0, 2.0])
    a += 2
    a -= 1
    a *= Tensor([2.0, 3.0])
    a /= 4
    assert a is same
    assert a.tolist() == [1, 2.25]
    n = Tensor([1, 2])
    with pytest.raises(TypeError, match="in place"):
        n += 0.5
    with pytest.raises(ValueError, match="fit"):
        a += ops.ones((2, 2))
    assert n.tolist() == [1, 2]


def test_numpy_and_tensors_mix() -> None:
    t = Tensor([1.0, 2.0])
    mixed = t + np.ones(2, np.float32)
    assert isinstance(mixed, Tensor)
    assert mixed.tolist() == [2, 3]
    for made in (np.ones(2, np.float32) + t, np.float32(1) + t):
        assert isinstance(made, np.ndarray), "NumPy's operator makes an array of its own"
        assert made.tolist() == [2, 3]
    assert np.allclose(t, [1, 2])
    assert np.asarray(t, dtype=np.float64).dtype == np.float64
    assert float(Tensor(2)) == 2.0
    assert int(Tensor([3.0])) == 3
    assert bool(Tensor([0])) is False
    with pytest.raises(ValueError, match="ambiguous"):
        bool(t)
    with pytest.raises(ValueError):
        t.item()
    assert t.item(1) == 2.0
    assert len(t) == 2
    with pytest.raises(TypeError):
        len(Tensor(1))


def test_tensors_without_elements() -> None:
    none = ops.zeros((0, 3))
    assert (none + 1).shape == (0, 3)
    assert ops.matmul(ops.ones((2, 0)), none).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert str(none) == "[]"


def test_import_paths() -> None:
    assert importlib.import_module("halstream.mindspore.common.tensor").Tensor is Tensor
    assert importlib.import_module("halstream.mindspore.common.dtype") is ms.dtype
    assert importlib.import_module("halstream.mindspore.ops.operations").Add is ops.operations.Add
    assert ms.common.Tensor is Tensor
    assert ms.empty_cache is ms.runtime.empty_cache
