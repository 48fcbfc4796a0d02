"""Kernels in stream order, and what is said of programs that cannot run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _native
from halstream.testing import Trace

LIMIT = 10.0
Hold = Callable[[Any], Any]

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("any-kernels")]

#: Two kernels, as every driver assembles them: n numbers at x become v, and nothing at all.
PTX = """
.version 6.0
.target sm_50
.address_size 64

.visible .entry fill_u32(.param .u64 at, .param .u32 value, .param .u32 count)
{
    .reg .pred %p<2>;
    .reg .b32 %r<7>;
    .reg .b64 %d<4>;

    ld.param.u64 %d1, [at];
    ld.param.u32 %r1, [value];
    ld.param.u32 %r2, [count];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra END;
    cvta.to.global.u64 %d2, %d1;
    mul.wide.u32 %d3, %r6, 4;
    add.u64 %d2, %d2, %d3;
    st.global.u32 [%d2], %r1;
END:
    ret;
}

.visible .entry nothing()
{
    ret;
}
"""

FILL = "out uint32 *x, uint32 v, uint32 n"


def fill_form(grid: Any, block: Any, x: Any, v: Any, n: Any) -> None:
    x[:n] = v


def fill_kernel() -> hs.Kernel:
    return hs.Kernel(PTX, fill_form, name="fill_u32", signature=FILL)


def program(name: str, code: str = PTX, signature: str = FILL) -> hs.Kernel:
    """Return a kernel with no other form than the program's."""
    return hs.Kernel(code, name=name, signature=signature)


# -- K1: order and arguments --------------------------------------------------


def test_K1_a_kernel_runs_in_stream_order_and_the_host_does_not_wait(hold: Hold) -> None:
    s, fill, x = hs.Stream(), fill_kernel(), hs.zeros(8, np.uint32)
    fill.load()  # a driver may wait for the device when it loads a kernel
    hs.synchronize(0, timeout=LIMIT)
    first, last = hs.pinned_empty(8, np.uint32), hs.pinned_empty(8, np.uint32)
    first[:] = last[:] = 99
    gate = hold(s)
    s.launch(fill, 2, 4, x, 5, 8)
    x.copy_to(first, s)
    s.launch(fill, 2, 4, x, 6, 4)
    x.copy_to(last, s)
    assert not s.query()
    assert (first == 99).all() and (last == 99).all()
    gate.open()
    s.synchronize(timeout=LIMIT)
    assert first.tolist() == [5] * 8
    assert last.tolist() == [6] * 4 + [5] * 4


def test_K1_other_streams_are_ordered_with_a_kernel_by_events(hold: Hold) -> None:
    a, b = hs.Stream(non_blocking=True), hs.Stream(non_blocking=True)
    x, out = hs.zeros(4, np.uint32), hs.pinned_empty(4, np.uint32)
    fill = fill_kernel()
    fill.load()
    hs.synchronize(0, timeout=LIMIT)
    gate = hold(a)
    a.launch(fill, 1, 4, x, 3, 4)
    b.wait(a.record())
    x.copy_to(out, b)
    assert not b.query()
    gate.open()
    b.synchronize(timeout=LIMIT)
    assert out.tolist() == [3] * 4


def test_K1_arguments_are_taken_at_the_call(hold: Hold) -> None:
    s, fill = hs.Stream(), fill_kernel()
    arrays = [hs.empty(4, np.uint32) for _ in range(20)]
    fill.load()
    gate = hold(s)
    for i, x in enumerate(arrays):
        s.launch(fill, 1, 4, x, 100 + i, 4)
    gate.open()
    assert [x.numpy(s).tolist() for x in arrays] == [[100 + i] * 4 for i in range(20)]


def test_K1_a_kernel_runs_on_the_device_of_its_stream() -> None:
    fill = fill_kernel()
    streams = [hs.Stream(device=d) for d in (0, 1)]
    arrays = [hs.empty(4, np.uint32, device=d) for d in (0, 1)]
    for value, (s, x) in enumerate(zip(streams, arrays, strict=True), 7):
        s.launch(fill, 1, 4, x, value, 4)
    assert [x.numpy(s).tolist() for s, x in zip(streams, arrays, strict=True)] == [[7] * 4, [8] * 4]
    with pytest.raises(hs.WrongDeviceError):
        streams[1].launch(fill, 1, 4, arrays[0], 9, 4)


def test_K1_many_threads_launch_one_kernel_for_the_first_time() -> None:
    fill, start = fill_kernel(), threading.Barrier(8)
    failed: list[BaseException] = []

    def work(value: int) -> None:
        try:
            s, x = hs.Stream(non_blocking=True), hs.empty(64, np.uint32)
            start.wait(LIMIT)
            for _ in range(20):
                s.launch(fill, 1, 64, x, value, 64)
            assert x.numpy(s).tolist() == [value] * 64
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []


@pytest.mark.needs("kernels")
def test_K1_kernels_of_one_program_can_be_launched_in_turn() -> None:
    s, x = hs.Stream(), hs.zeros(4, np.uint32)
    hs.synchronize(0, timeout=LIMIT)
    s.launch(program("nothing", signature=""), 1, 1)
    s.launch(program("fill_u32"), 1, 4, x, 1, 4)
    s.launch(program("nothing", signature=""), (3, 2, 1), (4, 4, 4))
    assert x.numpy(s).tolist() == [1] * 4


@pytest.mark.needs("kernels")
def test_K1_a_program_in_the_vendors_language_is_compiled_at_its_first_launch() -> None:
    source = r"""
    extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n) {
        unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] += a * x[i];
    }"""
    kernel = program("saxpy", source, "float32 a, in float32 *x, inout float32 *y, uint32 n")
    s = hs.Stream()
    x, y = hs.asarray(np.arange(8, dtype=np.float32)), hs.asarray(np.ones(8, np.float32))
    hs.synchronize(0, timeout=LIMIT)
    s.launch(kernel, 1, 8, 2, x, y, 8)
    np.testing.assert_array_equal(y.numpy(s), 2 * np.arange(8) + 1)


# -- K2: mistakes -------------------------------------------------------------


def refused(s: hs.Stream, error: type[hs.HalError], words: str, kernel: hs.Kernel, *launch: Any) -> hs.HalError:
    """Launch what cannot run; nothing was enqueued, and the stream has no error of it."""
    with Trace() as trace, pytest.raises(error, match=words) as caught:
        s.launch(kernel, *launch)
    assert trace.operations == []
    assert s.query()
    s.synchronize(timeout=LIMIT)
    return caught.value


def test_K2_a_launch_that_cannot_run_fails_at_the_call() -> None:
    s, fill, x = hs.Stream(), fill_kernel(), hs.zeros(4, np.uint32)
    hs.synchronize(0, timeout=LIMIT)
    for words, launch in {
        "more than 1024 threads": (1, (32, 33), x, 1, 4),
        "grid.x is 0": (0, 4, x, 1, 4),
        "takes 3 arguments": (1, 4, x, 1),
        "the array has dtype": (1, 4, hs.empty(4, np.int8), 1, 4),
        "pageable": (1, 4, np.zeros(4, np.uint32), 1, 4),
    }.items():
        refused(s, hs.KernelArgumentError, words, fill, *launch)
    assert x.numpy(s).tolist() == [0] * 4
    s.launch(fill, 1, 4, x, 1, 4)
    assert x.numpy(s).tolist() == [1] * 4


@pytest.mark.needs("host")
def test_K2_the_host_device_loads_no_machine_code() -> None:
    with pytest.raises(hs.InvalidValueError, match="machine code of a GPU"):
        _native.module_load(0, "hex:" + b"\x7fELF".hex())


@pytest.mark.needs("kernels")
def test_K2_an_error_in_a_program_is_raised_with_the_compilers_text() -> None:
    s, x = hs.Stream(), hs.zeros(4, np.uint32)
    hs.synchronize(0, timeout=LIMIT)
    wrong = program("fill_u32", PTX.replace("setp.ge.u32", "syntax_error_here"))
    exc = refused(s, hs.CompileError, "kernel fill_u32", wrong, 1, 4, x, 1, 4)
    assert isinstance(exc, hs.CompileError)
    assert "syntax" in exc.log.lower() and exc.log in str(exc)
    s.launch(program("fill_u32"), 1, 4, x, 2, 4)
    assert x.numpy(s).tolist() == [2] * 4


@pytest.mark.needs("kernels")
def test_K2_an_error_in_a_source_is_raised_with_the_compilers_text() -> None:
    source = 'extern "C" __global__ void fill_u32(unsigned *x, unsigned v, unsigned n) { y[0] = v; }'
    x = hs.empty(4, np.uint32)
    exc = refused(hs.Stream(), hs.CompileError, "does not compile", program("fill_u32", source), 1, 4, x, 1, 4)
    assert isinstance(exc, hs.CompileError)
    assert 'identifier "y" is undefined' in exc.log


@pytest.mark.needs("kernels")
def test_K2_the_error_for_a_missing_kernel_lists_the_kernels_of_the_program() -> None:
    words = "no kernel 'other'; it has fill_u32, nothing"
    refused(hs.Stream(), hs.HalError, words, program("other"), 1, 4, hs.empty(4, np.uint32), 1, 4)
