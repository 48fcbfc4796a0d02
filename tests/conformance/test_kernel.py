"""Kernels on the host device, and their arguments against the declaration."""

from __future__ import annotations

import ctypes
import gc
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory
from halstream._core import _interop
from halstream.testing import Trace

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("any-kernels")]

SOURCE = r"""
extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""
SIGNATURE = "float32 a, in float32 *x, inout float32 *y, uint32 n"


def saxpy(grid: Any, block: Any, a: Any, x: Any, y: Any, n: Any) -> None:
    y[:n] += a * x[:n]


@pytest.fixture
def kernel() -> hs.Kernel:
    return hs.Kernel(SOURCE, saxpy, name="saxpy", signature=SIGNATURE)


def floats(count: int = 8) -> hs.Array:
    return hs.asarray(np.arange(count, dtype=np.float32))


# -- launching on the host device -------------------------------------------


def test_M11_a_launch_reports_what_it_reads_and_writes_and_runs_in_stream_order(kernel: hs.Kernel, hold: Hold) -> None:
    s, x, y = hs.Stream(), floats(), floats()
    s.launch(kernel, 1, 8, 2.0, x, y, 0)  # a driver may wait for the device when it loads a kernel
    s.synchronize(timeout=LIMIT)
    gate = hold(s)
    with Trace() as trace:
        s.launch(kernel, 1, 8, 2.0, x, y, 8)
        s.launch(kernel, 1, 8, 10.0, y, x, 8)
    assert [(o.reads, o.writes) for o in trace.operations] == [
        (((x.ptr, 32), (y.ptr, 32)), ((y.ptr, 32),)),
        (((y.ptr, 32), (x.ptr, 32)), ((x.ptr, 32),)),
    ]
    assert not s.query()
    gate.open()
    np.testing.assert_array_equal(y.numpy(s), np.arange(8) * 3)
    np.testing.assert_array_equal(x.numpy(s), np.arange(8) * 31)


@pytest.mark.needs("host-kernels")
def test_a_host_form_gets_three_sizes_numpy_scalars_and_views_that_respect_in() -> None:
    seen: list[Any] = []
    s, x, y = hs.Stream(), floats(4), floats(4)

    def look(*args: Any) -> None:
        grid, block, a, flag, source, target, nothing = args
        seen.append((grid, block, type(a), type(flag), source.flags.writeable, target.flags.writeable, nothing))

    signature = "int16 a, bool flag, in float32 *source, out float32 *target, in void *nothing"
    s.launch(hs.Kernel(host=look, signature=signature), (2, 3), [4], 7, True, x[1:3], y, None)
    s.synchronize(timeout=LIMIT)
    assert seen == [((2, 3, 1), (4, 1, 1), np.int16, np.bool_, False, True, None)]


@pytest.mark.needs("host-kernels")
def test_a_host_form_that_raises_is_an_error_of_its_stream_and_later_work_runs(kernel: hs.Kernel) -> None:
    def fail(grid: Any, block: Any) -> None:
        raise ZeroDivisionError("in a kernel")

    s, x, y = hs.Stream(), floats(), floats()
    s.launch(hs.Kernel(host=fail, signature=""), 1, 1)
    s.launch(kernel, 1, 8, 1.0, x, y, 8)
    with pytest.raises(ZeroDivisionError, match="in a kernel"):
        s.synchronize(timeout=LIMIT)
    np.testing.assert_array_equal(y.numpy(s), np.arange(8) * 2)


@pytest.mark.needs("host-kernels")
def test_writing_an_array_declared_in_fails() -> None:
    def wrong(grid: Any, block: Any, x: Any) -> None:
        x[0] = 1

    s = hs.Stream()
    s.launch(hs.Kernel(host=wrong, signature="in float32 *x"), 1, 1, floats())
    with pytest.raises(ValueError, match="read-only"):
        s.synchronize(timeout=LIMIT)


def test_arrays_of_a_pending_launch_live_until_it_has_run(kernel: hs.Kernel, hold: Hold) -> None:
    s, x, y = hs.Stream(), floats(), floats()
    hs.synchronize(0, timeout=LIMIT)
    kernel.load()  # a driver may wait for the device when it loads a kernel
    address = x.ptr
    gate = hold(s)
    s.launch(kernel, 1, 8, 1.0, x, y, 8)
    del x
    gc.collect()
    # Nobody else is given the memory.
    others = [hs.zeros(8, np.float32) for _ in range(20)]
    assert address not in [other.ptr for other in others]
    gate.open()
    np.testing.assert_array_equal(y.numpy(s), np.arange(8) * 2)


@pytest.mark.needs("host-kernels")
def test_pinned_memory_and_blocks_are_arguments() -> None:
    s, pinned, block = hs.Stream(), hs.pinned_empty(4, np.uint8), _memory.DeviceMemory(4)

    def copy(grid: Any, block: Any, source: Any, target: Any) -> None:
        target[:] = source

    pinned[:] = (1, 2, 3, 4)
    s.launch(hs.Kernel(host=copy, signature="in uint8 *source, out void *target"), 1, 1, pinned, block)
    back = np.zeros(4, np.uint8)
    _memory.copy(s, back.__array_interface__["data"][0], block.ptr, 4)
    assert back.tolist() == [1, 2, 3, 4]


@pytest.mark.needs("host-kernels")
def test_M12_a_native_host_form_gets_sizes_and_pointers_to_values(tmp_path: Path) -> None:
    source = tmp_path / "form.c"
    source.write_text(
        "#include <stdint.h>\n"
        "struct launch { uint32_t grid[3], block[3]; void **args; };\n"
        "void form(struct launch *l) {\n"
        "  float a = *(float *)l->args[0]; double *y = *(double **)l->args[1]; int8_t b = *(int8_t *)l->args[2];\n"
        "  if (*(void **)l->args[3] == 0) for (unsigned i = 0; i < l->grid[0] * l->block[1]; i++) y[i] += a * b;\n"
        "}\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "form.so", source], check=True)
    form = ctypes.CDLL(str(tmp_path / "form.so")).form
    kernel = hs.Kernel(host=form, name="form", signature="float32 a, inout float64 *y, int8 b, in uint8 *nothing")
    s, y = hs.Stream(), hs.asarray(np.arange(6.0))
    with Trace() as trace:
        s.launch(kernel, 2, (1, 3), 0.5, y, -4, None)
    assert [(o.kind, o.writes) for o in trace.operations if o.kind == "native"] == [("native", ((y.ptr, 48),))]
    np.testing.assert_array_equal(y.numpy(s), np.arange(6.0) - 2)


# -- bad arguments ----------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((1.0,), "takes 4 arguments .*, not 1"),
        (("1", "x", "x", 8), r"argument 1 \(float32 a\): it takes a number, not str"),
        ((np.float64(1), "x", "x", 8), "argument 1 .* dtype float64"),
        ((1.0, "double", "x", 8), r"argument 2 \(in float32 \*x\): the array has dtype float64"),
        ((1.0, 5, "x", 8), "argument 2 .* takes an Array"),
        ((1.0, "pageable", "x", 8), "argument 2 .* pageable"),
        ((1.0, "x", "read-only", 8), r"argument 3 \(inout float32 \*y\): the target is read-only"),
        ((1.0, "strided", "x", 8), "argument 2 .* not in one piece"),
        ((1.0, "x", "x", -1), "argument 4 .* -1 is not from 0 to 4294967295"),
        ((1.0, "x", "x", 2**32), "argument 4 .* not from 0"),
        ((1.0, "x", "x", 8.0), "argument 4 .* takes no float"),
        ((1.0, "x", "x", True), "argument 4 .* takes no bool"),
    ],
)
def test_arguments_that_do_not_fit_the_declaration_are_named(kernel: hs.Kernel, args: Any, words: str) -> None:
    pinned = hs.pinned_empty(8, np.float32)
    fixed = pinned.view()
    fixed.flags.writeable = False
    given = {
        "x": floats(),
        "double": hs.asarray(np.arange(8.0)),
        "pageable": np.zeros(8, np.float32),
        "read-only": fixed,
        "strided": pinned[::2],
    }
    s = hs.Stream()
    arguments = [given.get(a, a) if isinstance(a, str) else a for a in args]
    with Trace() as trace, pytest.raises(hs.KernelArgumentError, match=words) as caught:
        s.launch(kernel, 1, 8, *arguments)
    assert trace.operations == []
    assert "saxpy" in str(caught.value)
    assert isinstance(caught.value, (hs.InvalidValueError, TypeError))
    s.launch(kernel, 1, 8, 1, given["x"], given["x"], np.uint32(8))
    s.synchronize(timeout=LIMIT)


@pytest.mark.parametrize(
    ("grid", "block", "words"),
    [
        (0, 1, "grid.x is 0"),
        (1, (1, 0), "block.y is 0"),
        ((1, 65536), 1, "grid.y is 65536"),
        (1, (1, 1, 65), "block.z is 65"),
        (1, (1024, 2), "more than 1024 threads"),
        ((1, 1, 1, 1), 1, "grid is one to three integers"),
        (1.5, 1, "grid is one to three integers"),
    ],
)
def test_sizes_that_no_device_launches_are_refused(kernel: hs.Kernel, grid: Any, block: Any, words: str) -> None:
    with pytest.raises(hs.KernelArgumentError, match=words):
        hs.Stream().launch(kernel, grid, block, 1.0, floats(), floats(), 8)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shared": -1}, "shared is -1 bytes, not from 0 to 232448"),
        ({"shared": (227 << 10) + 1}, "shared is 232449 bytes"),
        ({"shared": 1.5}, "shared is an integer, not 1.5"),
        ({"cooperative": 2}, "cooperative is True or False, not 2"),
        ({"cluster": 0}, "cluster.x is 0, not from 1 to 8"),
        ({"cluster": (4, 4)}, "has more than 8 blocks"),
        ({"cluster": 3}, "clusters of .* do not divide the grid"),
        ({"cluster": "2"}, "cluster is one to three integers"),
    ],
)
def test_K2_options_that_no_device_has_are_refused(kernel: hs.Kernel, options: dict[str, Any], words: str) -> None:
    y = floats()
    with pytest.raises(hs.KernelArgumentError, match=words):
        hs.Stream().launch(kernel, (4, 4), 8, 1.0, floats(), y, 8, **options)


def test_K1_a_launch_with_options_runs(kernel: hs.Kernel) -> None:
    s, x, y = hs.Stream(), floats(), floats()
    s.launch(kernel, 1, 8, 2.0, x, y, 8, shared=100 << 10, cooperative=True)
    assert y.numpy(s).tolist() == (3 * np.arange(8, dtype=np.float32)).tolist()


def test_an_array_of_another_device_is_refused(kernel: hs.Kernel) -> None:
    far = hs.empty(8, np.float32, device=1)
    with pytest.raises(hs.WrongDeviceError, match=r"argument 2 .* device 1, the stream on 0"):
        hs.Stream(0).launch(kernel, 1, 8, 1.0, far, floats(), 8)


def test_an_array_whose_memory_was_freed_is_refused(kernel: hs.Kernel) -> None:
    x = floats()
    x._memory.free()
    with pytest.raises(hs.InvalidValueError, match=r"argument 2 .* freed"):
        hs.Stream().launch(kernel, 1, 8, 1.0, x, floats(), 8)


def test_a_kernel_without_a_form_for_the_backend_is_refused_by_name() -> None:
    here, only = (hs.Kernel(b"\x7fELF", name="saxpy", signature=SIGNATURE), "cuda") if hs.backend() == "host" else (
        hs.Kernel(host=saxpy, signature=SIGNATURE), "host")  # fmt: skip
    words = f"kernel saxpy has no form for the {hs.backend()} backend, only for {only}"
    with pytest.raises(hs.NotSupportedError, match=words):
        hs.Stream().launch(here, 1, 8, 1.0, floats(), floats(), 8)
    with pytest.raises(hs.NotSupportedError, match="kernel saxpy has no cuda form"):
        hs.Kernel(host=saxpy, signature=SIGNATURE).compile("sm_80")


def test_a_kernel_is_loaded_by_itself_where_it_has_a_form(kernel: hs.Kernel) -> None:
    assert kernel.load() is None and kernel.load("cuda:1") is None
    with pytest.raises(hs.InvalidDeviceError, match="device 99"):
        kernel.load(99)
    other = {"host": "cuda", "cuda": "host"}[_interop.backend_name()]
    form = {"host": lambda grid, block: None, "cuda": b"\x7fELF"}[other]
    with pytest.raises(hs.NotSupportedError, match="has no form for the"):
        hs.Kernel(**{other: form}, name="half", signature="").load()


def test_launch_takes_a_kernel() -> None:
    with pytest.raises(TypeError, match="takes a Kernel, not function"):
        hs.Stream().launch(saxpy, 1, 1)  # type: ignore[arg-type]


def test_a_dialects_stream_raises_its_own_error(kernel: hs.Kernel) -> None:
    from halstream.cupy import cuda

    with pytest.raises(cuda.runtime.CUDARuntimeError) as caught:
        cuda.Stream().launch(kernel, 1, 8)
    assert isinstance(caught.value, hs.KernelArgumentError)


@pytest.mark.parametrize(
    ("signature", "words"),
    [
        ("float a", "float has another size"),
        ("float32 *x", "a pointer says in, out or inout"),
        ("in float32 x", "a pointer says in, out or inout"),
        ("void x", "void is only for pointers"),
        ("in object *x", "no numeric dtype"),
        ("in what32 *x", "no numeric dtype"),
        ("bytes4097 a", "of 4096 bytes at most"),
        ("in bytes8 *a", "passed by value"),
        ("float32 a,, int32 b", "parameter 2, '', cannot be read"),
    ],
)
def test_a_signature_that_cannot_be_read_is_refused(signature: str, words: str) -> None:
    with pytest.raises(hs.InvalidValueError, match=words):
        hs.Kernel(host=saxpy, signature=signature)


def test_a_kernel_needs_a_form_and_a_name() -> None:
    with pytest.raises(hs.InvalidValueError, match="needs cuda= "):
        hs.Kernel(name="nothing", signature="")
    with pytest.raises(hs.InvalidValueError, match="name= must say"):
        hs.Kernel(SOURCE, signature=SIGNATURE)
    with pytest.raises(TypeError, match="host= is a function"):
        hs.Kernel(host="saxpy", signature=SIGNATURE)
    assert repr(hs.Kernel(host=saxpy, signature=["float32", "in int8*"])) == (
        "<halstream.Kernel saxpy(float32 arg1, in int8 *arg2) for host>"
    )
