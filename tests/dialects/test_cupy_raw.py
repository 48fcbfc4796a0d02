"""cupy's RawKernel and RawModule: compilation, arguments, launches, variables, and what is refused."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import cupy
from halstream.cupy import RawKernel, RawModule, cuda
from halstream.cupy.cuda.compiler import CompileException
from halstream.cupy.cuda.driver import CUDADriverError

LIMIT = 10.0

# The look-alike of the driver executes no programs.
pytestmark = [pytest.mark.usefixtures("backend", "nvrtc"), pytest.mark.needs("kernels", "schedules")]

ADD = r"""
extern "C" __global__ void add(const float *a, const float *b, float *c, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i] * factor;
}"""
COUNTER = r"""
__device__ int counter = 3;
__constant__ float factors[4];
extern "C" __global__ void count(int by) { counter += by; }
extern "C" __global__ void scale(float *x) { x[threadIdx.x] *= factors[threadIdx.x]; }
"""
STORE = r"""
template <typename T> __global__ void store(T *out, T value) { *out = value; }
"""


@pytest.fixture
def add() -> RawKernel:
    return RawKernel(ADD, "add")


def test_a_kernel_runs_on_the_current_stream_in_its_order(add: RawKernel, hold: Callable[[Any], Any]) -> None:
    a, b, c = cupy.arange(100, dtype="f"), cupy.ones(100, "f"), cupy.zeros(100, "f")
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    held = hold(s)
    with s:
        assert add((4,), (32,), (a, b, c, 100, np.float32(2))) is None
    assert not s.done
    held.open()
    np.testing.assert_array_equal(c.get(s), np.arange(100) + 2)
    add((4,), (32,), (c, b, c, np.int32(100), np.float32(1)), stream=s)
    np.testing.assert_array_equal(c.get(s), np.arange(100) + 3)


def test_grids_are_filled_up_and_are_tuples(add: RawKernel) -> None:
    a = cupy.ones(4, "f")
    add((), (4, 0), (a, a, a, 4, np.float32(1)))
    assert a.tolist() == [2] * 4
    with pytest.raises(TypeError, match=r"'grid' has incorrect type \(expected tuple, got int\)"):
        add(1, (4,), (a, a, a, 4, np.float32(1)))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'block' has incorrect type \(expected tuple, got list\)"):
        add((1,), [4], (a, a, a, 4, np.float32(1)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bool", True),
        ("bool", np.bool_(False)),
        ("long long", -5),
        ("int", -5),
        ("unsigned", 4000000000),
        ("signed char", np.int8(-3)),
        ("unsigned short", np.uint16(65000)),
        ("unsigned long long", 2**64 - 1),
        ("double", 1.5),
        ("float", np.float32(1.5)),
        ("double", np.array(2.5)),
    ],
)
def test_scalars_are_passed_as_cupy_passes_them(kind: str, value: Any) -> None:
    dtype = {"bool": "?", "signed char": "b", "unsigned short": "H", "int": "i", "unsigned": "I", "long long": "q"}
    dtype |= {"unsigned long long": "Q", "float": "f", "double": "d"}
    out = cupy.zeros(1, dtype[kind])
    name = f"store<{kind}>"
    RawModule(code=STORE, name_expressions=[name]).get_function(name)((1,), (1,), (out, value))
    assert out.get()[0] == value


def test_complex_numbers_and_structures_of_sixteen_bytes_are_passed_by_value() -> None:
    source = r"""
    struct alignas(8) pair { double a, b; };
    extern "C" __global__ void both(double *out, pair x) { out[0] = x.a; out[1] = x.b; }"""
    kernel, out = RawKernel(source, "both"), cupy.zeros(2)
    for value in (3 + 4j, np.complex128(3 + 4j), np.array([(3.0, 4.0)], "d,d"), np.array([(3.0, 4.0)], "d,d")[0]):
        out.fill(0)
        kernel((1,), (1,), (out, value))
        assert out.tolist() == [3, 4]


def test_memory_is_passed_in_every_form() -> None:
    kernel = RawKernel('extern "C" __global__ void one(int *x) { if (x) *x += 1; }', "one")
    x = cupy.zeros(4, "i")
    core = hs.zeros(1, np.int32)
    for given in (x, x.data, x.data.ptr, np.uint64(x.data.ptr), x[0], None):
        kernel((1,), (1,), (given,))
    assert x.tolist() == [5, 0, 0, 0]
    kernel((1,), (1,), (x[2],))
    kernel((1,), (1,), (x.data + 12,))
    assert x.tolist() == [5, 0, 1, 1]
    cuda.Device().synchronize()
    kernel((1,), (1,), (core,))
    cuda.Device().synchronize()
    assert core.numpy(hs.Stream()).tolist() == [1]


class Foreign:
    """Another library's array: every other row of one of ours, from the last row on."""

    def __init__(self, array: Any) -> None:
        rows, length = array.shape
        self.keep = array
        self.__cuda_array_interface__ = {
            "shape": (rows // 2, length),
            "strides": (-2 * length * 4, 4),
            "typestr": "<f4",
            "data": (array.data.ptr + (rows - 1) * length * 4, False),
            "version": 3,
        }


def test_arrays_of_other_libraries_are_passed_by_their_interface() -> None:
    kernel = RawKernel('extern "C" __global__ void one(float *x) { x[threadIdx.x] += 1; }', "one")
    x = cupy.zeros((4, 3), "f")
    kernel((1,), (3,), (Foreign(x),))
    assert x.tolist() == [[0] * 3, [0] * 3, [0] * 3, [1] * 3]


@pytest.mark.parametrize("value", ["text", [1], np.zeros(2), {1}, {}], ids=str)
def test_other_arguments_are_refused(add: RawKernel, value: Any) -> None:
    with pytest.raises(TypeError, match="Unsupported type <class"):
        add((1,), (1,), (value, None, None, 0, np.float32(0)))
    cuda.Device().synchronize()


@pytest.mark.parametrize(
    ("number", "value", "words"),
    [
        (4, 2.0, "argument 5: the parameter has 4 bytes, and a floating-point number of 8 bytes does not fit"),
        (3, 2**32, "argument 4: the parameter has 4 bytes, and an integer of 8 bytes does not fit"),
        (0, np.float32(1), "argument 1: the parameter has 8 bytes, and a floating-point number of 4 bytes"),
        (3, np.int8(1), "argument 4: the parameter has 4 bytes, and an integer of 1 bytes"),
    ],
)
def test_arguments_of_another_size_are_refused(add: RawKernel, number: int, value: Any, words: str) -> None:
    args: list[Any] = [None, None, None, 0, np.float32(0)]
    args[number] = value
    with pytest.raises(TypeError, match=words):
        add((1,), (1,), tuple(args))


def test_launches_that_cannot_run_are_errors_of_the_driver(add: RawKernel) -> None:
    a = cupy.ones(4, "f")
    good = (a, a, a, 4, np.float32(1))
    for grid, block, args, more in (
        ((1,), (1025,), good, {}),
        ((2**31,), (1,), good, {}),
        ((1, 65536), (1,), good, {}),
        ((1,), (1,), good[:4], {}),
        ((1,), (1,), (*good, 1), {}),
        ((1,), (1,), good, {"shared_mem": 50000}),
    ):
        with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_VALUE: invalid argument") as caught:
            add(grid, block, args, **more)
        assert caught.value.status == 1 and "add" in caught.value.detail
    with pytest.raises(TypeError):
        add((1,), (1,), good, no_such=1)
    add((1,), (4,), good)
    assert a.tolist() == [2] * 4


def test_the_figures_of_a_kernel() -> None:
    source = r"""
    extern "C" __global__ __launch_bounds__(64) void few(int *x) {
        __shared__ int here[100]; extern __shared__ int more[];
        here[threadIdx.x] = more[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = here[63 - threadIdx.x];
    }"""
    kernel = RawKernel(source, "few")
    assert (kernel.name, kernel.__name__, kernel.code) == ("few", "few", source)
    assert (kernel.options, kernel.backend, kernel.enable_cooperative_groups, kernel.file_path) == (
        (),
        "nvrtc",
        False,
        None,
    )
    figures = kernel.attributes
    assert 1 <= figures.pop("num_regs") <= 255
    assert figures == {
        "max_threads_per_block": 64,
        "shared_size_bytes": 400,
        "const_size_bytes": 0,
        "local_size_bytes": 0,
        "ptx_version": 80,
        "binary_version": 80,
        "cache_mode_ca": 0,
        "max_dynamic_shared_size_bytes": (48 << 10) - 400,
        "preferred_shared_memory_carveout": -1,
    }
    x = cupy.arange(64, dtype="i")
    with pytest.raises(CUDADriverError):
        kernel((1,), (64,), (x,), shared_mem=100 << 10)
    kernel.max_dynamic_shared_size_bytes = 100 << 10
    kernel.preferred_shared_memory_carveout = 50
    kernel((1,), (64,), (x,), shared_mem=100 << 10)
    assert kernel.attributes["preferred_shared_memory_carveout"] == 50
    np.testing.assert_array_equal(x.get(), np.arange(64)[::-1])
    with pytest.raises(CUDADriverError):
        kernel.max_dynamic_shared_size_bytes = 1 << 20


def test_a_cooperative_kernel_waits_for_all_of_its_blocks() -> None:
    source = r"""
    extern "C" __global__ void meet(int *x, int *y, int *here) {
        x[blockIdx.x] = blockIdx.x;
        atomicAdd(here, 1);
        while (atomicAdd(here, 0) < gridDim.x) ;
        y[blockIdx.x] = x[gridDim.x - 1 - blockIdx.x];
    }"""
    kernel = RawKernel(source, "meet", enable_cooperative_groups=True)
    x, y, here = cupy.zeros(8, "i"), cupy.zeros(8, "i"), cupy.zeros(1, "i")
    kernel((8,), (1,), (x, y, here))
    assert y.tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_headers_of_cupy_and_of_cuda_for_complex_numbers() -> None:
    source = r"""
    #include <cupy/complex.cuh>
    extern "C" __global__ void turn(complex<float> *x, complex<float> by) { x[threadIdx.x] *= by; }"""
    x = cupy.array([1, 2j, 3 + 1j], "F")
    RawKernel(source, "turn")((1,), (3,), (x, np.complex64(1j)))
    np.testing.assert_array_equal(x.get(), np.array([1, 2j, 3 + 1j], "F") * np.complex64(1j))
    source = r"""
    #include <cuComplex.h>
    extern "C" __global__ void all(cuDoubleComplex *x, cuDoubleComplex y, double *lengths) {
        cuDoubleComplex z = cuCsub(cuCmul(*x, y), cuCadd(*x, cuConj(y)));
        lengths[0] = cuCabs(z);
        *x = cuCdiv(z, make_cuDoubleComplex(cuCreal(y), 2.0));
    }"""
    y, value, lengths = cupy.array([3 + 4j]), 1 - 2j, cupy.zeros(1)
    RawKernel(source, "all", translate_cucomplex=True)((1,), (1,), (y, value, lengths))
    want = (3 + 4j) * value - ((3 + 4j) + value.conjugate())
    np.testing.assert_allclose(y.get(), [want / (1 + 2j)], 1e-14)
    np.testing.assert_allclose(lengths.get(), [abs(want)], 1e-14)
    source = r"""
    #include <cuComplex.h>
    extern "C" __global__ void sum(cuFloatComplex *x, cuComplex y) { *x = cuCadd(*x, y); }"""
    z = cupy.array([3 + 4j], "F")
    RawKernel(source, "sum", translate_cucomplex=True)((1,), (1,), (z, np.complex64(1j)))
    assert z.tolist() == [3 + 5j]


def test_a_source_with_errors_is_refused_with_the_compilers_words() -> None:
    kernel = RawKernel('extern "C" __global__ void bad() { x; }', "bad", ("-DA=1",))
    with pytest.raises(CompileException, match=r'bad\.cu\(1\): error: identifier "x" is undefined') as caught:
        kernel.compile()
    exc = caught.value
    assert isinstance(exc, hs.CompileError) and exc.get_message() == str(exc) == repr(exc)
    assert (exc.source, exc.options, exc.backend) == (kernel.code, ("-DA=1",), "nvrtc")
    out = io.StringIO()
    exc.dump(out)
    assert "NVRTC compilation error" in out.getvalue() and "1 extern" in out.getvalue()
    assert str(pickle.loads(pickle.dumps(exc))) == str(exc)
    with pytest.raises(CompileException):
        kernel((1,), (1,), ())


def test_what_the_compiler_says_is_written_to_a_stream() -> None:
    source = 'extern "C" __global__ void loud() { int unused = 1; }'
    for make in (lambda: RawKernel(source, "loud"), lambda: RawModule(code=source)):
        for _ in range(2):  # also from a cache
            log = io.StringIO()
            make().compile(log_stream=log)
            assert 'variable "unused" was declared but never referenced' in log.getvalue()


def test_a_kernel_that_the_source_does_not_have_is_not_found() -> None:
    source = "__global__ void hidden() {}"
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND") as caught:
        RawKernel(source, "hidden").compile()
    assert "hidden" in caught.value.detail
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        RawModule(code=COUNTER).get_global("none")


def test_wrong_types_are_errors_at_once() -> None:
    made: list[Callable[[], Any]] = [
        lambda: RawKernel("x"),  # type: ignore[call-arg]
        lambda: RawKernel("x", 1),  # type: ignore[arg-type]
        lambda: RawKernel(b"x", "n"),  # type: ignore[arg-type]
        lambda: RawKernel("x", "n", ["-O"]),  # type: ignore[arg-type]
        lambda: RawKernel("x", "n", no_such=1),  # type: ignore[call-arg]
        lambda: RawModule(),
        lambda: RawModule(code="x", path="y"),
        lambda: RawModule("x"),  # type: ignore[misc]
    ]
    for make in made:
        with pytest.raises(TypeError):
            make()
    for arguments in (
        {"path": "y", "name_expressions": ["a"]},
        {"code": "y", "backend": "nvcc", "name_expressions": ["a"]},
        {"path": "y", "jitify": True},
        {"code": "y", "backend": "nvcc", "jitify": True},
    ):
        with pytest.raises(ValueError):
            RawModule(**arguments)  # type: ignore[arg-type]


def test_other_compilers_are_refused_by_name_when_they_are_needed() -> None:
    for kernel, words in (
        (RawKernel(ADD, "add", backend="nvcc"), r"backend='nvcc'.*leave the backend out.*RawModule\(path="),
        (RawKernel(ADD, "add", jitify=True), "jitify=True.*leave it out"),
        (RawModule(code=ADD, backend="nvcc"), "backend='nvcc'"),
    ):
        with pytest.raises(hs.NotSupportedError, match=words):
            kernel.compile()
    with pytest.raises(ValueError, match="Invalid backend icc"):
        RawKernel(ADD, "add", backend="icc").compile()


def test_K4_each_module_has_variables_of_its_own() -> None:
    one, two = RawModule(code=COUNTER), RawModule(code=COUNTER)
    for module, by in ((one, 1), (two, 10), (one, 2)):
        module.get_function("count")((1,), (1,), (by,))
    found = [cupy.ndarray((1,), "i", module.get_global("counter")) for module in (one, two)]
    assert [x.tolist() for x in found] == [[6], [13]]
    found[0].fill(-1)
    one.get_function("count")((1,), (1,), (1,))
    assert [x.tolist() for x in found] == [[0], [13]]
    one.compile()  # its variables are new ones
    assert cupy.ndarray((1,), "i", one.get_global("counter")).tolist() == [3]


def test_K4_a_variable_is_memory_for_copies_and_other_kernels(add: RawKernel) -> None:
    module = RawModule(code=COUNTER)
    memory = module.get_global("factors")
    factors = cupy.ndarray((4,), "f", memory)
    factors[...] = cupy.array([1, 2, 3, 4], "f")
    x = cupy.ones(4, "f")
    module.get_function("scale")((1,), (4,), (x,))
    assert x.tolist() == [1, 2, 3, 4]
    add((1,), (4,), (x, factors, x, 4, np.float32(10)))
    assert x.tolist() == [11, 22, 33, 44]
    del module
    assert factors.tolist() == [1, 2, 3, 4]  # the pointer keeps the program loaded


def test_a_module_finds_instances_of_templates() -> None:
    source = "template <typename T> __global__ void fill(T *x, T v) { x[threadIdx.x] = v; }"
    names = ["fill<float>", "fill<int>"]
    module = RawModule(code=source, name_expressions=names)
    assert module.name_expressions == tuple(names)
    x, y = cupy.zeros(4, "f"), cupy.zeros(4, "i")
    module.get_function("fill<float>")((1,), (4,), (x, np.float32(1.5)))
    module.get_function("fill<int>")((1,), (4,), (y, 7))
    assert (x.tolist(), y.tolist()) == ([1.5] * 4, [7] * 4)
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NOT_FOUND"):
        module.get_function("fill<double>")


def test_a_module_is_loaded_from_a_file(tmp_path: Path) -> None:
    ptx = hs.Kernel(ADD, name="add", signature="").compile("compute_80").code.rstrip(b"\0")
    path = tmp_path / "add.ptx"
    path.write_bytes(ptx)
    module = RawModule(path=str(path))
    kernel = module.get_function("add")
    a = cupy.ones(4, "f")
    kernel((1,), (4,), (a, a, a, 4, np.float32(1)))
    assert a.tolist() == [2] * 4
    assert (kernel.code, kernel.file_path, module.code) == (None, str(path), None)
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_FILE_NOT_FOUND"):
        RawModule(path=str(tmp_path / "none.ptx")).compile()
    path.write_bytes(b"this is no program")
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_INVALID_PTX"):
        RawModule(path=str(path)).compile()
    path.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.raises(CUDADriverError, match="CUDA_ERROR_NO_BINARY_FOR_GPU") as caught:
        RawModule(path=str(path)).compile()
    assert "give PTX or source" in caught.value.detail


def test_kernels_and_modules_can_be_pickled(add: RawKernel) -> None:
    a = cupy.ones(4, "f")
    add.compile()
    pickle.loads(pickle.dumps(add))((1,), (4,), (a, a, a, 4, np.float32(1)))
    module = RawModule(code=ADD)
    module.compile()
    pickle.loads(pickle.dumps(module)).get_function("add")((1,), (4,), (a, a, a, 4, np.float32(1)))
    assert a.tolist() == [4] * 4


@pytest.mark.needs("graphs")
def test_a_captured_kernel_runs_at_each_launch_and_its_memory_is_kept(add: RawKernel) -> None:
    a, c = cupy.ones(4, "f"), cupy.zeros(4, "f")
    add.compile()
    cuda.Device().synchronize()
    s = cuda.Stream(non_blocking=True)
    with s:
        s.begin_capture()
        b = cupy.ones(4, "f")
        add((1,), (4,), (a, b, b, 4, np.float32(1)))
        add((1,), (4,), (c, b, c, 4, np.float32(1)))
        del b
        graph = s.end_capture()
        other = cupy.zeros(4, "f")  # takes no memory of the graph's
        for _ in range(3):
            graph.launch()
        assert other.tolist() == [0] * 4
    # b is filled with ones in each launch.
    assert c.get(s).tolist() == [6] * 4


def rows_written_by_two_streams(rows: int) -> list[str]:
    kernel = RawKernel(ADD, "add")
    kernel.compile()
    with hs.sanitize(on="collect") as report:
        a, c = cupy.ones(64, "f"), cupy.zeros(64, "f")
        cuda.Device().synchronize()
        s, t = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
        with s:
            kernel((2,), (32,), (a, a, c, rows, np.float32(1)))
        with t:
            kernel((1,), (32,), (a, a, c[32:], 32, np.float32(1)))
        cuda.Device().synchronize()
    return [finding.text for finding in report]


def test_V45_kernels_that_write_different_rows_are_silent_and_one_row_too_far_is_reported() -> None:
    assert rows_written_by_two_streams(32) == []
    (text,) = rows_written_by_two_streams(33)
    assert "4 bytes" in text and "add" in text, text


def test_V45_memory_behind_a_number_is_seen_as_well() -> None:
    kernel = RawKernel(ADD, "add")
    kernel.compile()
    with hs.sanitize(on="collect") as report:
        a, c = cupy.ones(64, "f"), cupy.zeros(64, "f")
        cuda.Device().synchronize()
        s, t = cuda.Stream(non_blocking=True), cuda.Stream(non_blocking=True)
        for stream in (s, t):
            kernel((2,), (32,), (a, a, np.uint64(c.data.ptr), 64, np.float32(1)), stream=stream)
        cuda.Device().synchronize()
    (finding,) = report
    assert "256 bytes" in finding.text and "add" in finding.text, finding.text


def test_D7_an_access_out_of_bounds_loses_the_device(child: Callable[..., Any]) -> None:
    done = child(
        f"""
        import halstream as hs, numpy as np
        from halstream import cupy
        from halstream.cupy import cuda
        a = cupy.ones(4, "f")
        kernel = cupy.RawKernel({ADD!r}, "add")
        kernel((1,), (1024,), (a, a, a, 1 << 30, np.float32(1)))
        try:
            cuda.Device().synchronize()
        except cuda.runtime.CUDARuntimeError as exc:
            assert exc.status == 700 and "add" in str(exc) and "program.py" in str(exc), exc
        try:
            kernel((1,), (1,), (a, a, a, 0, np.float32(1)))
        except cuda.driver.CUDADriverError as exc:
            assert exc.status == 700, exc
            print("lost")
        hs.testing.recover()
        kernel((1,), (1,), (a, a, a, 0, np.float32(1)))
        cuda.Device().synchronize()
        """
    )
    assert (done.returncode, done.stdout) == (0, "lost\n"), done.stderr


def test_functions_and_modules_of_the_driver(add: RawKernel) -> None:
    code = hs.Kernel(ADD, name="add", signature="").compile("compute_80").code
    module = cuda.Module()
    assert module.ptr == 0 and module.mapping is None
    with pytest.raises(CUDADriverError):
        module.get_function("add")
    module.load(code)
    function = module.get_function("add")
    assert function.module is module and function.ptr and module.ptr
    a = cupy.ones(300, "f")
    function.linear_launch(300, (a, a, a, 300, np.float32(1)))
    function((2,), (150,), (a, a, a, 300, np.float32(1)), 0, cuda.Stream.null)
    assert a.tolist() == [4] * 300
    assert isinstance(add.kernel, cuda.Function)
    with pytest.raises(TypeError, match="expected bytes, got str"):
        module.load("text")  # type: ignore[arg-type]


def test_each_device_has_its_own_program(add: RawKernel) -> None:
    for number in (0, 1, 0):
        with cuda.Device(number):
            a = cupy.ones(4, "f")
            add((1,), (4,), (a, a, a, 4, np.float32(1)))
            assert a.tolist() == [2] * 4
    with cuda.Device(1):
        far = cuda.Stream(non_blocking=True)
    kernel = add.kernel
    with pytest.raises(CUDADriverError) as caught:
        kernel((1,), (4,), (a, a, a, 4, np.float32(1)), 0, far)
    assert "device 0" in caught.value.detail and "device 1" in caught.value.detail


def test_without_nvrtc_the_error_names_what_to_install(child: Callable[..., Any], tmp_path: Path) -> None:
    done = child(
        f"""
        import importlib.util
        real = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *more: None if name == "nvidia" else real(name, *more)
        import halstream as hs
        from halstream import cupy
        from halstream._kernel import _nvrtc
        _nvrtc._MAJORS = (99,)
        x = cupy.ones(2, "f")
        for use in (
            cupy.RawKernel({ADD!r}, "add").compile,
            cupy.RawModule(code={ADD!r}).compile,
            lambda: cupy.ElementwiseKernel("T x", "T z", "z = x")(x),
            lambda: cupy.ReductionKernel("T x", "T z", "x", "a + b", "z = a", "0")(x),
        ):
            try:
                use()
            except hs.BackendAbsentError as exc:
                assert "pip install 'halstream[cuda]'" in str(exc), exc
            else:
                raise AssertionError("no error")
        assert (x + x).tolist() == [2, 2]
        """,
        env={"HALSTREAM_CACHE_DIR": str(tmp_path), "CUDA_PATH": "", "PATH": os.environ["PATH"]},
    )
    assert done.returncode == 0, done.stderr


def test_a_program_is_compiled_once_for_all_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from halstream._kernel import _nvrtc

    monkeypatch.setenv("HALSTREAM_CACHE_DIR", str(tmp_path / "cache"))
    source = ADD + "// compiled once"
    RawKernel(source, "add").compile()
    RawModule(code=source, name_expressions=["add"]).compile()

    def refuse(*args: Any) -> Any:
        raise AssertionError("it was compiled again")

    monkeypatch.setattr(_nvrtc, "_compile", refuse)
    RawKernel(source, "add").compile()
    assert RawModule(code=source, name_expressions=["add"]).get_function("add").name == "add"
    with pytest.raises(AssertionError, match="compiled again"):
        RawKernel(source, "add", ("-DX=1",)).compile()
