"""cuda.core's programs and kernels: compilation, arguments, launches, and what is refused."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import halstream as hs
import numpy as np
import pytest
from cuda_help import ONE, PTX, device, kernel, numbers
from halstream.cuda import core
from halstream.cuda.core._utils.cuda_utils import CUDAError, NVRTCError

LIMIT = 10.0
SIZE = "must be an int, or a tuple with up to 3 ints"

# The look-alike of the driver executes no programs.
pytestmark = [pytest.mark.usefixtures("backend"), pytest.mark.needs("kernels", "schedules")]

SCALE = """
extern "C" __global__ void scale(float *x, float by, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
template <typename T> __global__ void store(T *to, T value) { to[threadIdx.x] = value; }
"""


@pytest.fixture
def dev() -> core.Device:
    return device()


@pytest.fixture
def stream(dev: core.Device) -> core.Stream:
    return dev.create_stream()


# -- sizes of launches ---------------------------------------------------------


@pytest.mark.row(39)
def test_sizes_are_filled_up(dev: core.Device) -> None:
    config = core.LaunchConfig(grid=4, block=(8, 2))
    assert (config.grid, config.block, config.cluster, config.shmem_size) == ((4, 1, 1), (8, 2, 1), None, 0)
    same = core.LaunchConfig((4, 1, 1), None, (8, 2, 1))
    assert config == same and hash(config) == hash(same) and config != ONE and config != 3
    assert repr(config) == (
        "LaunchConfig(grid=(4, 1, 1), cluster=None, block=(8, 2, 1), shmem_size=0, is_cooperative=False, "
        "programmatic_stream_serialization=False)"
    )


@pytest.mark.row(40)
@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"grid": 1}, f"LaunchConfig.block {SIZE} (got <class 'NoneType'>)"),
        ({"grid": 0, "block": 1}, "LaunchConfig.grid value must be >= 1 (got 0)"),
        ({"grid": 1, "block": (1, -2)}, "LaunchConfig.block value must be >= 1 (got -2)"),
        ({"grid": (1, 2, 3, 4), "block": 1}, f"LaunchConfig.grid {SIZE} (got tuple with length 4)"),
        ({"grid": [1], "block": 1}, f"LaunchConfig.grid {SIZE} (got <class 'list'>)"),
        ({"grid": 1, "block": ("a",)}, f"LaunchConfig.block {SIZE} (got ('a',))"),
    ],
)
def test_sizes_that_are_refused(dev: core.Device, sizes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as caught:
        core.LaunchConfig(**sizes)
    assert str(caught.value) == text


@pytest.mark.row(42)
@pytest.mark.needs("host")
def test_clusters_need_a_device_that_has_them(dev: core.Device) -> None:
    assert core.LaunchConfig(grid=1, block=1, is_cooperative=True).is_cooperative
    with pytest.raises(CUDAError, match=r"^thread block clusters are not supported on devices with compute capability"):
        core.LaunchConfig(grid=4, cluster=2, block=1)


# -- launches --------------------------------------------------------------------


def test_a_kernel_runs_in_stream_order(stream: core.Stream, hold: Callable[[Any], Any]) -> None:
    buffer, found = numbers(0)
    increment = kernel()
    gate = hold(stream)
    core.launch(stream, ONE, increment, buffer)
    core.launch(stream, ONE, increment, buffer)
    assert found.tolist() == [0]
    gate.open()
    stream.sync(timeout=LIMIT)
    assert found.tolist() == [2]


@pytest.mark.row(44)
def test_operands_that_are_refused(stream: core.Stream) -> None:
    increment = kernel()
    buffer, found = numbers(0)
    with pytest.raises(TypeError, match=r"^stream is required and must not be None"):
        core.launch(None, ONE, increment, buffer)
    with pytest.raises(TypeError, match=r"^Stream or GraphBuilder expected, got int$"):
        core.launch(5, ONE, increment, buffer)
    with pytest.raises(TypeError, match=r"^Argument 'config' has incorrect type"):
        core.launch(stream, None, increment, buffer)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^Argument 'kernel' has incorrect type"):
        core.launch(stream, ONE, None, buffer)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^Argument 'config' has incorrect type"):
        core.launch(stream, increment, ONE, buffer)  # type: ignore[arg-type]
    for wrong in ("text", None, [1], np.zeros(3), ctypes.c_void_p(1), b"1"):
        with pytest.raises(TypeError, match=r"^the argument is of unsupported type: <class "):
            core.launch(stream, ONE, increment, wrong)
    with pytest.raises(OverflowError, match=r"^Python int too large to convert to C ssize_t$"):
        core.launch(stream, ONE, increment, 1 << 70)
    stream.sync()
    assert found.tolist() == [0]


@pytest.mark.row(45)
def test_streams_of_other_objects_are_taken_with_a_warning(stream: core.Stream) -> None:
    class Foreign:
        def __cuda_stream__(self) -> tuple[int, int]:
            return stream.__cuda_stream__()

    buffer, found = numbers(0)
    with pytest.warns(DeprecationWarning, match=r"^Passing foreign stream objects to this function .* is deprecated\."):
        core.launch(Foreign(), ONE, kernel(), buffer)
    stream.sync()
    assert found.tolist() == [1]


@pytest.mark.row(46)
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bool", True),
        ("bool", np.bool_(True)),
        ("long long", -5),
        ("unsigned char", 200),
        ("short", np.int16(-3)),
        ("unsigned", ctypes.c_uint32(7)),
        ("long long", ctypes.c_int64(-7)),
        ("double", 1.5),
        ("double", ctypes.c_double(2.5)),
        ("float", np.float32(1.5)),
        ("float", ctypes.c_float(2.5)),
        ("unsigned short", np.uint16(9)),
    ],
)
def test_values_are_passed_by_their_width(nvrtc: None, stream: core.Stream, kind: str, value: Any) -> None:
    expression = f"store<{kind}>"
    made = core.Program(SCALE, "c++").compile("ptx", (expression,))
    buffer = core.LegacyPinnedMemoryResource().allocate(8)
    core.launch(stream, ONE, made.get_kernel(expression), buffer, value)
    stream.sync()
    formats = {"bool": "?", "long long": "q", "unsigned char": "B", "short": "h", "unsigned": "I", "double": "d"}
    letter = {**formats, "float": "f", "unsigned short": "H"}[kind]
    (found,) = struct.unpack_from(letter, np.from_dlpack(buffer).tobytes())
    assert found == (value.value if isinstance(value, ctypes._SimpleCData) else value)


def test_values_that_do_not_fit_are_refused(stream: core.Stream) -> None:
    add, (buffer, found) = kernel("add"), numbers(1)
    core.launch(stream, ONE, add, int(buffer.handle), 2)
    for wrong in (1.0, True, 2j, 1 << 40, np.float16(1)):
        with pytest.raises(TypeError, match=r"^kernel add, argument 2: the parameter has 4 bytes"):
            core.launch(stream, ONE, add, buffer, wrong)
    for wrong_count in ((), (buffer,), (buffer, 1, 2)):
        with pytest.raises(CUDAError, match=r"^CUDA_ERROR_INVALID_VALUE: add takes 2 arguments, not \d"):
            core.launch(stream, ONE, add, *wrong_count)
    stream.sync()
    assert found.tolist() == [3]


def test_launches_that_no_device_can_run(stream: core.Stream) -> None:
    buffer, _ = numbers(0)
    for config in (core.LaunchConfig(grid=1, block=2048), core.LaunchConfig(grid=1, block=1, shmem_size=1 << 20)):
        with pytest.raises(CUDAError, match=r"^CUDA_ERROR_INVALID_VALUE: kernel increment: ") as caught:
            core.launch(stream, config, kernel(), buffer)
        assert isinstance(caught.value, hs.KernelArgumentError)


@pytest.mark.row(48)
def test_kernels_use_the_memory_of_each_resource(dev: core.Device, stream: core.Stream) -> None:
    increment = kernel()
    resources: list[core.MemoryResource] = [
        core.DeviceMemoryResource(dev),
        core.PinnedMemoryResource(),
        core.LegacyPinnedMemoryResource(),
    ]
    for resource in resources:
        buffer = resource.allocate(4, stream=stream)
        buffer.fill(0, stream=stream)
        core.launch(stream, core.LaunchConfig(grid=1, block=1, is_cooperative=True), increment, buffer)
        target, found = numbers(0)
        buffer.copy_to(target, stream=stream)
        stream.sync()
        assert found.tolist() == [1]
        buffer.close(stream)


# -- programs ---------------------------------------------------------------------


def test_cpp_is_compiled_and_launched(nvrtc: None, stream: core.Stream) -> None:
    program = core.Program(SCALE, "C++", {"std": "c++17", "define_macro": ("UNUSED", "1"), "name": "mine"})
    assert program.backend == "NVRTC" and repr(program) == "<Program backend='NVRTC'>"
    made = program.compile("ptx")
    assert (made.name, made.code_type) == ("mine", "ptx") and isinstance(made.code, bytes)
    buffer = core.LegacyPinnedMemoryResource().allocate(16)
    values = np.from_dlpack(buffer).view(np.float32)
    values[:] = [1, 2, 3, 4]
    core.launch(stream, core.LaunchConfig(grid=1, block=32), made.get_kernel("scale"), buffer, np.float32(2), 3)
    stream.sync()
    assert values.tolist() == [2, 4, 6, 4]
    program.close()
    assert program.is_closed
    with pytest.raises(RuntimeError, match=r"^Program has been closed$"):
        program.compile("ptx")


def test_names_of_templates_are_found(nvrtc: None) -> None:
    made = core.Program(SCALE, "c++").compile("ptx", name_expressions=("store<float>",))
    assert made.symbol_mapping == {"store<float>": b"_Z5storeIfEvPT_S0_"}
    assert made.get_kernel("store<float>").num_arguments == 2
    with pytest.raises(CUDAError, match=r"^CUDA_ERROR_NOT_FOUND: ptx: there is no kernel store<int>$"):
        made.get_kernel("store<int>")


def test_a_cubin_is_for_one_architecture(nvrtc: None) -> None:
    made = core.Program(SCALE, "c++", core.ProgramOptions(arch="sm_80")).compile("cubin")
    assert made.code_type == "cubin" and made.code[:4] == b"\x7fELF"


def test_errors_of_the_compiler(nvrtc: None) -> None:
    log = io.StringIO()
    with pytest.raises(
        NVRTCError, match=r'^6: NVRTC_ERROR_COMPILATION, compilation log:\n\n(?s:.*)"y" is undefined'
    ) as caught:
        core.Program('extern "C" __global__ void f() { y; }', "c++").compile("ptx", logs=log)
    assert isinstance(caught.value, CUDAError) and isinstance(caught.value, hs.CompileError)
    assert '"y" is undefined' in log.getvalue() and '"y" is undefined' in caught.value.log
    words = io.StringIO()
    core.Program('extern "C" __global__ void f() { int x; }', "c++").compile("ptx", logs=words)
    assert "declared but never referenced" in words.getvalue()


def test_without_nvrtc_the_error_names_what_to_install(child: Callable[..., Any], tmp_path: Path) -> None:
    done = child(
        f"""
        import halstream as hs
        from halstream._kernel import _nvrtc
        _nvrtc._candidates = lambda name: iter(["{tmp_path}/none.so"])
        from halstream.cuda import core
        core.Device().set_current()
        try:
            core.Program("", "c++").compile("ptx")
        except hs.BackendAbsentError as exc:
            print(exc)
        """,
        env={"HALSTREAM_CACHE_DIR": str(tmp_path)},
    )
    assert "pip install 'halstream[cuda]'" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("use", "error", "text"),
    [
        (lambda: core.Program("", "c"), RuntimeError, r"^Unsupported code_type='c' \(supported_code_types="),
        (lambda: core.Program(b"", "c++"), TypeError, "^Expected type str, but got bytes$"),
        (lambda: core.Program("", "nvvm"), hs.NotSupportedError, "programs of NVVM are not built yet"),
        (lambda: core.Program("", "c++").compile("obj"), ValueError, '^Unsupported target_type="obj" for NVRTC'),
        (lambda: core.Program("", "c++").compile("ltoir"), hs.NotSupportedError, "LTO is not built yet"),
        (lambda: core.Program("", "c++").compile("ptx", cache=1), hs.NotSupportedError, "caches of programs"),
        (lambda: core.Program("", "c++", 4), TypeError, "must be provided as an object of type ProgramOptions"),
        (core.ObjectCode, RuntimeError, r"^ObjectCode objects cannot be instantiated directly\."),
        (core.Kernel, RuntimeError, r"^Kernel objects cannot be instantiated directly\."),
        (lambda: core.ObjectCode.from_ptx(5), TypeError, "^Expected type str or bytes or bytearray, but got int$"),
        (lambda: core.ObjectCode.from_fatbin(b""), hs.NotSupportedError, "from_fatbin is not built yet"),
        (lambda: core.ObjectCode.from_ptx("/none").get_kernel("f"), CUDAError, "^CUDA_ERROR_FILE_NOT_FOUND: "),
        (lambda: core.ObjectCode.from_ptx(b"x").get_kernel("f"), CUDAError, "^CUDA_ERROR_INVALID_PTX: "),
        (lambda: core.ObjectCode.from_ptx(PTX).get_kernel(5), TypeError, "^expected bytes, int found$"),
    ],
)
def test_programs_that_are_refused(dev: core.Device, use: Callable[[], Any], error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        use()


def test_options_are_spelled_as_the_compiler_takes_them(dev: core.Device) -> None:
    options = core.ProgramOptions(
        arch="sm_80", fma=True, debug=False, lineinfo=True, max_register_count=32, std="c++14", ftz=False,
        define_macro=[("A", "1"), "B"], include_path=["/a", "/b"], diag_suppress=(1, 2), ptxas_options="-v",
        device_code_optimize=True, ofast_compile="min", split_compile=0,
    )  # fmt: skip
    assert b" ".join(sorted(options.as_bytes("nvrtc"))).decode() == (
        "--Ofast-compile=min --define-macro=A=1 --define-macro=B --diag-suppress=1 --diag-suppress=2 --dopt=on "
        "--fmad=true --ftz=false --generate-line-info --include-path=/a --include-path=/b --maxrregcount=32 "
        "--ptxas-options=-v --split-compile=0 --std=c++14 -arch=sm_80"
    )
    assert core.ProgramOptions().arch == f"sm_{dev.arch}"
    with pytest.raises(ValueError, match=r"^Unknown backend 'gcc'"):
        options.as_bytes("gcc")


def test_ptx_as_a_program(stream: core.Stream, tmp_path: Path) -> None:
    buffer, found = numbers(0)
    for made in (
        core.Program(PTX.decode(), "ptx").compile("cubin"),
        core.Program(PTX.decode(), "ptx").compile("ptx"),
        core.ObjectCode.from_ptx(PTX, symbol_mapping={"increment": "increment"}),
        pickle.loads(pickle.dumps(core.ObjectCode.from_ptx(PTX, name="mine"))),
    ):
        core.launch(stream, ONE, made.get_kernel("increment"), buffer)
    path = tmp_path / "kernels.ptx"
    path.write_bytes(PTX)
    for file in (path, os.fspath(path)):
        core.launch(stream, ONE, core.ObjectCode.from_ptx(file).get_kernel(b"increment"), buffer)
    stream.sync()
    assert found.tolist() == [6]


def test_what_a_kernel_says_of_itself(dev: core.Device) -> None:
    made = core.ObjectCode.from_ptx(PTX)
    add, same = made.get_kernel("add"), made.get_kernel("add")
    assert add == same and hash(add) == hash(same) and add != made.get_kernel("increment")
    assert add.num_arguments == 2
    assert [(info.offset, info.size) for info in add.arguments_info] == [(0, 8), (8, 4)]
    assert add.attributes.max_threads_per_block == add.attributes[0].max_threads_per_block == 1024
    assert add.attributes[dev].shared_size_bytes == 0 and add.attributes.num_regs > 0
    assert isinstance(add.handle, int) and isinstance(made.handle, int)
    assert not hasattr(add, "occupancy") and not hasattr(add.attributes, "cache_mode_ca")
    with pytest.raises(ValueError, match=r"device_id must be within"):
        add.attributes[99]
    with pytest.raises(TypeError, match=r"cannot pickle or copy a Kernel"):
        pickle.dumps(add)


def test_a_kernel_is_brought_to_each_device() -> None:
    device(0)
    increment = kernel()
    buffer, found = numbers(0)
    for number in (0, 1):
        stream = device(number).create_stream()
        core.launch(stream, ONE, increment, buffer)
        stream.sync()
    device(0)
    assert found.tolist() == [2]
