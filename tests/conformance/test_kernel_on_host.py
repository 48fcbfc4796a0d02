"""Kernels that the host device executes from PTX: what it checks, and what the sanitizer knows of them."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Callable
from typing import Any

import halstream as hs
import numpy as np
import pytest
from halstream import _memory
from halstream._kernel import _launch
from halstream._kernel._packing import CELL, shape_of

LIMIT = 10.0

pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("kernels", "schedules")]

# y[i] = x[i] * factor, for the rows from `first` on.
SCALE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 y, .param .u64 x, .param .f32 factor, .param .u32 first, .param .u32 n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .f32 %f<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [y];
    ld.param.u64 %d2, [x];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r1, [first];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x;
    mov.u32 %r4, %ntid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.u32 %r6, %r3, %r4, %r5;
    setp.ge.u32 %p1, %r6, %r2;
    @%p1 bra END;
    add.u32 %r7, %r6, %r1;
    mul.wide.u32 %d3, %r7, 4;
    add.u64 %d4, %d1, %d3;
    add.u64 %d5, %d2, %d3;
    ld.global.f32 %f2, [%d5];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%d4], %f3;
END:
    ret;
}
"""
NEVER_ENDS = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin() { AGAIN: bra AGAIN; }
"""
COUNT = """
.version 7.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 first = 1;
.visible .global .align 4 .u32 counter = 3;
.visible .entry count(.param .u32 by)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<2>;
    ld.param.u32 %r1, [by];
    mov.u64 %d1, counter;
    atom.global.add.u32 %r2, [%d1], %r1;
    ret;
}
"""


# x[i] = v + the word i of the box, which the kernel is given by value.
BOX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry box(.param .u32 v, .param .align 8 .b8 box[40], .param .u64 x)
{
    .reg .b32 %r<5>;
    .reg .b64 %d<8>;
    ld.param.u32 %r1, [v];
    ld.param.u64 %d1, [x];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %d2, %r2, 4;
    mov.b64 %d3, box;
    add.u64 %d4, %d3, %d2;
    ld.param.u32 %r3, [%d4];
    add.u32 %r4, %r3, %r1;
    add.u64 %d5, %d1, %d2;
    st.global.u32 [%d5], %r4;
    ret;
}
"""


def scale_kernel() -> hs.Kernel:
    return hs.Kernel(
        SCALE, name="scale", signature="inout float32 *y, in float32 *x, float32 factor, uint32 first, uint32 n"
    )


class Box(ctypes.Structure):
    _fields_ = (("a", ctypes.c_uint32 * 4), ("b", ctypes.c_uint32 * 6))


STRUCTS = [
    bytes(range(40)),
    bytearray(range(40)),
    Box.from_buffer_copy(bytes(range(40))),
    np.frombuffer(bytes(range(40)), [("a", "<u4", 4), ("b", "<u8", 3)])[0],
]


@pytest.mark.parametrize("box", STRUCTS, ids=lambda box: type(box).__name__)
@pytest.mark.parametrize("checked", [False, True])
def test_K1_a_struct_is_passed_by_value(box: Any, checked: bool) -> None:
    kernel = hs.Kernel(BOX, name="box", signature="uint32 v, bytes40 box, out uint32 *x")
    x, s = hs.zeros(10, np.uint32), hs.Stream()
    with hs.sanitize(on="collect") if checked else contextlib.nullcontext():
        for _ in range(2):  # the second one takes the short way
            s.launch(kernel, 1, 10, 7, box, x)
        result = x.numpy(s)
    np.testing.assert_array_equal(result, np.frombuffer(bytes(range(40)), np.uint32) + 7)


def test_K2_a_struct_of_another_size_is_refused_by_name() -> None:
    kernel = hs.Kernel(BOX, name="box", signature="uint32 v, bytes40 box, out uint32 *x")
    x, s = hs.zeros(10, np.uint32), hs.Stream()
    with pytest.raises(hs.KernelArgumentError, match=r"argument 2 \(bytes40 box\): it takes 40 bytes, not 39"):
        s.launch(kernel, 1, 10, 7, bytes(39), x)
    with pytest.raises(hs.KernelArgumentError, match=r"argument 2 \(bytes40 box\): it takes bytes, .* not float"):
        s.launch(kernel, 1, 10, 7, 1.5, x)
    other = hs.Kernel(BOX, name="box", signature="uint32 v, bytes44 box, out uint32 *x")
    with pytest.raises(hs.KernelArgumentError, match=r"declared with 3 parameters of 4, 44, 8 bytes .* 4, 40, 8 bytes"):
        s.launch(other, 1, 10, 7, bytes(44), x)


def test_K3_a_kernel_runs_under_every_schedule() -> None:
    scale = scale_kernel()
    for spec in ("fifo", "latest", "random 3"):
        with hs.testing.schedule(spec):
            a, b = hs.Stream(), hs.Stream()
            x, y = hs.asarray(np.arange(100, dtype=np.float32)), hs.zeros(100, np.float32)
            hs.synchronize(0, timeout=LIMIT)
            a.launch(scale, 2, 64, y, x, 2, 0, 100)
            b.wait_stream(a)
            b.launch(scale, 2, 64, y, y, 3, 50, 50)
            expected = np.arange(100) * 2.0
            expected[50:] *= 3
            np.testing.assert_array_equal(y.numpy(b), expected)


def test_K4_two_modules_of_one_program_share_no_variable() -> None:
    s = hs.Stream()
    programs = [_launch.Program(0, COUNT.encode() + b"\0") for _ in range(2)]
    for program, by in zip(programs, (1, 10), strict=True):
        program.variable("first")  # is memory now, and the one behind it still the kernel's own
        count, shape = program.function("count"), shape_of("count", 2, 1)
        _launch.enqueue("count", count, s, shape, b"-", by.to_bytes(CELL, "little"), ())
    found = []
    for program in programs:
        address, size = program.variable("counter")
        assert size == 4
        value = hs.pinned_empty(1, np.uint32)
        _memory.copy(s, value.ctypes.data, address, size, value)
        s.synchronize(timeout=LIMIT)
        found.append(int(value[0]))
    assert found == [5, 23]
    with pytest.raises(hs.InvalidValueError, match="no variable none"):
        programs[0].variable("none")


def test_K4_what_a_kernel_does_with_a_variable_that_was_asked_for_is_compared() -> None:
    a, b, value = hs.Stream(), hs.Stream(), hs.pinned_empty(1, np.uint32)
    program = _launch.Program(0, COUNT.encode() + b"\0")
    address, size = program.variable("counter")
    count, shape = program.function("count"), shape_of("count", 2, 1)
    with hs.sanitize(on="collect") as report:
        _launch.enqueue("count", count, a, shape, b"-", (1).to_bytes(CELL, "little"), ())
        _memory.copy(b, value.ctypes.data, address, size, value)
        hs.synchronize(0, timeout=LIMIT)
    (found,) = report.races
    assert "touch the same 4 bytes" in found.text and "count writes on" in found.text


def test_K3_every_dialect_says_that_the_host_device_has_capability_8_0() -> None:
    from halstream.cupy import cuda as cupy_cuda
    from halstream.mindspore import hal
    from halstream.paddle import device
    from halstream.torch import cuda as torch_cuda

    paddle, torch = device.get_device_properties(0), torch_cuda.get_device_properties(0)
    assert {(p.major, p.minor) for p in (paddle, torch)} == {(8, 0)} == {hal.get_device_capability(0, "GPU")}
    assert cupy_cuda.Device(0).compute_capability == "80"
    assert hal.get_device_properties(0, "GPU").warp_size == torch.warp_size == 32
    counts = {p.multi_processor_count for p in (paddle, torch, hal.get_device_properties(0, "GPU"))}
    assert len(counts) == 1 and min(counts) >= 2


def races_of_rows(rows: int) -> list[str]:
    """Return what is reported of a kernel that writes the first rows beside one that writes those from 32 on."""
    scale = scale_kernel()
    with hs.sanitize(on="collect") as report:
        a, b = hs.Stream(), hs.Stream()
        x, y = hs.asarray(np.ones(64, np.float32)), hs.zeros(64, np.float32)
        hs.synchronize(0, timeout=LIMIT)
        a.launch(scale, 2, 32, y, x, 2, 0, rows)
        b.launch(scale, 1, 32, y, x, 2, 32, 32)
        hs.synchronize(0, timeout=LIMIT)
    return [finding.text for finding in report]


def test_V45_kernels_that_write_different_rows_of_an_array_are_not_reported() -> None:
    assert races_of_rows(32) == []


def test_V45_one_row_too_far_is_reported() -> None:
    (text,) = races_of_rows(33)
    assert "4 bytes" in text and "scale" in text, text


# x[i] = the word that the next thread of the block wrote into shared memory.
NEXT = """
.version 7.0
.target sm_80
.address_size 64
.file 1 "next.cu"
.visible .entry next(.param .u64 x)
{
    .shared .align 4 .b8 words[256];
    .reg .b32 %r<8>;
    .reg .b64 %d<4>;
    ld.param.u64 %d1, [x];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, words;
    add.u32 %r4, %r3, %r2;
    .loc 1 7 5
    st.shared.u32 [%r4], %r1;
    // BARRIER
    add.u32 %r5, %r2, 4;
    and.b32 %r5, %r5, 255;
    add.u32 %r6, %r3, %r5;
    .loc 1 9 5
    ld.shared.u32 %r7, [%r6];
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r7;
    ret;
}
"""


def mistakes(barrier: str) -> Any:
    """Return what is found of two launches of NEXT."""
    kernel = hs.Kernel(NEXT.replace("// BARRIER", barrier), name="next", signature="out uint32 *x")
    with hs.sanitize(on="collect") as report:
        s, x = hs.Stream(), hs.zeros(64, np.uint32)
        hs.synchronize(0, timeout=LIMIT)
        for _ in range(2):
            s.launch(kernel, 1, 64, x)
        s.synchronize(timeout=LIMIT)
    assert x.numpy(s)[0] == 1  # the stream goes on
    return report


def test_K5_a_race_in_shared_memory_is_a_finding_with_its_line_and_thread() -> None:
    report = mistakes("")
    assert len(report) >= 1 and list(report) == report.kernels and not report.races
    finding = report.kernels[0]
    assert finding.category == "kernel" and finding.tool == "racecheck" and finding.pairs == 2
    expected = (
        r"racecheck: Race reported between (Read|Write) access of thread \(\d+,0,0\) at __shared__ 0x\w+ "
        r"at kernel next \(next.cu:[79]\) by thread \(\d+,0,0\) in block \(0,0,0\); and (Read|Write) access of thread "
        r"\(\d+,0,0\) at next.cu:[79] .*\n  launched on stream \d+ \(s\)\n"
    )
    assert re.match(expected, finding.text), finding.text
    assert finding.first.frames[0].file == __file__ and "s.launch(kernel, 1, 64, x)" in finding.text
    assert "in 2 launches" in finding.text and "kernel" in report.summary and finding.text in str(report)


def test_K5_with_the_barrier_there_is_no_finding() -> None:
    assert mistakes("bar.sync 0;").all == []


def test_K5_a_mistake_of_a_kernel_raises_and_can_be_suppressed() -> None:
    kernel = hs.Kernel(NEXT, name="next", signature="out uint32 *x")

    def launch() -> None:
        x = hs.zeros(64, np.uint32)
        hs.Stream().launch(kernel, 1, 64, x)
        hs.synchronize(0, timeout=LIMIT)

    with pytest.raises(hs.UnorderedAccessError, match="racecheck: Race reported"), hs.sanitize():
        launch()
    with hs.sanitize(suppressions=[f"kernel:{__file__}"]) as report:
        launch()
    assert not report and report.suppressed >= 1


def of_memory(make: Callable[[hs.Stream], Any], rows: int = 64) -> list[hs.Finding]:
    """Return what is found of a kernel that reads the first rows of an array."""
    scale = scale_kernel()
    with hs.sanitize(on="collect") as report:
        s = hs.Stream()
        x, y = make(s), hs.zeros(64, np.float32)
        hs.synchronize(0, timeout=LIMIT)
        s.launch(scale, 2, 32, y, x, 2, 0, rows)
        s.launch(scale, 2, 32, y, x, 2, 0, rows)
        s.synchronize(timeout=LIMIT)
    return list(report)


def half_written(s: hs.Stream) -> Any:
    x = hs.empty(64, np.float32)
    x[:32].fill(1, s)
    return x


def test_K5_a_kernel_that_reads_memory_that_nobody_wrote_is_reported_once() -> None:
    assert of_memory(half_written, rows=32) == []
    (finding,) = of_memory(half_written)
    assert finding.tool == "initcheck" and finding.nbytes == 128
    assert "Uninitialized __global__ memory read of size 128 bytes at address 0x" in finding.text
    assert "bytes 128 to 255 of `x`, device memory" in finding.text and "at kernel scale" in finding.text


def by_view(view: Callable[[Any], Any]) -> Any:
    """Return an array that is written by a view of its memory, which no call shows."""
    x = hs.empty(64, np.float32)
    view(x)[:] = 1
    return x


def by_function(s: hs.Stream) -> Any:
    """Return an array that is written by a function which does not say so."""
    x = hs.empty(64, np.float32)
    s.call(lambda: x._as_host().fill(1))
    return x


WRITERS: dict[str, Callable[[hs.Stream], Any]] = {
    "asarray": lambda s: hs.asarray(np.ones(64, np.float32)),
    "zeros": lambda s: hs.zeros(64, np.float32),
    "a view of NumPy": lambda s: by_view(np.asarray),
    "DLPack": lambda s: by_view(np.from_dlpack),
    "a function": by_function,
}


@pytest.mark.parametrize("make", WRITERS.values(), ids=WRITERS)
def test_K5_memory_that_was_written_is_not_reported(make: Callable[[hs.Stream], Any]) -> None:
    assert of_memory(make) == []


def test_K3_what_a_kernel_prints_is_on_the_standard_output(child: Callable[..., Any]) -> None:
    done = child(
        r"""
        import halstream as hs
        source = 'extern "C" __global__ void hello(int n) { printf("hello %d\\n", n + threadIdx.x); }'
        s = hs.Stream()
        s.launch(hs.Kernel(source, name="hello", signature="int32 n"), 1, 2, 5)
        s.synchronize(timeout=60)
        """
    )
    assert (done.returncode, done.stdout) == (0, "hello 5\nhello 6\n"), done.stderr


def test_K3_a_kernel_that_does_not_end_fails(child: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HALSTREAM_KERNEL_LIMIT", "100000")
    done = child(
        f"""
        import halstream as hs
        s = hs.Stream()
        s.launch(hs.Kernel({NEVER_ENDS!r}, name="spin", signature=""), 1, 32)
        try:
            s.synchronize(timeout=60)
        except hs.DeviceLostError as exc:
            assert "spin" in str(exc) and "100000" in str(exc), exc
            print("failed")
        hs.testing.recover()
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "failed\n"


def test_K3_memory_that_was_freed_before_the_launch_is_out_of_bounds(child: Callable[..., Any]) -> None:
    done = child(
        f"""
        import halstream as hs, numpy as np
        s = hs.Stream()
        parameters = "uint64 y, uint64 x, float32 factor, uint32 first, uint32 n"
        scale = hs.Kernel({SCALE!r}, name="scale", signature=parameters)
        x = hs.asarray(np.ones(8, np.float32))
        y = hs.zeros(8, np.float32)
        at = x.ptr
        x._memory.free()
        s.launch(scale, 1, 8, y.ptr, at, 2, 0, 8)
        try:
            s.synchronize(timeout=60)
        except hs.DeviceLostError as exc:
            assert "Invalid __global__ read" in str(exc) and exc.code == 700, exc
            print("failed")
        hs.testing.recover()
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "failed\n"
