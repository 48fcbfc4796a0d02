"""cupy.cuda.function (14.2.0): loaded programs, and their kernels."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..._core import _current
from ..._dialects import _kernel_arguments
from ..._errors import HalError, NotSupportedError
from ..._kernel import _launch
from ..._kernel._packing import shape_of
from ._arguments import pack
from ._blocks import concrete, stream_of
from ._captured import keep_captured
from ._errors import not_built as _not_built
from ._errors import unsupported
from .driver import CUDADriverError, driver_error

__all__ = ["Function", "Module"]

# Bytes of dynamic and static shared memory that a block may have unless a kernel asks for more.
_SHARED = 48 << 10


class Module:
    """cupy.cuda.function.Module (14.2.0): a program in the memory of the current device."""

    def __init__(self) -> None:
        self.mapping: dict[str, str] | None = None
        self._program: _launch.Program | None = None
        self._ordinal = -1

    @classmethod
    def of(cls, program: _launch.Program, ordinal: int, mapping: dict[str, str] | None = None) -> Module:
        """Return the module of a program that is loaded on a device."""
        made = cls()
        made._program, made._ordinal, made.mapping = program, ordinal, mapping
        return made

    @property
    def ptr(self) -> int:
        """A number that only this module has; 0 before it is loaded."""
        return 0 if self._program is None else self._program.ident

    @property
    def current(self) -> bool:
        """False after a change of backend, which has ended the program."""
        return self._program is not None and self._program.current

    def load(self, cubin: bytes) -> None:
        """Load a binary, or PTX."""
        if not isinstance(cubin, bytes):
            raise TypeError(f"Argument 'cubin' has incorrect type (expected bytes, got {type(cubin).__name__})")
        self._ordinal = _current.current_device()
        try:
            self._program = _launch.Program(self._ordinal, cubin if cubin[:1] == b"\x7f" else cubin + b"\0")
        except HalError as exc:
            raise driver_error(exc) from exc

    def load_file(self, filename: Any) -> None:
        """Load the binary, or the PTX, in a file."""
        path = filename.decode() if isinstance(filename, bytes) else filename
        try:
            code = Path(path).read_bytes()
        except OSError as exc:
            raise CUDADriverError(301) from exc  # CUDA_ERROR_FILE_NOT_FOUND
        self.load(code)

    def get_function(self, name: Any) -> Function:
        """Return a kernel by its name in the program."""
        return Function(self, name.decode() if isinstance(name, bytes) else name)

    def get_global_var(self, name: Any) -> int:
        """Return the address of a variable by its name in the program."""
        return self.variable(name.decode() if isinstance(name, bytes) else name)[0]

    def variable(self, name: str) -> tuple[int, int]:
        """Return the address and the size of a variable by its name in the program."""
        try:
            return self._loaded().variable(name)
        except HalError as exc:
            raise driver_error(exc) from exc

    def _loaded(self) -> _launch.Program:
        if self._program is None:
            raise CUDADriverError(400)  # CUDA_ERROR_INVALID_HANDLE
        return self._program


class Function:
    """cupy.cuda.Function (14.2.0): a kernel of a module.

    Difference: an argument of another size than the parameter's is an error where
    its value does not fit, such as a Python float, which has 8 bytes, for a ``float``.
    """

    def __init__(self, module: Module, funcname: str) -> None:
        if not isinstance(funcname, str):
            raise TypeError(f"Argument 'funcname' has incorrect type (expected str, got {type(funcname).__name__})")
        self.module = module  # keeps the program loaded
        self._name = funcname
        try:
            self._kernel = module._loaded().function(funcname)
        except HalError as exc:
            raise driver_error(exc) from exc
        self._shared: int | None = None
        #: In percent, -1 for what the driver chooses; it is only kept.
        self.carveout = -1

    @property
    def ptr(self) -> int:
        """A number that only this function has."""
        return self._kernel.function

    @property
    def threads(self) -> int:
        """Threads that a block may have."""
        return self._kernel.threads

    @property
    def attributes(self) -> tuple[int, ...]:
        """As `Loaded.attributes` has them."""
        return self._kernel.attributes

    @property
    def dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory that a launch may ask for."""
        if self._shared is None:
            self._shared = min(self._kernel.shared, max(0, _SHARED - max(0, self.attributes[0])))
        return self._shared

    @dynamic_shared.setter
    def dynamic_shared(self, size: int) -> None:
        if not 0 <= size <= self._kernel.shared:
            raise driver_error(1, f"a block of {self._name} may have {self._kernel.shared} bytes, not {size}")
        self._shared = size

    def __call__(
        self,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        args: Any,
        shared_mem: int = 0,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Enqueue a launch on a stream, None being the current one."""
        for name, size in (("grid", grid), ("block", block)):
            if not isinstance(size, tuple):
                raise TypeError(f"Argument '{name}' has incorrect type (expected tuple, got {type(size).__name__})")
        self._launch(_three(grid), _three(block), args, shared_mem, stream, enable_cooperative_groups)

    def linear_launch(
        self,
        size: int,
        args: Any,
        shared_mem: int = 0,
        block_max_size: int = 128,
        stream: Any = None,
        enable_cooperative_groups: bool = False,
    ) -> None:
        """Enqueue a launch with a thread for each of `size` elements."""
        blocks = min(0x7FFFFFFF, -(-size // block_max_size))
        grid, block = (blocks, 1, 1), (min(block_max_size, size), 1, 1)
        self._launch(grid, block, args, shared_mem, stream, enable_cooperative_groups)

    def _launch(
        self, grid: tuple[int, ...], block: tuple[int, ...], args: Any, shared: int, stream: Any, cooperative: bool
    ) -> None:
        where = concrete(stream_of(stream))
        try:
            packed = _kernel_arguments.fitted(self._name, self._kernel, [pack(value) for value in args])
        except NotSupportedError as exc:
            raise unsupported(str(exc)) from exc
        if shared > self.dynamic_shared:
            raise driver_error(
                1,
                f"a block of {self._name} is asked to have {shared} bytes of dynamic shared memory, and "
                f"max_dynamic_shared_size_bytes is {self.dynamic_shared}",
            )
        try:
            shape = shape_of(self._name, grid, block)
            if shared or cooperative:
                shape = shape.with_options(self._name, shared, bool(cooperative), None)
            memory = _kernel_arguments.enqueue(self._name, self._kernel, where, shape, packed)
        except HalError as exc:
            raise driver_error(exc) from exc
        if memory:
            keep_captured(where, *memory)


def _three(size: Sequence[Any]) -> tuple[int, ...]:
    return tuple(max(1, operator.index(n)) for n in (*size, 1, 1)[:3])


__getattr__: Callable[[str], Any] = _not_built(__name__)
