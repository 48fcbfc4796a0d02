"""Names that users of cupy meet at once: dtypes, versions, exchange, hooks, the report of the runtime."""

from __future__ import annotations

import copy
import gc
import io
import itertools
import pickle
import re
from typing import Any

import halstream as hs
import halstream.cupy as cp
import numpy as np
import pytest
from halstream import cupyx
from halstream.cupy import cuda
from halstream.cupy.cuda import Device, Stream, driver, memory_hooks, runtime

pytestmark = [pytest.mark.dialect("cupy"), pytest.mark.usefixtures("backend")]


# -- names of NumPy ---------------------------------------------------------


def test_dtypes_and_constants_are_numpys() -> None:
    for name in ("float32", "float64", "int8", "int64", "uint16", "complex64", "bool_", "dtype", "finfo"):
        assert getattr(cp, name) is getattr(np, name)
    assert (cp.float_, cp.complex_, cp.cfloat) == (np.float64, np.complex128, np.complex128)
    assert (cp.pi, cp.newaxis, cp.inf) == (np.pi, None, np.inf)
    assert cp.zeros(2, dtype=cp.float32).dtype == cp.float32
    assert issubclass(cp.AxisError, ValueError)


def test_versions() -> None:
    assert cp.__version__ == "14.2.0"
    assert driver.get_build_version() == runtime.runtimeGetVersion() == 12090
    assert driver._is_cuda_python() is False


def test_the_report_of_the_runtime() -> None:
    info = cupyx.get_runtime_info()
    text = str(info)
    assert re.search(r"^CuPy Version +: 14\.2\.0$", text, re.M)
    assert re.search(rf"^NumPy Version +: {re.escape(np.__version__)}$", text, re.M)
    assert re.search(rf"^CuPy Platform +: halstream \({hs.backend()} backend\)$", text, re.M)
    name = runtime.getDeviceProperties(1)["name"].decode()
    assert re.search(rf"^Device 1 Name +: {re.escape(name)}$", text, re.M)
    assert len({line.index(": ") for line in text.splitlines()}) == 1
    assert str(cupyx.get_runtime_info(full=False)) == text


# -- functions of the runtime -----------------------------------------------


def test_the_type_of_a_pointer() -> None:
    device, pinned = cp.empty(3).data.ptr, cuda.alloc_pinned_memory(8)
    assert runtime.pointerGetMemoryType(device) == runtime.memoryTypeDevice
    assert runtime.pointerGetMemoryType(pinned.ptr) == runtime.memoryTypeHost
    assert runtime.pointerGetMemoryType(np.empty(3).ctypes.data) == runtime.memoryTypeUnregistered


@pytest.mark.needs("host")
def test_limits_of_a_device() -> None:
    heap = runtime.cudaLimitMallocHeapSize
    before = runtime.deviceGetLimit(heap)
    assert before == 8 << 20 and runtime.deviceGetLimit(runtime.cudaLimitStackSize) == 1024
    try:
        runtime.deviceSetLimit(heap, 1 << 24)
        assert runtime.deviceGetLimit(heap) == 1 << 24
        with Device(1):
            assert runtime.deviceGetLimit(heap) == before
    finally:
        runtime.deviceSetLimit(heap, before)
    for call in (lambda: runtime.deviceGetLimit(99), lambda: runtime.deviceSetLimit(99, 1)):
        with pytest.raises(runtime.CUDARuntimeError, match="cudaErrorInvalidValue"):
            call()


@pytest.mark.needs("vendor-memory")
def test_limits_of_a_vendors_device_are_not_built() -> None:
    with pytest.raises(hs.NotSupportedError, match="limits of a vendor's device are not built yet"):
        runtime.deviceGetLimit(runtime.cudaLimitStackSize)


# -- arrays -----------------------------------------------------------------


def test_from_dlpack_shares_memory() -> None:
    a = cp.arange(6).reshape(2, 3)
    b = cp.from_dlpack(a)
    assert isinstance(b, cp.ndarray) and b.data.ptr == a.data.ptr and b.shape == (2, 3)
    b += 1
    assert a.get().tolist() == [[1, 2, 3], [4, 5, 6]]
    c = cp.from_dlpack(a, copy=True)
    assert c.data.ptr != a.data.ptr and c.get().tolist() == a.get().tolist()


def test_from_dlpack_waits_for_the_producer(hold: Any) -> None:
    first, second = Stream(non_blocking=True), Stream(non_blocking=True)
    with first:
        a = cp.zeros(4)
        first.synchronize()
        gate = hold(first)
        a += 5
        with second:
            b = cp.from_dlpack(_Producer(a, first))
            b *= 2
            gate.open()
            assert b.get().tolist() == [10] * 4


class _Producer:
    """An array that another library exports on its own stream."""

    def __init__(self, array: Any, stream: Stream) -> None:
        self.array, self.stream = array, stream

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        # What a producer owes its consumer: the consumer's stream waits for its work.
        Stream.null.synchronize()
        cuda.get_current_stream().wait_event(self.stream.record())
        return self.array.__dlpack__(stream=-1, max_version=options.get("max_version"))


def test_from_dlpack_of_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="__dlpack__"):
        cp.from_dlpack([1, 2])


def test_copies_of_arrays_have_their_own_memory() -> None:
    a = cp.arange(3)
    for made in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        made += 1
        assert made.data.ptr != a.data.ptr and made.get().tolist() == [1, 2, 3]
    assert a.get().tolist() == [0, 1, 2]


def test_both_orders_are_the_same_in_one_dimension() -> None:
    assert cp.array([1, 2], order="F").get().tolist() == [1, 2]
    assert cp.array(7, order="F").get() == 7
    assert cp.array([[1, 2]], order="F").get().tolist() == [[1, 2]]
    with pytest.raises(hs.NotSupportedError, match="not contiguous in C order"):
        cp.array([[1, 2], [3, 4]], order="F")
    with pytest.raises(TypeError, match="subok"):
        cp.array([1], subok=True)


def test_several_indices() -> None:
    host = np.arange(24).reshape(2, 3, 4)
    a = cp.array(host)
    for index in ((0, 1), (1, -1, 2), (1, slice(1, 3)), (0, slice(None)), (slice(None), slice(None)), ()):
        assert a[index].get().tolist() == host[index].tolist(), index
    a[1, 2] = 0
    a[0, 0, 1:3] += 5
    host[1, 2] = 0
    host[0, 0, 1:3] += 5
    assert a.get().tolist() == host.tolist()
    assert [part.get().tolist() for part in a] == host.tolist()


@pytest.mark.parametrize(
    ("index", "error", "text"),
    [
        ((0, 0), IndexError, "too many indices for array: array is 1-dimensional, but 2 were indexed"),
        (3, IndexError, "Index 3 is out of bounds for axis 0 with size 3"),
        (1.5, IndexError, "only integers, slices (`:`), ellipsis (`...`)"),
        ("x", IndexError, "only integers, slices"),
        (None, hs.NotSupportedError, "indexing by None, Ellipsis and arrays is not built yet"),
        ([0, 1], hs.NotSupportedError, "indexing by None, Ellipsis and arrays is not built yet"),
        (slice(None, None, 2), hs.NotSupportedError, "slice with step 1"),
    ],
)
def test_indices_that_are_refused(index: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        cp.arange(3)[index]


def test_an_axis_out_of_bounds_is_named() -> None:
    with pytest.raises(IndexError, match="Index 9 is out of bounds for axis 1 with size 3"):
        cp.zeros((2, 3))[0, 9]
    with pytest.raises(hs.NotSupportedError, match="a slice is followed by an index"):
        cp.zeros((2, 3))[:, 0]
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        list(cp.array(1))


def test_assignment_converts_and_broadcasts() -> None:
    a = cp.zeros((2, 3), np.float32)
    a[:] = cp.arange(3)
    assert a.get().tolist() == [[0, 1, 2]] * 2
    a[1] = cp.array([True, False, True])
    assert a.get().tolist() == [[0, 1, 2], [1, 0, 1]]
    a[0] = cp.array(7)
    a[1].fill(cp.array(5))
    assert a.get().tolist() == [[7] * 3, [5] * 3]
    a[:] = np.ones((2, 3), np.float32)
    assert a.get().tolist() == [[1] * 3] * 2


def test_assignments_that_are_refused() -> None:
    a = cp.zeros((2, 3))
    for value in (cp.zeros(2), cp.zeros((3, 2, 3))):
        with pytest.raises(ValueError, match="operands could not be broadcast together"):
            a[:] = value
    for host in (np.zeros(3), np.zeros((2, 3), np.int8)):
        with pytest.raises(ValueError, match="must ensure arrays have same shape and dtype"):
            a[:] = host
    for many, kind in ((cp.zeros(3), "cupy"), (np.zeros(3), "numpy")):
        with pytest.raises(ValueError, match=f"non-scalar {kind}.ndarray cannot be used for fill"):
            a.fill(many)
    assert not a.get().any()


def test_a_pinned_pointer_is_a_buffer_of_signed_bytes() -> None:
    pointer = cuda.alloc_pinned_memory(16)
    view = memoryview(pointer)
    assert (view.format, view.itemsize, view.ndim, view.readonly) == ("b", 1, 1, False)
    assert view.nbytes == pointer.size() >= 16
    view[3] = -2
    assert np.frombuffer(pointer, np.int8)[3] == -2
    assert isinstance(np.ndarray(4, np.int8, buffer=pointer).base, cuda.PinnedMemoryPointer)
    same, before = pointer, pointer.ptr
    pointer += 3
    assert same is pointer and pointer.ptr == before + 3 and memoryview(pointer)[0] == -2
    pointer -= 3
    assert pointer.ptr == before and view[3] == -2
    assert memoryview(cuda.PinnedMemoryPointer.__new__(cuda.PinnedMemoryPointer)).nbytes == 0


def test_a_view_of_a_pinned_pointer_keeps_the_memory() -> None:
    pool = cuda.PinnedMemoryPool()
    pointer = pool.malloc(16)
    view = memoryview(pointer)
    del pointer
    gc.collect()
    assert pool.n_free_blocks() == 0
    view[0] = 1
    view.release()
    gc.collect()
    assert pool.n_free_blocks() == 1


# -- pinned arrays ----------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "k"])
def test_pinned_arrays_are_laid_out_as_numpys(order: Any) -> None:
    base = np.zeros((2, 3, 4))
    for a in (base, np.asfortranarray(base), base.transpose(1, 0, 2), base[:, :, ::2]):
        for make in (cupyx.empty_like_pinned, cupyx.zeros_like_pinned):
            made = make(a, order=order)
            expected = np.empty_like(a, order=order.upper())
            assert (made.shape, made.strides, made.dtype) == (a.shape, expected.strides, a.dtype)
            assert runtime.pointerGetMemoryType(made.ctypes.data) == runtime.memoryTypeHost
        other = cupyx.zeros_like_pinned(a, np.int16, order, shape=(5, 4))
        assert (other.shape, other.dtype) == ((5, 4), np.int16)
        fortran = (order in "FA" and a.flags.f_contiguous) or order == "F"
        assert other.flags.f_contiguous is fortran and not other.any()


def test_arguments_of_pinned_arrays_are_checked() -> None:
    a = np.zeros((2, 3))
    for make in (cupyx.empty_like_pinned, cupyx.zeros_like_pinned):
        with pytest.raises(ValueError, match="order not understood: X"):
            make(a, order="X")
        with pytest.raises(TypeError, match="subok is not supported yet"):
            make(a, subok=True)
    with pytest.raises(ValueError, match="order"):
        cupyx.empty_pinned((2, 3), order="X")


# -- hooks and measurements -------------------------------------------------


def take(pool: cuda.MemoryPool) -> Any:
    return pool.malloc(1000)


def test_bytes_by_lines_of_the_program() -> None:
    pool = cuda.MemoryPool()
    hook = memory_hooks.LineProfileHook()
    with hook:
        first = take(pool)
        del first
        again = take(pool)  # from the pool, which takes nothing of the device
    report = io.StringIO()
    hook.print_report(report)
    lines = report.getvalue().splitlines()
    assert lines[0] == "_root (2.00KB, 1.00KB)"
    inner = [line for line in lines if ":take " in line]
    assert [line.rsplit(" (")[-1] for line in inner] == ["1.00KB, 1.00KB)", "1.00KB, 0.00B)"]
    here = [line for line in lines if "test_bytes_by_lines_of_the_program" in line]
    assert len(here) == 2 and all(__file__ in line for line in inner + here)
    indents = [len(line) - len(line.lstrip()) for line in lines]
    assert indents[0] == 0 and {b - a for a, b in itertools.pairwise(indents) if b > a} == {2}
    assert again.ptr


def test_the_depth_of_a_profile_is_limited() -> None:
    hook = memory_hooks.LineProfileHook(max_depth=2)
    with hook:
        take(cuda.MemoryPool())
    report = io.StringIO()
    hook.print_report(report)
    assert len(report.getvalue().splitlines()) == 2


def test_benchmark_looks_up_the_elapsed_time_function_in_cupy_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    from halstream.cupyx import profiler

    monkeypatch.setattr(cuda, "get_elapsed_time", lambda start, end: 2500.0)
    result = profiler.benchmark(lambda: None, n_repeat=3, n_warmup=1, name="mine")
    assert result.gpu_times.tolist() == [[2.5] * 3]
