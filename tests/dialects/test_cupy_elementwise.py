"""cupy's ElementwiseKernel: parameters and their types, arguments, launches, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import cupy
from halstream.cupy import ElementwiseKernel, cuda
from halstream.cupy.cuda import _compile
from halstream.cupy.cuda.compiler import CompileException
from test_cupy_raw import Foreign

# The look-alike of the driver executes no programs.
pytestmark = [pytest.mark.usefixtures("backend", "nvrtc"), pytest.mark.needs("kernels", "schedules")]


@pytest.fixture
def squared() -> ElementwiseKernel:
    return ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "squared")


def test_a_kernel_runs_for_each_element_on_the_current_stream(
    squared: ElementwiseKernel, hold: Callable[[Any], Any]
) -> None:
    x, y = cupy.arange(10, dtype="f"), cupy.ones(10, "f")
    squared(x, y)  # compiled now
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    held = hold(s)
    with s:
        z = squared(x, y)
    assert not s.done and isinstance(z, cupy.ndarray) and z.dtype == np.float32
    held.open()
    np.testing.assert_array_equal(z.get(s), (np.arange(10) - 1.0) ** 2)
    squared(z, y, z, stream=s)
    np.testing.assert_array_equal(z.get(s), ((np.arange(10) - 1.0) ** 2 - 1) ** 2)


@pytest.mark.parametrize("code", "?bhilqBHILQefdFD")
def test_every_type_has_its_name(code: str) -> None:
    x = np.array([0, 1, 1, 0, 1]).astype(code)
    z = ElementwiseKernel("T x", "T z", "z = x")(cupy.array(x))
    assert z.dtype == x.dtype
    np.testing.assert_array_equal(z.get(), x)


@pytest.mark.parametrize(
    ("shapes", "reduce_dims"),
    [(((4, 5), (5,)), True), (((3, 1, 5), (2, 1)), True), (((3, 1, 5), (2, 1)), False), (((), (2, 3)), True)],
)
@pytest.mark.parametrize("code", "fq")
def test_arrays_are_broadcast(shapes: tuple[tuple[int, ...], ...], reduce_dims: bool, code: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 100, shape).astype(code) for shape in shapes)
    kernel = ElementwiseKernel("T x, T y", "T z", "z = x - y * 2", reduce_dims=reduce_dims)
    np.testing.assert_array_equal(kernel(cupy.array(x), cupy.array(y)).get(), x - y * 2)


def test_arrays_that_are_not_contiguous_are_read_and_written_by_their_strides() -> None:
    kernel = ElementwiseKernel("T x", "T z", "z = x + 1")
    x = cupy.arange(12, dtype="f").reshape(4, 3)
    np.testing.assert_array_equal(kernel(Foreign(x)).get(), [[10, 11, 12], [4, 5, 6]])
    out = Foreign(cupy.zeros((4, 3), "f"))
    assert kernel(x[:2], out) is out
    assert out.keep.tolist() == [[0] * 3, [4, 5, 6], [0] * 3, [1, 2, 3]]
    rows = ElementwiseKernel("raw T x", "T z", "int at[] = {(int)i, 1}; z = x[at] + x[3 * i]")
    assert rows(Foreign(x), size=2).tolist() == [10 + 9, 4 + 3]


def test_arrays_without_dimensions_and_without_elements(squared: ElementwiseKernel) -> None:
    assert squared(cupy.array(3.0), 1).item() == 4
    assert squared(cupy.array(3.0), cupy.array([1.0])).shape == (1,)
    none = squared(cupy.zeros((3, 0), "f"), 1)
    assert none.shape == (3, 0) and none.dtype == np.float32
    assert ElementwiseKernel("raw T x", "T z", "z = x[0]")(cupy.ones(1), size=0).shape == (0,)


def test_numbers_take_the_types_of_arrays_and_give_none() -> None:
    kernel = ElementwiseKernel("T x, T y, float32 c", "T z, U w", "z = x * y; w = c", "mixed")
    out = cupy.zeros(3, "d")
    z, w = kernel(cupy.arange(3, dtype="i"), 2, 0.5, cupy.zeros(3, "i"), out)
    assert (z.dtype, z.tolist(), w is out, out.tolist()) == (np.int32, [0, 2, 4], True, [0.5] * 3)
    for value in (True, np.float64(2), np.int8(2)):
        z, _ = kernel(cupy.arange(3, dtype="i"), value, 1, z, out)
        assert z.tolist() == [0, int(value), 2 * int(value)]
    with pytest.raises(OverflowError):
        kernel(cupy.arange(3, dtype="i"), 2**40, 1, z, out)


def test_raw_arrays_are_indexed_by_the_program() -> None:
    backwards = ElementwiseKernel("raw T x", "T z", "z = x[_ind.size() - i - 1]")
    assert backwards(cupy.arange(5, dtype="f"), size=5).tolist() == [4, 3, 2, 1, 0]
    moved = ElementwiseKernel("T x, raw T y", "raw T z", "z[i] = x + y[y.size() - 1] + y.shape()[0] + z.ndim")
    out = cupy.zeros(3)
    assert moved(cupy.arange(3.0), cupy.ones(7), out) is out
    assert out.tolist() == [9, 10, 11]
    count = ElementwiseKernel("int32 x", "raw int32 bins", "atomicAdd(&bins[x], 1)", "count")
    bins = cupy.zeros(4, "i")
    assert count(cupy.array([0, 1, 1, 3, 3, 3], "i"), bins) is bins
    assert bins.tolist() == [1, 2, 0, 3]
    by_input = ElementwiseKernel("int32 x, _non_const raw int32 bins", "", "bins[x] = 7")
    assert by_input(cupy.array([2], "i"), bins) == ()
    assert bins.tolist() == [1, 2, 7, 3]


def test_indices_of_several_dimensions() -> None:
    kernel = ElementwiseKernel("", "T z", "z = _ind.get()[0] * 10 + _ind.get()[1]", reduce_dims=False)
    assert kernel(cupy.zeros((2, 3), "i")).tolist() == [[0, 1, 2], [10, 11, 12]]


def test_code_before_and_behind_the_loop_and_in_front_of_the_kernel() -> None:
    kernel = ElementwiseKernel(
        "T x",
        "T z, raw T total",
        "sum += x; z = twice(x) + OFFSET",
        "summed",
        preamble="template <typename T> __device__ T twice(T x) { return 2 * x; }",
        loop_prep="T sum = 0",
        after_loop="atomicAdd(&total[0], sum)",
        options=("-DOFFSET=1",),
    )
    total = cupy.zeros(1, "f")
    z, _ = kernel(cupy.arange(100, dtype="f"), cupy.zeros(100, "f"), total, block_size=8)
    assert z.tolist() == [2 * i + 1 for i in range(100)]
    assert total.tolist() == [4950]
    assert "twice" in kernel.cached_code and list(kernel.cached_codes) == [(np.dtype("f"),) * 3]


def test_what_is_returned(squared: ElementwiseKernel) -> None:
    x = cupy.ones(2)
    assert isinstance(ElementwiseKernel("T x", "T z", "z = x", return_tuple=True)(x), tuple)
    assert isinstance(ElementwiseKernel("T x", "T z, T w", "z = w = x")(x), tuple)
    assert ElementwiseKernel("T x", "T z", "z = x", no_return=True)(x, cupy.zeros(2)) is None
    assert (squared.name, squared.nin, squared.nout, squared.nargs) == ("squared", 2, 1, 3)
    assert (squared.reduce_dims, squared.no_return, squared.return_tuple, squared.kwargs) == (True, False, False, {})
    assert [(p.name, p.ctype, p.raw, p.is_const) for p in squared.params[:3]] == [
        ("x", "T", False, True),
        ("y", "T", False, True),
        ("z", "T", False, False),
    ]


@pytest.mark.parametrize(
    ("arguments", "kind", "words"),
    [
        (("T", "T z", ""), Exception, "Syntax error: T"),
        (("T x", " ", ""), Exception, "Syntax error"),
        (("rew T x", "T z", ""), Exception, 'Unknown keyword "rew"'),
        (("Foo x", "T z", ""), TypeError, "data type 'Foo' not understood"),
        (("T i", "T z", ""), ValueError, "Can not use 'i' as a parameter name"),
        (("T x", "T z", "", "9name"), ValueError, 'Invalid kernel name: "9name"'),
    ],
)
def test_declarations_that_cannot_be_read(arguments: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        ElementwiseKernel(*arguments)
    assert type(caught.value) is kind


def test_calls_that_cannot_be(squared: ElementwiseKernel) -> None:
    x, y = cupy.ones(2, "f"), cupy.ones(2, "d")
    both = ElementwiseKernel("T x, raw U y, float32 c", "T z, U w", "")
    raw = ElementwiseKernel("raw T x", "raw T z", "z[i] = x[i]")
    calls: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: squared(x), TypeError, "Wrong number of arguments for 'squared'. It must be either 2 or 3"),
        (lambda: squared(x, x, no_such=1), TypeError, "Wrong arguments {'no_such': 1}"),
        (lambda: squared(x, x, block_size=0), ValueError, "block_size must be greater than zero"),
        (lambda: squared(x, "text"), TypeError, "Unsupported type <class 'str'>"),
        (lambda: squared(x, np.ones(2)), TypeError, "Unsupported type <class 'numpy.ndarray'>"),
        (lambda: squared(x, None), TypeError, "Unsupported type <class 'NoneType'>"),
        (lambda: squared(1, 2), ValueError, "Loop size is undecided"),
        (lambda: squared(x, x, size=2), ValueError, "Specified 'size' can be used only if"),
        (
            lambda: squared(x, cupy.ones(3, "f")),
            ValueError,
            r"could not be broadcast together with shapes \(2,\) \(3,\)",
        ),
        (lambda: squared(x, y), TypeError, "Type is mismatched. y float64 float32 T"),
        (lambda: squared(x, x, y), TypeError, "Type is mismatched. x float32 float64 T"),
        (lambda: squared(x, x, 1), TypeError, "Output arguments must be cupy.ndarray"),
        (lambda: squared(cupy.ones((1, 2), "f"), x, x), ValueError, "Out shape is mismatched"),
        (lambda: both(x, y, y), TypeError, "Type is mismatched. c float64 float32"),
        (lambda: both(x, 1, 1), KeyError, "U"),
        (lambda: raw(x), ValueError, "Loop size is undecided"),
        (lambda: ElementwiseKernel("T x", "raw T z", "")(x), ValueError, "Output array size is Undecided"),
        (lambda: ElementwiseKernel("T x", "T z", "", no_such=1)(x), TypeError, "no_such"),
        (lambda: squared(cupy.zeros(2, "f,f"), 1), TypeError, r"Unable to find C\+\+ type"),
    ]
    for call, kind, words in calls:
        with pytest.raises(kind, match=words):
            call()
    with pytest.raises(cuda.driver.CUDADriverError, match="INVALID_VALUE"):
        squared(cupy.ones(2000, "f"), 1, block_size=2000)
    assert squared(x, 3).tolist() == [4, 4]


def test_an_operation_with_errors_is_refused_with_the_compilers_words() -> None:
    kernel = ElementwiseKernel("T x", "T z", "z = no_such_name", "wrong")
    with pytest.raises(CompileException, match='identifier "no_such_name" is undefined') as caught:
        kernel(cupy.ones(2))
    assert "z = no_such_name" in caught.value.source and "wrong" in caught.value.name


def test_complex_numbers() -> None:
    x = np.array([3 + 4j, -1 + 2j, -3 - 0.5j, 2])
    for code, near in (("F", 1e-6), ("D", 1e-14)):
        z = ElementwiseKernel(
            "T x, T c", "T z", "z = exp(x) * conj(x) / (x + T(1, 0)) - sqrt(x) * c + T(abs(x), arg(x)) * log(x)"
        )(cupy.array(x, code), 2 - 1j)
        want = np.exp(x) * x.conj() / (x + 1) - np.sqrt(x) * (2 - 1j) + (abs(x) + 1j * np.angle(x)) * np.log(x)
        np.testing.assert_allclose(z.get(), want, near)
    parts = ElementwiseKernel("complex64 x", "float32 a, float32 b", "a = x.real(); b = x.imag()")
    a, b = parts(cupy.array(x, "F"))
    assert (a.tolist(), b.tolist()) == (x.real.tolist(), x.imag.tolist())


def test_halves_are_computed_as_floats() -> None:
    x = np.array([0.1, 2, 65504, -1e-7]).astype("e")
    z = ElementwiseKernel("T x, float32 y", "T z", "z = x * x + T(1); z += y")(cupy.array(x), 0.25)
    with np.errstate(over="ignore"):
        want = (x.astype("f") * x + 1).astype("e")
        np.testing.assert_array_equal(z.get(), (want.astype("f") + np.float32(0.25)).astype("e"))


def test_cupys_headers_are_used_where_its_wheel_is_installed(
    squared: ElementwiseKernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kernel = ElementwiseKernel("T x", "T z", "z = x + FROM_THE_WHEEL")
    if not _compile.wheel_headers():
        with pytest.raises(CompileException, match="FROM_THE_WHEEL"):
            kernel(cupy.ones(2))
        folder = tmp_path / "cupy" / "_core" / "include" / "cupy"
        shutil.copytree(Path(cupy.__file__).with_name("_include") / "cupy", folder)
        with (folder / "carray.cuh").open("a") as file:
            file.write("\n#define FROM_THE_WHEEL 1\n")
        (tmp_path / "cupy" / "__init__.py").write_text("")
        monkeypatch.syspath_prepend(str(tmp_path))
        assert kernel(cupy.ones(2)).tolist() == [2, 2]
    assert squared(cupy.ones(2), 3).tolist() == [4, 4]


@pytest.mark.needs("graphs")
def test_a_captured_kernel_runs_at_each_launch(squared: ElementwiseKernel) -> None:
    x = cupy.array([3.0])
    squared(x, 1, cupy.zeros(1))
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    with s:
        s.begin_capture()
        squared(squared(x, 1), 1, x)
        graph = s.end_capture()
        graph.launch()
        assert x.get(s) == [9.0]
        graph.launch()
        assert x.get(s) == [63.0**2]


def test_V45_kernels_on_two_streams_may_read_one_array_and_not_write_it(squared: ElementwiseKernel) -> None:
    x = cupy.ones(8, "f")
    squared(x, 1)
    for written in (False, True):
        with hs.sanitize(on="collect") as report:
            outs = [cupy.zeros(8, "f"), cupy.zeros(8, "f")]
            cuda.Device().synchronize()
            for number in range(2):
                with cuda.Stream(non_blocking=True):
                    squared(x, 1, outs[0] if written else outs[number])
            cuda.Device().synchronize()
        texts = [finding.text for finding in report]
        assert len(texts) == written, texts
        assert all("squared" in text and "32 bytes" in text for text in texts), texts


def test_each_device_has_its_own_form(squared: ElementwiseKernel) -> None:
    for number in (0, 1, 0):
        with cuda.Device(number):
            assert squared(cupy.ones(2), 3).tolist() == [4, 4]


def test_fuse_is_refused_with_what_to_do() -> None:
    with pytest.raises(hs.NotSupportedError, match=r"cupy\.fuse is not built: leave the decorator out"):

        @cupy.fuse
        def f(x: Any) -> Any:
            return x

    with pytest.raises(hs.NotSupportedError, match=r"cupy\.fuse"):
        cupy.fuse(kernel_name="f")
