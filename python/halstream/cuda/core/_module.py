"""ObjectCode, a compiled program, and its kernels."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..._core import _current
from ..._core._base import uncopied
from ..._core._strict import strict
from ..._dialects._adapt import raising
from ..._errors import HalError
from ..._kernel import _launch
from ._arguments import missing_method, missing_property, ordinal_of
from ._errors import ERRORS, failure

__all__ = ["Kernel", "KernelAttributes", "ObjectCode"]

_FILE_NOT_FOUND, _NOT_FOUND = 301, 500
# The greatest alignment that an argument can have.
_ALIGNMENT = 16


class ParamInfo(NamedTuple):
    """Where an argument of a kernel lies, and its bytes."""

    offset: int
    size: int


class ObjectCode:
    """cuda.core.ObjectCode (1.2.2): PTX or a cubin; made by `from_ptx`, `from_cubin` and `Program.compile`.

    Differences: `handle` is an int; other kinds of programs are not built. A host device executes PTX
    only, and a "cubin" that was made of PTX is that PTX.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "ObjectCode objects cannot be instantiated directly. Please use ObjectCode APIs (from_cubin, from_ptx) or "
            "Program APIs (compile)."
        )

    _code: bytes | str
    _kind: str
    _name: str
    _names: dict[str, Any]
    _programs: dict[int, _launch.Program]  #: by device

    @classmethod
    def _of(cls, code: bytes | str, kind: str, name: str, names: Mapping[str, Any] | None) -> ObjectCode:
        new = object.__new__(cls)
        new._code, new._kind, new._name = code, kind, name
        new._names, new._programs = dict(names or {}), {}
        return new

    @staticmethod
    def _loaded(module: Any, kind: str, name: str, names: Mapping[str, Any] | None) -> ObjectCode:
        if isinstance(module, os.PathLike):
            module = os.fspath(module)
        if not isinstance(module, (str, bytes, bytearray)):
            raise TypeError(f"Expected type str or bytes or bytearray, but got {type(module).__name__}")
        return ObjectCode._of(module if isinstance(module, str) else bytes(module), kind, name, names)

    @staticmethod
    def from_ptx(module: Any, *, name: str = "", symbol_mapping: Mapping[str, Any] | None = None) -> ObjectCode:
        """Return the program of PTX, given as bytes or by the name of a file."""
        return ObjectCode._loaded(module, "ptx", name, symbol_mapping)

    @staticmethod
    def from_cubin(module: Any, *, name: str = "", symbol_mapping: Mapping[str, Any] | None = None) -> ObjectCode:
        """Return the program of a cubin, given as bytes or by the name of a file."""
        return ObjectCode._loaded(module, "cubin", name, symbol_mapping)

    from_fatbin = missing_method("cuda.core.ObjectCode.from_fatbin")
    from_library = missing_method("cuda.core.ObjectCode.from_library")
    from_ltoir = missing_method("cuda.core.ObjectCode.from_ltoir")
    from_object = missing_method("cuda.core.ObjectCode.from_object")
    get_module = missing_method("cuda.core.ObjectCode.get_module")

    @property
    def code(self) -> bytes | str:
        """The program, or the name of its file."""
        return self._code

    @property
    def code_type(self) -> str:
        """'ptx' or 'cubin'."""
        return self._kind

    @property
    def name(self) -> str:
        """What the program is called."""
        return self._name

    @property
    def symbol_mapping(self) -> dict[str, Any]:
        """The names in the program of the names that were asked for."""
        return self._names

    @property
    def handle(self) -> int:
        """The number of the program on the current device."""
        return self._on(_current.current_device()).ident

    def get_kernel(self, name: str | bytes) -> Kernel:
        """Return a kernel by its name, or by one of `symbol_mapping`."""
        if not isinstance(name, (str, bytes)):
            raise TypeError(f"expected bytes, {type(name).__name__} found")
        text = name.decode() if isinstance(name, bytes) else name
        entry = self._names.get(text, text)
        found = Kernel._of(self, entry.decode() if isinstance(entry, bytes) else entry)
        found._on(_current.current_device())
        return found

    def _on(self, ordinal: int) -> _launch.Program:
        """Return the program on a device, where it is brought at its first use."""
        found = self._programs.get(ordinal)
        if found is None or not found.current:
            code = self._code
            if isinstance(code, str):
                try:
                    code = Path(code).read_bytes()
                except OSError as exc:
                    raise failure(_FILE_NOT_FOUND, str(exc)) from exc
            if not code.startswith(b"\x7fELF"):
                code = code.rstrip(b"\0") + b"\0"
            found = self._programs[ordinal] = _program(ordinal, code)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectCode._of, (self._code, self._kind, self._name, self._names)

    def __repr__(self) -> str:
        return f"<ObjectCode {self._name!r} code_type={self._kind!r}>"


_program = raising(ERRORS)(_launch.Program)


class Kernel:
    """cuda.core.Kernel (1.2.2): of a program, on each device that launches it.

    Differences: `handle` is an int; occupancy is not built. The offsets of `arguments_info` are those of
    arguments whose alignment is the greatest that their size allows.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Kernel objects cannot be instantiated directly. Please use ObjectCode APIs.")

    _module: ObjectCode
    _name: str
    _kernels: dict[int, _launch.Loaded]  #: by device

    @classmethod
    def _of(cls, module: ObjectCode, name: str) -> Kernel:
        new = object.__new__(cls)
        new._module, new._name, new._kernels = module, name, {}
        return new

    from_handle = missing_method("cuda.core.Kernel.from_handle")
    occupancy = missing_property("cuda.core.Kernel.occupancy")

    def _on(self, ordinal: int) -> _launch.Loaded:
        """Return the kernel on a device."""
        found = self._kernels.get(ordinal)
        if found is None or not found.program.current:
            program = self._module._on(ordinal)
            try:
                found = self._kernels[ordinal] = program.function(self._name)
            except HalError as exc:
                raise failure(exc.code or _NOT_FOUND, str(exc)) from exc
        return found

    @property
    def handle(self) -> int:
        """The number of the kernel on the current device."""
        return self._on(_current.current_device()).function

    @property
    def attributes(self) -> KernelAttributes:
        """Its figures on the current device; those of another one are ``attributes[device]``."""
        return KernelAttributes._of(self, None)

    @property
    def num_arguments(self) -> int:
        """How many arguments it takes."""
        return len(self.arguments_info)

    @property
    def arguments_info(self) -> list[Any]:
        """Offset and size of each argument in bytes."""
        sizes = self._on(_current.current_device()).sizes
        if sizes is None:
            raise ERRORS["not_supported"]("the driver of this device does not say what a kernel's arguments are")
        found, offset = [], 0
        for size in sizes:
            alignment = min(size & -size, _ALIGNMENT) or 1
            offset = -(-offset // alignment) * alignment
            found.append(ParamInfo(offset, size))
            offset += size
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Kernel):
            return NotImplemented
        return self._module is other._module and self._name == other._name

    def __hash__(self) -> int:
        return hash((id(self._module), self._name))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise uncopied(self)

    def __repr__(self) -> str:
        return f"<Kernel {self._name!r}>"


class KernelAttributes:
    """cuda.core's attributes of a kernel (1.2.2).

    Difference: what is not known is 0; those of clusters, caches and dynamic shared memory are not built.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("KernelAttributes cannot be instantiated directly. Please use Kernel APIs.")

    _kernel: Kernel
    _ordinal: int | None

    @classmethod
    def _of(cls, kernel: Kernel, ordinal: int | None) -> KernelAttributes:
        new = object.__new__(cls)
        new._kernel, new._ordinal = kernel, ordinal
        return new

    def __getitem__(self, device: Any) -> KernelAttributes:
        return KernelAttributes._of(self._kernel, ordinal_of(device))

    def _on_device(self) -> _launch.Loaded:
        return self._kernel._on(_current.current_device() if self._ordinal is None else self._ordinal)

    def _figure(self, number: int) -> int:
        return max(0, self._on_device().attributes[number])

    @property
    def max_threads_per_block(self) -> int:
        """Threads that a block may have."""
        return self._on_device().threads

    @property
    def shared_size_bytes(self) -> int:
        """Bytes of shared memory that the kernel declares."""
        return self._figure(0)

    @property
    def const_size_bytes(self) -> int:
        """Bytes of constant memory."""
        return self._figure(1)

    @property
    def local_size_bytes(self) -> int:
        """Bytes of local memory of a thread."""
        return self._figure(2)

    @property
    def num_regs(self) -> int:
        """Registers of a thread."""
        return self._figure(3)

    @property
    def ptx_version(self) -> int:
        """Ten times the compute capability that the PTX is for."""
        return self._figure(4)

    @property
    def binary_version(self) -> int:
        """Ten times the compute capability that the binary is for."""
        return self._figure(5)


for _name in (
    "cache_mode_ca",
    "cluster_scheduling_policy_preference",
    "cluster_size_must_be_set",
    "max_dynamic_shared_size_bytes",
    "non_portable_cluster_size_allowed",
    "preferred_shared_memory_carveout",
    "required_cluster_depth",
    "required_cluster_height",
    "required_cluster_width",
):
    setattr(KernelAttributes, _name, missing_property(f"cuda.core.Kernel.attributes.{_name}"))
for _class in (Kernel, KernelAttributes, ObjectCode):
    _class.__module__ = "halstream.cuda.core"
    strict.add(_class)
