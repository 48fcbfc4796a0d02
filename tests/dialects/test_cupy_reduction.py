"""cupy's ReductionKernel: axes, types, expressions, outputs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import cupy
from halstream.cupy import ReductionKernel, cuda
from halstream.cupy.cuda.compiler import CompileException
from test_cupy_raw import Foreign

# The look-alike of the driver executes no programs.
pytestmark = [pytest.mark.usefixtures("backend", "nvrtc"), pytest.mark.needs("kernels", "schedules")]

# The position of the greatest element, the first of equal ones.
ARGMAX = r"""
struct best {
    double value; int at;
    __device__ best(double value = -CUDART_INF, int at = -1) : value(value), at(at) {}
};
__device__ best better(best a, best b) {
    if (b.value == a.value) return a.at >= 0 && (a.at < b.at || b.at < 0) ? a : b;
    return b.value > a.value ? b : a;
}"""


@pytest.fixture
def norm() -> ReductionKernel:
    return ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (0, 2), (2, 1), (0, 1, 2), ()], ids=str)
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 700, 2), (300, 1, 3)], ids=str)
def test_arrays_are_reduced_along_axes(norm: ReductionKernel, shape: Any, axis: Any, keepdims: bool) -> None:
    x = np.random.default_rng(0).random(shape)
    y = norm(cupy.array(x), axis=axis, keepdims=keepdims)
    want = np.sqrt((x * x).sum(axis=axis, keepdims=keepdims))
    assert y.shape == want.shape
    np.testing.assert_allclose(y.get(), want, 1e-12)


@pytest.mark.parametrize("code", "?bhilqBHILQefdFD")
def test_every_type_can_be_reduced(code: str) -> None:
    x = np.array([3, 1, 2, 5, 0]).astype(code)
    y = ReductionKernel("T x", "U y", "U(x)", "a + b", "y = a", "0")(cupy.array(x), cupy.zeros((), "D"))
    assert y.item() == x.sum(dtype="D")


def test_a_kernel_runs_on_the_current_stream_or_on_one_that_is_named(
    norm: ReductionKernel, hold: Callable[[Any], Any]
) -> None:
    x = cupy.array([3.0, 4.0])
    norm(x)  # compiled now
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    held = hold(s)
    with s:
        y = norm(x)
    z = norm(x, stream=s)
    assert not s.done
    held.open()
    assert (y.get(s), z.get(s)) == (5, 5)


def test_inputs_are_broadcast_and_may_be_numbers() -> None:
    dot = ReductionKernel("T x, T y, float32 c", "T z", "x * y + c", "a + b", "z = a", "0", "dot")
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3.0)
    assert dot(cupy.array(x), cupy.array(y), 0.5, axis=1).tolist() == [(r * y + 0.5).sum() for r in x]
    assert dot(cupy.array(x), 2, 0).item() == 2 * x.sum()


def test_arrays_that_are_not_contiguous_and_raw_ones() -> None:
    x = cupy.arange(12, dtype="f").reshape(4, 3)
    total = ReductionKernel("T x", "T y", "x", "a + b", "y = a", "0")
    assert total(Foreign(x), axis=0).tolist() == [12, 14, 16]
    assert total(Foreign(x), axis=1).tolist() == [30, 12]
    weighed = ReductionKernel("T x, raw T w", "T y", "x * w[_J]", "a + b", "y = a", "0")
    assert weighed(x, cupy.array([1, 10, 100, 1000], "f"), axis=0).tolist() == [9630, 10741, 11852]


@pytest.mark.parametrize("reduce_dims", [True, False])
def test_a_reduction_of_structures_with_a_type_of_its_own(reduce_dims: bool) -> None:
    kernel = ReductionKernel(
        "T x",
        "int32 y",
        "best(x, _J)",
        "better(a, b)",
        "y = a.at",
        None,
        "argmax",
        reduce_type="best",
        reduce_dims=reduce_dims,
        preamble=ARGMAX,
    )
    assert (kernel.identity, kernel.reduce_type) == ("", "best")
    x = np.random.default_rng(0).integers(0, 50, (40, 70, 2)).astype("d")
    for axis in (None, 0, 1, 2, (1, 2)):
        want = x.argmax(axis) if not isinstance(axis, tuple) else x.reshape(40, -1).argmax(1)
        np.testing.assert_array_equal(kernel(cupy.array(x), axis=axis).get(), want)


def test_several_outputs_and_given_ones(norm: ReductionKernel) -> None:
    x, out, other = cupy.array([[3.0, 4.0], [6.0, 8.0]]), cupy.zeros(2), cupy.zeros(2)
    assert norm(x, axis=1, out=out) is out and out.tolist() == [5, 10]
    assert norm(x, other, axis=1) is other and other.tolist() == [5, 10]
    both = ReductionKernel("T x", "T y, U z", "x", "a + b", "y = a; z = a * 2", "0", options=("-DUNUSED",))
    twice = cupy.zeros((), "i")
    total = both(x, cupy.zeros(()), twice)
    assert (total.item(), twice.item()) == (21, 42)
    assert (both.nin, both.nout, both.nargs, both.options) == (1, 2, 3, ("-DUNUSED",))


def test_arrays_without_elements(norm: ReductionKernel) -> None:
    none = cupy.zeros((0, 3))
    assert norm(none).item() == 0
    assert norm(none, axis=0).tolist() == [0, 0, 0]
    assert norm(none, axis=1).shape == (0,)
    greatest = ReductionKernel("T x", "T y", "x", "max(a, b)", "y = a", None, "greatest")
    with pytest.raises(ValueError, match="zero-size array to reduction operation greatest which has no identity"):
        greatest(none)
    assert greatest(none, axis=1).shape == (0,)


def test_the_source_can_be_read(norm: ReductionKernel) -> None:
    with pytest.warns(UserWarning, match="No codes are cached"):
        assert norm.cached_codes == {}
    norm(cupy.ones(2, "f"))
    assert list(norm.cached_codes) == [(np.dtype("f"),) * 2]
    assert "y = sqrt(a)" in norm.cached_code and norm.name == norm.__name__ == "l2norm"
    norm(cupy.ones(2, "d"))
    with pytest.warns(UserWarning, match="could not be inferred"):
        assert norm.cached_code


def test_kernels_and_calls_that_cannot_be(norm: ReductionKernel) -> None:
    x = cupy.ones((2, 3))
    two = ReductionKernel("T x", "T y, T z", "x", "a + b", "y = z = a", "0")
    calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: ReductionKernel("T x", "T y", "", "", "", "0", "9name"), ValueError, "Invalid kernel name"),
        (lambda: ReductionKernel("T", "T y", "", "", "", "0"), Exception, "Syntax error"),
        (lambda: norm(), TypeError, "Wrong number of arguments for l2norm"),
        (lambda: norm(x, x, x), TypeError, "Wrong number of arguments for l2norm"),
        (lambda: norm(x, no_such=1), TypeError, "Wrong arguments {'no_such': 1}"),
        (lambda: norm(x, x, out=x), ValueError, "cannot specify 'out' as both"),
        (lambda: two(x, out=x), NotImplementedError, "one output"),
        (lambda: norm(1), ValueError, "Loop size is undecided"),
        (lambda: norm("text"), TypeError, "Unsupported type <class 'str'>"),
        (lambda: norm(x, axis=2), np.exceptions.AxisError, "axis 2 is out of bounds for array of dimension 2"),
        (lambda: norm(x, axis=(0, -2)), ValueError, "duplicate value in 'axis'"),
        (lambda: norm(x, axis=0, out=cupy.zeros(2)), ValueError, "Out shape is mismatched"),
        (lambda: norm(x, out=cupy.zeros((), "f")), TypeError, "Type is mismatched. x float64 float32 T"),
        (lambda: norm(x, out=1), TypeError, "Output arguments must be cupy.ndarray"),
    ]
    for call, kind, words in calls:
        with pytest.raises(kind, match=words):
            call()
    wrong = ReductionKernel("T x", "T y", "no_such_name", "a + b", "y = a", "0", "wrong")
    with pytest.raises(CompileException, match='identifier "no_such_name" is undefined'):
        wrong(x)
    assert norm(x).item() == np.sqrt(6)


@pytest.mark.needs("graphs")
def test_a_captured_kernel_runs_at_each_launch(norm: ReductionKernel) -> None:
    x, y = cupy.array([3.0, 4.0]), cupy.zeros(())
    norm(x, y)
    s = cuda.Stream(non_blocking=True)
    cuda.Device().synchronize()
    with s:
        s.begin_capture()
        norm(x, y)
        graph = s.end_capture()
        x.fill(2)
        graph.launch()
        assert y.get(s) == np.sqrt(8)


def test_V45_a_reduction_beside_a_write_of_its_input_is_reported(norm: ReductionKernel) -> None:
    x, y = cupy.ones((2, 8), "f"), cupy.zeros((), "f")
    norm(x[0], y)
    for row in (0, 1):
        cuda.Device().synchronize()
        with hs.sanitize(on="collect") as report:
            with cuda.Stream(non_blocking=True):
                norm(x[0], y)
            with cuda.Stream(non_blocking=True):
                x[row].fill(2)
            cuda.Device().synchronize()
        texts = [finding.text for finding in report]
        assert len(texts) == (row == 0), texts
        assert all("l2norm" in text and "32 bytes" in text for text in texts), texts
