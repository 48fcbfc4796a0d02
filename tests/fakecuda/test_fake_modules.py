"""Modules, functions and launches of the look-alike driver."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from ctypes import byref, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p, create_string_buffer

import pytest
from fakecuda_help import ILLEGAL_ADDRESS, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, Driver, ptx
from which_driver import fake_only

Start = Callable[..., Driver]
GOOD = ptx("fill_u32", "u64 u32 u32")


def load(driver: Driver, image: bytes) -> int:
    return int(driver.cuModuleLoadData(byref(c_uint64()), image))


def floats(driver: Driver, *values: float) -> int:
    memory = driver.memory(4 * len(values))
    assert driver.cuMemcpyHtoD_v2(memory, struct.pack(f"{len(values)}f", *values), 4 * len(values)) == 0
    driver.cuCtxSynchronize()
    return memory


def read_floats(driver: Driver, address: int, n: int) -> list[float]:
    return list(struct.unpack(f"{n}f", driver.read(address, 4 * n)))


made_up = fake_only("the image is made up")


@pytest.mark.parametrize(
    ("image", "code"),
    [
        (GOOD, 0),
        (GOOD.replace(b"ret;", b"syntax_error_here;"), 218),
        (GOOD.replace(b"}", b""), 218),
        (GOOD.replace(b".version 6.0", b""), 200),
        (GOOD.replace(b"6.0", b"9.9"), 222),
        (GOOD.replace(b"sm_50", b"sm_100"), 218),
        pytest.param(b"\x7fELF sm_80\0", 209, marks=made_up),
        pytest.param(b"\x7fELF sm_90 .text.fill_u32\0", 0, marks=made_up),
        (b"\0\0\0\0", 200),
    ],
)
def test_images(cuda: Driver, image: bytes, code: int) -> None:
    """Spec 3.8: what each mistake of an image is called."""
    assert load(cuda, image) == code
    assert cuda.count("live.modules") == (code == 0)


def test_the_error_log_names_the_line(cuda: Driver) -> None:
    """Spec 4: options 3 to 6; the sizes come back as what was written."""
    error, info = create_string_buffer(256), create_string_buffer(256)
    options = (c_int * 4)(5, 6, 3, 4)
    values = (c_void_p * 4)(ctypes.addressof(error), 256, ctypes.addressof(info), 256)
    image = b".version 6.0\n.target sm_50\nsyntax_error_here { }\0"
    assert cuda.cuModuleLoadDataEx(byref(c_uint64()), image, 4, options, values) == 218
    assert b"line 3" in error.value and values[1] == len(error.value)


def test_a_log_that_is_too_small_is_cut(cuda: Driver) -> None:
    log = create_string_buffer(b"#" * 16, 16)
    values = (c_void_p * 2)(ctypes.addressof(log), 8)
    cuda.cuModuleLoadDataEx(byref(c_uint64()), b"nothing\0", 2, (c_int * 2)(5, 6), values)
    assert (len(log.value), values[1]) == (7, 8) and log.raw[8:] == b"#" * 8


def test_functions_are_found_by_name(cuda: Driver) -> None:
    module = cuda.made("cuModuleLoadData", GOOD)
    function = cuda.made("cuModuleGetFunction", module, b"fill_u32")
    assert function == cuda.made("cuModuleGetFunction", module, b"fill_u32")
    assert cuda.cuModuleGetFunction(byref(c_uint64()), module, b"other") == 500
    place = c_int()
    assert cuda.cuFuncGetAttribute(byref(place), 0, function) == 0 and place.value == 1024
    assert cuda.cuFuncLoad(function) == 0


def test_an_unloaded_module_takes_its_functions_along(cuda: Driver) -> None:
    module = cuda.made("cuModuleLoadData", GOOD)
    function = cuda.made("cuModuleGetFunction", module, b"fill_u32")
    assert [cuda.cuModuleUnload(module), cuda.cuModuleUnload(module)] == [0, INVALID_HANDLE]
    assert cuda.launch(function, cuda.stream()) == INVALID_HANDLE


def test_kernels_compute(cuda: Driver) -> None:
    stream, x, y, out = cuda.stream(), floats(cuda, 1, 2, 3), floats(cuda, 10, 20, 30), cuda.memory(12)
    pointers = [c_uint64(address) for address in (x, y, out)]
    scale = cuda.function("scale_f32", "u64 f32 u32")
    add = cuda.function("add_f32", "u64 u64 u64 u32")
    saxpy = cuda.function("saxpy", "f32 u64 u64 u32")
    assert cuda.launch(scale, stream, pointers[0], c_float(2), c_uint32(3)) == 0
    assert cuda.launch(add, stream, pointers[2], pointers[0], pointers[1], c_uint32(3)) == 0
    assert cuda.launch(saxpy, stream, c_float(0.5), pointers[0], pointers[1], c_uint32(2)) == 0
    assert cuda.cuStreamSynchronize(stream) == 0
    assert read_floats(cuda, out, 3) == [12, 24, 36] and read_floats(cuda, y, 3) == [11, 22, 30]


def test_a_launch_runs_in_stream_order_with_the_arguments_of_the_call(cuda: Driver) -> None:
    """Spec 3.8: values are copied at the call."""
    stream, fill, memory = cuda.stream(), cuda.function("fill_u32", "u64 u32 u32"), cuda.memory(4)
    word, value = cuda.hold(stream), c_uint32(1)
    assert cuda.launch(fill, stream, c_uint64(memory), value, c_uint32(1)) == 0
    value.value = 2
    assert cuda.pending(stream)
    word.value = 1
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, 4) == b"\1\0\0\0"


def test_arguments_in_one_buffer(cuda: Driver) -> None:
    """Spec 4: the extra list of a launch."""
    stream, fill, memory = cuda.stream(), cuda.function("fill_u32", "u64 u32 u32"), cuda.memory(4)
    packed = create_string_buffer(struct.pack("=QII", memory, 7, 1), 16)
    size = c_size_t(16)
    extra = (c_void_p * 5)(1, ctypes.addressof(packed), 2, ctypes.addressof(size), None)
    assert cuda.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, stream, None, extra) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and cuda.read(memory, 4) == b"\7\0\0\0"


@pytest.mark.parametrize(
    ("grid", "block", "code"),
    [
        ((1, 1, 1), (1024, 1, 1), 0),
        ((0, 1, 1), (1, 1, 1), INVALID_VALUE),
        ((1, 1, 1), (1, 0, 1), INVALID_VALUE),
        ((1, 1, 1), (1025, 1, 1), INVALID_VALUE),
        ((1, 1, 1), (32, 33, 1), INVALID_VALUE),
        ((1, 1, 1), (1, 1, 65), INVALID_VALUE),
        ((1, 65536, 1), (1, 1, 1), INVALID_VALUE),
    ],
)
def test_shapes_have_limits(cuda: Driver, grid: tuple[int, ...], block: tuple[int, ...], code: int) -> None:
    """Spec 3.8: 1 for bad dimensions, at the call."""
    assert cuda.launch(cuda.function("nothing", ""), cuda.stream(), grid=grid, block=block) == code


def most_blocks(cuda: Driver) -> int:
    """How many blocks of 1024 threads the device runs at once."""
    threads, processors = (cuda.made("cuDeviceGetAttribute", number, 0) for number in (39, 16))
    return threads // 1024 * processors


def test_a_cooperative_launch_must_fit_the_device(cuda: Driver) -> None:
    """Spec 5: 720 is about the call and not sticky."""
    nothing, stream = cuda.function("nothing", ""), cuda.stream()
    assert cuda.cuLaunchCooperativeKernel(nothing, 8, 1, 1, 1024, 1, 1, 0, stream, None) == 0
    assert cuda.cuLaunchCooperativeKernel(nothing, most_blocks(cuda) + 1, 1, 1, 1024, 1, 1, 0, stream, None) == 720
    assert cuda.cuStreamSynchronize(stream) == 0


class Config(ctypes.Structure):
    """CUlaunchConfig; spec section 2."""

    _fields_ = [("shape", c_uint32 * 7), ("stream", c_uint64), ("attrs", c_void_p), ("count", c_uint32)]


class Attribute(ctypes.Structure):
    """CUlaunchAttribute; spec section 2."""

    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_int), ("rest", c_int * 15)]


def test_launches_with_attributes(cuda: Driver) -> None:
    """Spec 2 and 4: attribute 2 makes a launch cooperative."""
    nothing, one = cuda.function("nothing", ""), Attribute(2, 0, 1)
    config = Config((c_uint32 * 7)(most_blocks(cuda) + 1, 1, 1, 1024, 1, 1, 0), cuda.stream(), None, 0)
    assert ctypes.sizeof(config) == 56 and ctypes.sizeof(one) == 72
    assert cuda.cuLaunchKernelEx(byref(config), nothing, None, None) == 0
    config.attrs, config.count = ctypes.addressof(one), 1
    assert cuda.cuLaunchKernelEx(byref(config), nothing, None, None) == 720


def test_more_shared_memory_than_48_kib_is_asked_for_with_an_attribute(cuda: Driver) -> None:
    """Spec 3.8: up to what the device has for a block, and 1 above."""
    nothing, stream, found = cuda.function("nothing", ""), cuda.stream(), c_int()

    def launch(shared: int) -> int:
        code: int = cuda.cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, shared, stream, None, None)
        return code

    assert launch(48 << 10) == 0 and launch((48 << 10) + 1) == INVALID_VALUE
    assert cuda.cuFuncSetAttribute(nothing, 8, (227 << 10) + 1) == INVALID_VALUE
    assert cuda.cuFuncSetAttribute(nothing, 8, 100 << 10) == 0
    assert cuda.cuFuncGetAttribute(byref(found), 8, nothing) == 0 and found.value == 100 << 10
    assert launch(100 << 10) == 0 and cuda.count("launched.shared") == 100 << 10
    assert launch((100 << 10) + 1) == INVALID_VALUE


@pytest.mark.parametrize(
    ("cluster", "code"),
    [((2, 2, 1), 0), ((8, 1, 1), 0), ((3, 1, 1), INVALID_VALUE), ((0, 1, 1), INVALID_VALUE), ((8, 2, 1), 912)],
)
def test_clusters_divide_the_grid(start: Start, cluster: tuple[int, int, int], code: int) -> None:
    """Attribute 4 of a launch, which drivers from 11.8 have: at most eight blocks."""
    for version, expected in ((12090, code), (11070, INVALID_VALUE)):
        driver = start(version=version)
        driver.context()
        four = Attribute(4, 0, cluster[0], (c_int * 15)(cluster[1], cluster[2]))
        config = Config((c_uint32 * 7)(8, 2, 1, 1, 1, 1, 0), driver.stream(), ctypes.addressof(four), 1)
        assert driver.cuLaunchKernelEx(byref(config), driver.function("nothing", ""), None, None) == expected
        launched = cluster[0] * cluster[1] * cluster[2] if expected == 0 else 0
        assert driver.count("launched.cluster") == launched


def test_function_and_stream_are_of_one_context(start: Start) -> None:
    """Spec 3.8: 400 otherwise."""
    driver = start()
    driver.context(1)
    other = driver.stream()
    driver.context(0)
    assert driver.launch(driver.function("nothing", ""), other) == INVALID_HANDLE


def test_a_function_without_a_kernel_here_cannot_be_launched(cuda: Driver) -> None:
    """So that no test takes a launch that did nothing for one that worked."""
    assert cuda.launch(cuda.function("mystery", "u64"), cuda.stream(), c_uint64(0)) == NOT_SUPPORTED
    assert cuda.launch(cuda.function("fill_u32", "u64 u64 u64"), cuda.stream(), *[c_uint64(0)] * 3) == NOT_SUPPORTED


def test_missing_arguments_are_an_invalid_value(cuda: Driver) -> None:
    fill = cuda.function("fill_u32", "u64 u32 u32")
    assert cuda.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, cuda.stream(), None, None) == INVALID_VALUE


@pytest.mark.parametrize("what", ["host", "freed", "beyond"])
def test_a_wild_pointer_is_a_fault(cuda: Driver, what: str) -> None:
    """Spec 6.5: noticed later, and then every call gives the code."""
    fill, memory, stream = cuda.function("fill_u32", "u64 u32 u32"), cuda.memory(8), cuda.stream()
    freed = cuda.memory(8)
    cuda.cuMemFree_v2(freed)
    buffer = create_string_buffer(8)
    address, count = {"host": (ctypes.addressof(buffer), 1), "freed": (freed, 1), "beyond": (memory, 3)}[what]
    assert cuda.launch(fill, stream, c_uint64(address), c_uint32(1), c_uint32(count)) == 0
    assert cuda.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS
    assert cuda.cuStreamCreate(byref(c_uint64()), 0) == ILLEGAL_ADDRESS


def test_pinned_memory_may_be_used_by_kernels(cuda: Driver) -> None:
    fill, memory, stream = cuda.function("fill_u32", "u64 u32 u32"), cuda.pinned(4), cuda.stream()
    assert cuda.launch(fill, stream, c_uint64(memory), c_uint32(5), c_uint32(1)) == 0
    assert cuda.cuStreamSynchronize(stream) == 0 and ctypes.string_at(memory, 4) == b"\5\0\0\0"


@pytest.mark.parametrize("enabled", [True, False])
def test_memory_of_another_device_needs_peer_access(start: Start, enabled: bool) -> None:
    driver = start()
    peer = driver.context(1)
    there = driver.memory(4)
    driver.context(0)
    if enabled:
        assert driver.cuCtxEnablePeerAccess(peer, 0) == 0
    stream, fill = driver.stream(), driver.function("fill_u32", "u64 u32 u32")
    driver.launch(fill, stream, c_uint64(there), c_uint32(5), c_uint32(1))
    assert driver.cuStreamSynchronize(stream) == (0 if enabled else ILLEGAL_ADDRESS)


def test_loading_is_lazy(cuda: Driver) -> None:
    """Spec 6.12."""
    assert cuda.asked("cuModuleGetLoadingMode", type=c_int) == 2
