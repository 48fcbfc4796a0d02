"""Triton under the redirected torch: its kernels are compiled to PTX, which the host device executes.

Triton's own files stay as they are. It finds a backend for NVIDIA's devices whose last stage keeps the PTX instead of
making machine code of it, and a driver that loads and launches that on halstream's streams.
"""

from __future__ import annotations

import functools
import os
import struct
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any

from ... import _native
from ..._core._interop import device_facts
from ..._core._lookup import DEVICE, PAGEABLE, lookup
from .classes import raising
from .patches import Patches

__all__ = ["changes", "tunes_all"]

#: The highest version of PTX that each supported Triton can write; else it would ask an assembler for its own.
_PTX_VERSION = 87
#: Counted up when the stages change, so that kernels that others made are not taken from Triton's cache.
_STAGES = 2
_NO_SASS = "// There is no machine code: the host device executes the kernel's PTX."
_WARP = 32
_CELL = 16  # bytes that each argument takes

_launch_packed = _native.taking_objects("launch")

_FIRST_ONLY = (
    "an autotuned Triton kernel keeps its first configuration that compiles: how long one takes here says nothing of a "
    "GPU; HALSTREAM_TRITON_AUTOTUNE=1 tries all"
)

# How a value is packed, by its type in a signature; integers are cut to their width first.
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
_INTEGERS = {"i1": 1, "u1": 1, "i8": 8, "u8": 8, "i16": 16, "u16": 16, "i32": 32, "u32": 32, "i64": 64, "u64": 64}


def changes(
    torch: Any, module: Any, patches: Patches, given: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with the modules of Triton, by name, once each is imported.

    Parameters
    ----------
    torch, module : module
    patches : Patches
    given : mapping
        Functions that run instead of kernels, by the kernel's name.
    """

    def backends(found: ModuleType) -> None:
        known = found.backends
        before = dict(known)
        known.clear()
        known["nvidia"] = found.Backend(compiler=_backend(), driver=_driver(torch, module))

        def undo() -> None:
            known.clear()
            known.update(before)

        patches.on_undo(undo)

    def driver(found: ModuleType) -> None:
        patches.set(found.driver, "_active", None)
        patches.set(found.driver, "_default", None)

    def jit(found: ModuleType) -> None:
        run = found.JITFunction.run

        @functools.wraps(run)
        def launch(self: Any, *args: Any, grid: Any = None, warmup: bool = False, **kwargs: Any) -> Any:
            name = getattr(getattr(self, "fn", None), "__name__", "?")
            if name in given and not warmup:
                return given[name](grid, *args, **kwargs)
            return run(self, *args, grid=grid, warmup=warmup, **kwargs)

        patches.set(found.JITFunction, "run", launch)

    def compiler(found: ModuleType) -> None:
        patches.set(found, "get_sass", lambda *args, **kwargs: _NO_SASS)

    return {
        "triton.backends": backends,
        "triton.compiler.compiler": compiler,
        "triton.runtime.driver": driver,
        "triton.runtime.jit": jit,
        "triton.runtime.autotuner": functools.partial(_keep_first, patches),
    }


def tunes_all() -> bool:
    """Return True if all configurations of autotuned kernels are to be tried."""
    return os.environ.get("HALSTREAM_TRITON_AUTOTUNE") == "1"


def _keep_first(patches: Patches, autotuner: ModuleType) -> None:
    """Let autotuners take the first configuration that compiles and fits, without running any."""
    prune = autotuner.Autotuner.prune_configs
    said = False

    @functools.wraps(prune)
    def first(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        nonlocal said
        left: list[Any] = prune(self, kwargs)
        if len(left) < 2 or tunes_all():
            return left
        if not said:
            said = True
            warnings.warn(_FIRST_ONLY, UserWarning, stacklevel=4)
        return [next((one for one in left if _fits(self, one, kwargs)), left[0])]

    bench = autotuner.Autotuner._bench

    @functools.wraps(bench)
    def measured(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Triton before 3.9 measures a single one, too.
        return bench(self, *args, **kwargs) if tunes_all() else [0.0, 0.0, 0.0]

    patches.set(autotuner.Autotuner, "prune_configs", first)
    patches.set(autotuner.Autotuner, "_bench", measured)


def _fits(tuner: Any, config: Any, kwargs: dict[str, Any]) -> bool:
    """Return True if the kernel compiles with a configuration and a block of it fits on the device."""
    from triton.compiler.errors import CompileTimeAssertionFailure  # type: ignore[import-not-found,unused-ignore]
    from triton.runtime.errors import OutOfResources, PTXASError  # type: ignore[import-not-found,unused-ignore]

    given = {**kwargs, **config.all_kwargs(), "warmup": True}
    if config.pre_hook:
        config.pre_hook({**tuner.nargs, **given})
    try:
        kernel = tuner.fn.run(*tuner.nargs.values(), **given)
        if kernel is not None:
            kernel.run  # noqa: B018 - it loads the kernel
    except (OutOfResources, CompileTimeAssertionFailure, PTXASError):
        return False
    return True


@functools.cache
def _backend() -> type:
    """Return the backend: NVIDIA's up to its assembler."""
    from triton.backends.nvidia.compiler import CUDABackend  # type: ignore[import-not-found,unused-ignore]

    class Backend(CUDABackend):  # type: ignore[misc]
        def parse_options(self, opts: dict[str, Any]) -> Any:
            return super().parse_options({"ptx_version": _PTX_VERSION, **opts})

        def add_stages(self, stages: dict[str, Any], *args: Any) -> None:
            super().add_stages(stages, *args)
            # Programs ask a kernel for its "cubin", what a driver loads, and for its "ptx" as text, so both stay.
            stages["cubin"] = lambda text, metadata: text.encode()

        @functools.lru_cache  # noqa: B019 - a backend lives as long as the process
        def hash(self) -> str:
            """Return what keeps these kernels apart from those for a GPU in Triton's cache."""
            return f"halstream-{_STAGES}-{_PTX_VERSION}-{self.target.arch}"

    return Backend


class _Program:
    """A loaded kernel.

    Attributes
    ----------
    function : int
        The extension's number of it.
    count : int
        How many parameters its program has.
    modes : str
        A letter for each, as launches take them.
    shared : int
        Bytes of dynamic shared memory of a block.
    """

    def __init__(self, ordinal: int, name: str, text: str, shared: int) -> None:
        self.module = int(_native.module_load(ordinal, text))
        self.function = int(_native.module_function(self.module, name))
        self.count = len(_native.function_parameters(self.function).split())
        self.modes = _native.function_accesses(self.function).encode()
        self.threads = int(_native.function_threads(self.function))
        self.shared = shared


class _Utils:
    """What a driver of Triton calls its utilities."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch, self._module = torch, module
        self.programs: dict[int, _Program] = {}  #: by module

    def load_binary(self, name: str, program: Any, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """Load a kernel; return its module, the same as its function, and what one thread and one block use."""
        text = program.decode() if isinstance(program, bytes) else program
        loaded = raising(self._torch, lambda: _Program(device, name, text, shared))
        self.programs[loaded.module] = loaded
        return loaded.module, loaded.module, _WARP, 0, loaded.threads

    def unload_module(self, module: int) -> None:
        """Give a kernel up; launches that were enqueued still run."""
        loaded = self.programs.pop(module, None)
        if loaded is not None and not sys.is_finalizing():
            _native.close(loaded.module)

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Return the numbers that Triton and its users ask for."""
        found = self._torch.cuda.get_device_properties(device)
        return {
            "max_shared_mem": found.shared_memory_per_block_optin, "max_num_regs": found.regs_per_multiprocessor,
            "warpSize": found.warp_size, "multiprocessor_count": found.multi_processor_count,
            "sm_clock_rate": found.clock_rate, "mem_clock_rate": found.memory_clock_rate,
            "mem_bus_width": found.memory_bus_width,
        }  # fmt: skip

    def is_stream_capturing(self, stream: int) -> bool:
        """Return True if a stream, given by its handle, takes part in a capture."""
        return bool(self._torch.cuda.ExternalStream(stream).is_capturing())

    def set_printf_fifo_size(self, size: int) -> None:
        """Do nothing: what kernels print needs no memory of a fixed size here."""


@functools.cache
def _driver(torch: Any, module: Any) -> type:
    """Return the driver."""
    from triton.backends.compiler import GPUTarget  # type: ignore[import-not-found,unused-ignore]
    from triton.backends.driver import GPUDriver  # type: ignore[import-not-found,unused-ignore]

    utilities = _Utils(torch, module)

    class Driver(GPUDriver):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.utils = utilities
            self.launcher_cls = functools.partial(_Launcher, torch, module, utilities)
            # Looked up at each call: torch.cuda's names are other ones after the redirection has ended.
            self.get_device_capability = lambda *args: torch.cuda.get_device_capability(*args)
            self.get_current_device = lambda: torch.cuda.current_device()
            self.set_current_device = lambda device: torch.cuda.set_device(device)
            self.get_current_stream = lambda device: torch._C._cuda_getCurrentRawStream(device)

        @staticmethod
        def is_active() -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            from triton.backends.nvidia.driver import ty_to_cpp  # type: ignore[import-not-found,unused-ignore]

            return str(ty_to_cpp(ty))

        def get_current_target(self) -> Any:
            facts = device_facts(torch.cuda.current_device())
            return GPUTarget("cuda", facts["major"] * 10 + facts["minor"], _WARP)

        def get_active_torch_device(self) -> Any:
            return torch.device("cuda", torch.cuda.current_device())

        def get_device_interface(self) -> Any:
            return torch.cuda

        def get_benchmarker(self) -> Callable[..., Any]:
            return _bench_once(torch)

        def get_empty_cache_for_benchmark(self) -> Any:
            return torch.empty(256, dtype=torch.int, device="cuda")  # no cache is flushed by it

        def clear_cache(self, cache: Any) -> None:
            cache.zero_()

    return Driver


def _bench_once(torch: Any) -> Callable[..., Any]:
    """Return a function that times one call: more of them say no more of a GPU."""

    def bench(call: Callable[[], object], *, quantiles: Any = None, **options: Any) -> Any:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        taken = begin.elapsed_time(end)
        return [taken] * len(quantiles) if quantiles else taken

    return bench


class _Launcher:
    """What launches one compiled kernel; Triton makes it and calls it.

    Raises
    ------
    OutOfResources
        Triton's own, if no block of the device has so many threads.
    """

    def __init__(self, torch: Any, module: Any, utilities: _Utils, source: Any, metadata: Any) -> None:
        self._torch, self._module, self._utilities = torch, module, utilities
        self._metadata = metadata
        self._signature = tuple(source.signature.values())
        self._block = metadata.num_warps * _WARP
        self._cooperative = int(getattr(metadata, "launch_cooperative_grid", False))
        most = torch.cuda.get_device_properties(module._cuda_getDevice()).max_threads_per_block
        if self._block > most:  # said here, since such a kernel is not loaded
            from triton.runtime.errors import OutOfResources  # type: ignore[import-not-found,unused-ignore]

            raise OutOfResources(self._block, most, "threads")

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: int, kernel_metadata: Any, launch_metadata: Any,
        enter: Any, leave: Any, *args: Any,
    ) -> None:  # fmt: skip
        if x * y * z <= 0:
            return
        if enter is not None:
            enter(launch_metadata)
        self._enqueue((x, y, z), stream, function, args)
        if leave is not None:
            leave(launch_metadata)

    def _enqueue(self, grid: tuple[int, int, int], stream: int, function: int, args: Any) -> None:
        program = self._utilities.programs[function]
        given = list(_arguments(self._signature, args))
        given += [("*", one) for one in self._scratch(program.count - len(given), grid, stream)]
        device = self._module._cuda_getDevice()
        cells, modes = bytearray(), bytearray()
        for number, (kind, value) in enumerate(given):
            if kind[0] == "*":
                address, size = _pointer(device, number, value)
                cells += struct.pack("<QQ", address, size)
                modes += program.modes[number : number + 1].upper() if size else b"-"
            else:
                cells += _scalar(kind, value).ljust(_CELL, b"\0")
                modes += b"-"
        shape = struct.pack("<11I", *_whole(grid), self._block, 1, 1, program.shared, self._cooperative, 0, 0, 0)
        at = self._runtime_stream(device, stream)
        raising(self._torch, lambda: _launch(at, program.function, bytes(modes), shape, bytes(cells)))

    def _scratch(self, missing: int, grid: tuple[int, int, int], stream: int) -> list[Any]:
        """Return the arguments that Triton adds behind the kernel's: memory for all blocks, and for its profiler."""
        if missing <= 0:
            return []
        from triton.runtime import _allocation  # type: ignore[import-not-found,unused-ignore]

        metadata, blocks = self._metadata, grid[0] * grid[1] * grid[2]
        size = getattr(metadata, "global_scratch_size", 0)
        made: list[Any] = [None] * missing
        if size > 0:
            made[0] = _allocation._allocator.get()(blocks * size, metadata.global_scratch_align, stream)
        size = getattr(metadata, "profile_scratch_size", 0)
        if size > 0 and missing > 1:
            made[1] = _allocation._profile_allocator.get()(blocks * size, metadata.profile_scratch_align, stream)
        return made

    def _runtime_stream(self, device: int, handle: int) -> int:
        """Return the runtime's number of the stream that has a handle."""
        if handle == self._torch._C._cuda_getCurrentRawStream(device):
            return int(self._module.runtime_stream(device))
        if not handle:
            return int(self._module.runtime_stream(device, 0))
        stream = self._torch.cuda.ExternalStream(handle, device=device)
        return int(self._module.runtime_stream(device, stream.stream_id))


def _pointer(current: int, number: int, value: Any) -> tuple[int, int]:
    """Return an address, and how many bytes its memory has from there on.

    Raises
    ------
    ValueError
        Triton's own, for memory that kernels of the current device cannot use.
    """
    if value is None:
        return 0, 0
    address = value if isinstance(value, int) else value.data_ptr()
    if not address:
        return 0, 0
    kind, start, size, device = lookup(address)
    if kind == PAGEABLE or (kind == DEVICE and device != current):
        if isinstance(value, int):  # the kernel finds out
            return address, 0
        raise ValueError(f"Pointer argument (at {number}) cannot be accessed from Triton (cpu tensor?)")
    return address, start + size - address


def _launch(*arguments: Any) -> None:
    """Enqueue a launch.

    Raises
    ------
    HalError
        If it cannot be.
    """
    try:
        _launch_packed(*arguments)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def _arguments(signature: Any, values: Any) -> Iterator[tuple[str, Any]]:
    """Return the type and the value of each parameter of a program, for those of a kernel.

    Constants are none. A tensor descriptor is the address of its memory, shape, strides and two flags; what
    the kernel itself asks of it, shape and strides once more, follows.
    """
    for kind, value in zip(signature, values, strict=True):
        if isinstance(kind, tuple):
            yield from _arguments(kind, value)
        elif kind.startswith("tensordesc"):
            yield "*", value.base
            for numbers in (value.shape, value.strides):
                yield from (("i64", number) for number in numbers)
            yield "i1", value.padding == "nan"
            yield "i1", value.round_f32_to_tf32
            yield from (("i32", number) for number in value.shape)
            yield from (("i64", number) for number in value.strides)
        elif kind != "constexpr":
            yield kind, value


def _whole(grid: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the size of a grid.

    Raises
    ------
    RuntimeError
        In Triton's words, if no device can have it.
    """
    x, y, z = map(int, grid)
    if x > 2**31 - 1 or y > 65535 or z > 65535:
        raise RuntimeError(
            f"Triton Error [CUDA]: invalid argument: a grid of {x} x {y} x {z} blocks, and a device takes "
            "2147483647 x 65535 x 65535 at most"
        )
    return x, y, z


def _scalar(kind: str, value: Any) -> bytes:
    """Return a value in the bytes of its type in a kernel's signature."""
    if kind in _INTEGERS:
        width = _INTEGERS[kind]
        return (int(value) & ((1 << width) - 1)).to_bytes(max(1, width // 8), "little")
    if kind == "bf16":
        return struct.pack("<f", float(value))[2:]
    return struct.pack(_FLOATS[kind], float(value))
