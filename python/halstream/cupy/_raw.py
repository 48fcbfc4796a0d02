"""RawKernel and RawModule: kernels of CUDA sources, which are compiled at their first use on each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import _current
from .cuda import _compile, memory
from .cuda.function import Function, Module

__all__ = ["RawKernel", "RawModule"]

# The names of a kernel's figures, in the order of `Function.attributes` where that has them.
_FIGURES = ("shared_size_bytes", "const_size_bytes", "local_size_bytes", "num_regs", "ptx_version", "binary_version")


def _checked(value: Any, name: str, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"Argument '{name}' has incorrect type (expected {kind.__name__}, got {type(value).__name__})")
    return value


class RawKernel:
    """cupy.RawKernel (14.2.0): one kernel of a source, which names it ``extern "C"``.

    Differences: `backend` "nvcc" and `jitify` are refused when it is compiled; with
    `translate_cucomplex` the functions of ``cuComplex.h`` take both types, and the source stays as it is.
    """

    def __init__(
        self,
        code: str,
        name: str,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        *,
        enable_cooperative_groups: bool = False,
        jitify: Any = None,
    ) -> None:
        self.code: str | None = _checked(code, "code", str)
        self.name: str = _checked(name, "name", str)
        self.options: tuple[str, ...] = _checked(options, "options", tuple)
        self.backend: str = _checked(backend, "backend", str)
        self.translate_cucomplex = bool(translate_cucomplex)
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        self.jitify = jitify
        #: The file that a RawModule has loaded it from.
        self.file_path: str | None = None
        self.__name__ = name
        self._module: RawModule | None = None  # that it was got from, whose programs it uses
        self._functions: dict[int, Function] = {}

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, **kwargs: Any) -> None:
        """Enqueue a launch on the current stream, or on `stream`; `shared_mem` is in bytes."""
        self.kernel(grid, block, args, enable_cooperative_groups=self.enable_cooperative_groups, **kwargs)

    @property
    def kernel(self) -> Function:
        """The kernel on the current device."""
        return self._on_device(None)

    def compile(self, log_stream: Any = None) -> None:
        """Compile it again, and write what the compiler says to `log_stream`."""
        self._functions.clear()
        self._on_device(log_stream)

    def _on_device(self, log_stream: Any) -> Function:
        ordinal = _current.current_device()
        found = self._functions.get(ordinal)
        if found is None or not found.module.current:
            if self._module is not None:
                module = self._module._on_device(log_stream)
            else:
                module = _load(self, self.name, (), True, log_stream)
            found = self._functions[ordinal] = module.get_function(self.name)
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_functions": {}}

    # -- figures ----------------------------------------------------------

    @property
    def attributes(self) -> dict[str, int]:
        """The figures of the kernel on the current device by their names; -1 is not known."""
        names = ("max_threads_per_block", *_FIGURES, "cache_mode_ca", "max_dynamic_shared_size_bytes")
        return {name: getattr(self, name) for name in (*names, "preferred_shared_memory_carveout")}

    @property
    def max_threads_per_block(self) -> int:
        """Threads that a block may have."""
        return self.kernel.threads

    @property
    def cache_mode_ca(self) -> int:
        """Whether loads are cached in L1: never asked for."""
        return 0

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of dynamic shared memory that a launch may ask for; can be set."""
        return self.kernel.dynamic_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, bytes: int) -> None:
        self.kernel.dynamic_shared = bytes

    @property
    def preferred_shared_memory_carveout(self) -> int:
        """Percent of a cache that is to be shared memory; only kept here."""
        return self.kernel.carveout

    @preferred_shared_memory_carveout.setter
    def preferred_shared_memory_carveout(self, fraction: int) -> None:
        self.kernel.carveout = fraction


def _figure(number: int, text: str) -> property:
    def get(self: RawKernel) -> int:
        return self.kernel.attributes[number]

    get.__doc__ = f"{text}; -1 is not known."
    return property(get)


for _number, (_name, _text) in enumerate(
    zip(
        _FIGURES,
        (
            "Bytes of shared memory that the kernel declares",
            "Bytes of constant memory",
            "Bytes of local memory of a thread",
            "Registers of a thread",
            "Ten times the compute capability that the PTX is for",
            "Ten times the compute capability that the binary is for",
        ),
        strict=True,
    )
):
    setattr(RawKernel, _name, _figure(_number, _text))


class RawModule:
    """cupy.RawModule (14.2.0): the kernels and variables of a source, of PTX or of a binary.

    Differences: as `RawKernel`; each object has variables of its own.
    """

    def __init__(
        self,
        *,
        code: str | None = None,
        path: str | None = None,
        options: tuple[str, ...] = (),
        backend: str = "nvrtc",
        translate_cucomplex: bool = False,
        enable_cooperative_groups: bool = False,
        name_expressions: Sequence[str] | None = None,
        jitify: Any = None,
    ) -> None:
        if (code is None) == (path is None):
            raise TypeError("Exactly one of `code` and `path` keyword arguments must be given.")
        if name_expressions is not None:
            if code is None:
                raise ValueError("need CUDA C++ code for the requested kernels")
            if backend != "nvrtc":
                raise ValueError("only nvrtc supports retrieving the mangled names for the given name expressions")
        if jitify:
            if code is None:
                raise ValueError("Jitify does not support precompiled objects")
            if backend != "nvrtc":
                raise ValueError("Jitify only supports NVRTC")
        self.code = code if code is None else _checked(code, "code", str)
        self.file_path = path if path is None else _checked(path, "path", str)
        self.options: tuple[str, ...] = () if code is None else _checked(options, "options", tuple)
        self.backend: str = "nvcc" if code is None else _checked(backend, "backend", str)
        self.translate_cucomplex = code is not None and bool(translate_cucomplex)
        self.enable_cooperative_groups = bool(enable_cooperative_groups)
        self.name_expressions = None if name_expressions is None else tuple(name_expressions)
        self.jitify = jitify
        self._modules: dict[int, Module] = {}

    @property
    def module(self) -> Module:
        """The program on the current device."""
        return self._on_device(None)

    def compile(self, log_stream: Any = None) -> None:
        """Compile it again, and write what the compiler says to `log_stream`; its variables are new ones."""
        self._modules.clear()
        self._on_device(log_stream)

    def get_function(self, name: str) -> RawKernel:
        """Return a kernel by its name, or by one of `name_expressions`."""
        lowered = (self.module.mapping or {}).get(_checked(name, "name", str), name)
        made = RawKernel(
            "",
            lowered,
            self.options,
            self.backend,
            self.translate_cucomplex,
            enable_cooperative_groups=self.enable_cooperative_groups,
            jitify=self.jitify,
        )
        made.code, made.file_path, made._module = self.code, self.file_path, self
        made._on_device(None)
        return made

    def get_global(self, name: str) -> memory.MemoryPointer:
        """Return the memory of a variable of the program on the current device."""
        module = self.module
        address, size = module.variable(name)
        return memory.MemoryPointer(memory.UnownedMemory(address, size, module, _current.current_device()), 0)

    def _on_device(self, log_stream: Any) -> Module:
        ordinal = _current.current_device()
        found = self._modules.get(ordinal)
        if found is None or not found.current:
            if self.file_path is None:
                found = _load(self, "a RawModule", self.name_expressions or (), False, log_stream)
            else:
                found = Module()
                found.load_file(self.file_path)
            self._modules[ordinal] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_modules": {}}


def _load(of: RawKernel | RawModule, name: str, names: Sequence[str], shared: bool, log_stream: Any) -> Module:
    """Compile a source for the current device, and load it there."""
    _compile.check_backend(of.backend, of.jitify)
    assert of.code is not None
    ordinal = _current.current_device()
    title = f"kernel {name}" if shared else name
    program, mapping = _compile.load(
        of.code,
        ordinal,
        of.options,
        title=title,
        names=names,
        shared=shared,
        translated=of.translate_cucomplex,
        log_stream=log_stream,
    )
    return Module.of(program, ordinal, mapping)


RawKernel.__module__ = RawModule.__module__ = "halstream.cupy"
