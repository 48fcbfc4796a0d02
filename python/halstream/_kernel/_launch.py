"""Kernels of CUDA programs: programs loaded once for each device, arguments as a launch takes them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from .. import _memory, _native
from .._core import _hostfunc
from .._core._interop import backend_name, device_facts, fact
from .._errors import CompileError, HalError, KernelArgumentError, NotSupportedError
from .._runtime import Owner
from . import _nvrtc
from ._packing import CELL, Shape

if TYPE_CHECKING:
    from .._core._stream import Stream
    from . import Kernel

__all__ = ["Loaded", "Program", "enqueue", "forget", "launch", "load_for", "load_program"]

# The driver's numbers for programs that it cannot use.
_NO_BINARY = 209
_BAD_PTX = 218
_PTX_TOO_NEW = 222
_NO_ENTRY = 500

_ENTRIES = re.compile(rb"\.entry\s+([A-Za-z_$%][\w$]*)")

# The encoding in which the extension receives a program, as its strings are text.
_BINARY = "hex:"

_enqueue = _native.taking_objects("launch")


class Loaded(NamedTuple):
    """A kernel in the memory of a device."""

    function: int  #: the extension's id of it
    threads: int  #: that a block of it may have on the device
    shared: int  #: bytes of dynamic shared memory that a block may have there
    sizes: tuple[int, ...] | None  #: of the parameters in bytes; None if the driver does not say
    program: Program  #: that it belongs to

    @property
    def attributes(self) -> tuple[int, ...]:
        """What the device's library knows; -1 is not known.

        The shared, constant and local memory in bytes, the registers, and ten times the compute
        capability that the PTX and the binary are for.
        """
        return tuple(map(int, _native.function_attributes(self.function).split()))

    def launch(self, kernel: Kernel, stream: Stream, shape: Shape, args: tuple[Any, ...]) -> bool:
        """Enqueue a launch with arguments of common kinds; for others do nothing and return False.

        The extension checks where the arguments' memory is.

        Raises
        ------
        HalError
            If an argument's memory is of another device, or the driver refuses the launch.
        """
        # A sanitizer needs the arguments one by one.
        if not self.program.current or _hostfunc.keep is not None:
            return False
        if shape.threads > self.threads or shape.shared > self.shared:
            return False
        packer = kernel._packer
        packed = packer.pack(args)
        if packed is None:
            return False
        try:
            return not _enqueue(stream._id, self.function, packer.modes, shape.packed, packed)
        except RuntimeError as exc:
            raise _native.error(exc) from None


class Program:
    """A CUDA program in the memory of a device, with variables of its own.

    It is unloaded when it is collected, and its launches have run.
    """

    def __init__(self, ordinal: int, code: bytes) -> None:
        self._era = _cache.era
        self._code = code
        self._accesses: dict[str, str] = {}  # by kernel
        self._owner = Owner(int(_native.module_load(ordinal, _BINARY + code.hex())))

    @property
    def ident(self) -> int:
        """The extension's id of it."""
        return self._owner.ident

    @property
    def current(self) -> bool:
        """False after a change of backend."""
        return self._era is _cache.era

    def function(self, entry: str) -> Loaded:
        """Return a kernel by its name in the program."""
        number = int(_native.module_function(self.ident, entry))
        sizes = _native.function_parameters(number)
        return Loaded(
            number,
            int(_native.function_threads(number)),
            int(_native.function_shared(number)),
            None if sizes == "?" else tuple(map(int, sizes.split())),
            self,
        )

    def accesses(self, entry: str) -> str:
        """Return what a kernel does to the memory behind each parameter, as its text shows it.

        A letter for each, ``'r'``, ``'w'`` or ``'b'`` for both; nothing of a binary.
        """
        found = self._accesses.get(entry)
        if found is None:
            found = self._accesses[entry] = _native.program_accesses(_BINARY + self._code.hex(), entry)
        return found

    def variable(self, name: str) -> tuple[int, int]:
        """Return the address and the size in bytes of a variable by its name in the program."""
        address, size = map(int, _native.module_global(self.ident, name).split())
        return address, size

    def close(self) -> None:
        """Unload it now."""
        _native.close(self.ident)


class _Cache:
    """The programs that kernels share, by device and code."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.programs: dict[tuple[int, bytes], Program] = {}
        self.era = object()


_cache = _Cache()


def launch(
    kernel: Kernel, stream: Stream, shape: Shape, values: Sequence[Any], reads: Sequence[Any], writes: Sequence[Any]
) -> None:
    """Enqueue a kernel whose arguments were checked.

    Raises
    ------
    KernelArgumentError
        If a block has more threads than the device allows the kernel, or an
        argument is of a type that devices do not have.
    CompileError
        If the program has errors.
    HalError
        If the device cannot run it.
    """
    loaded = on_device(kernel, stream._ordinal)
    cells = b"".join(_cell(kernel, i, value) for i, value in enumerate(values))
    enqueue(kernel.name, loaded, stream, shape, kernel._packer.modes.upper(), cells, (*reads, *writes))


def enqueue(
    name: str, loaded: Loaded, stream: Stream, shape: Shape, modes: bytes, cells: bytes, arrays: Sequence[Any]
) -> None:
    """Enqueue a kernel with arguments that were checked and packed.

    Parameters
    ----------
    name : str
        What errors call the kernel.
    loaded : Loaded
        The kernel on the stream's device.
    stream : Stream
    shape : Shape
    modes : bytes
        A letter for each argument, as `Packer.modes` has them, in capitals.
    cells : bytes
        The arguments, `CELL` bytes each: a value, or an address and the bytes that are there.
    arrays : sequence
        The arrays among the arguments, for who watches their use.

    Raises
    ------
    KernelArgumentError
        If a block has more threads or shared memory than the device allows the kernel.
    HalError
        If the device cannot run it.
    """
    if shape.threads > loaded.threads:
        raise KernelArgumentError(
            f"kernel {name}: a block of {shape.block} has {shape.threads} threads, and device "
            f"{stream._ordinal} allows this kernel {loaded.threads}",
            operation="launch",
        )
    if shape.shared > loaded.shared:
        raise KernelArgumentError(
            f"kernel {name}: {shape.shared} bytes of dynamic shared memory, and device "
            f"{stream._ordinal} allows a block of this kernel {loaded.shared}",
            operation="launch",
        )
    if _hostfunc.keep is not None:
        for array in arrays:
            _hostfunc.keep(array)
    try:
        _enqueue(stream._id, loaded.function, modes, shape.packed, cells)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def _cell(kernel: Kernel, number: int, value: Any) -> bytes:
    """Return an argument in the bytes that a device expects, filled up to cells.

    For an address the extension reads the bytes that are there.
    """
    if kernel.parameters[number].pointer:
        address, size = (0, 0) if value is None or not value.nbytes else _memory.address_of(value)
        return address.to_bytes(8, "little") + size.to_bytes(8, "little")
    dtype = value.dtype
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        raise KernelArgumentError(
            f"kernel {kernel.name}, argument {number + 1} ({kernel.parameters[number]}): CUDA "
            f"devices have no type {dtype}",
            operation="launch",
        )
    cell: bytes = value.tobytes() if dtype.kind == "V" else value.astype(dtype.newbyteorder("<")).tobytes()
    return cell + bytes(-len(cell) % CELL)


# -- programs -----------------------------------------------------------------


class Made(Protocol):
    """What a compiler has made."""

    @property
    def code(self) -> bytes:
        """PTX, or a cubin."""


def load_program(ordinal: int, code: bytes) -> Program:
    """Return a program on a device that is shared by all who have the same code."""
    with _cache.lock:
        key = ordinal, code
        program = _cache.programs.get(key)
        if program is None:
            program = _cache.programs[key] = Program(ordinal, code)
    return program


def _facts(ordinal: int) -> tuple[tuple[int, int], int]:
    """Return the compute capability of a device, and the major version of its driver, 0 for none."""
    facts = device_facts(ordinal)
    driver = 0 if backend_name() == "host" else int(fact(ordinal, "driver")) // 1000
    return (facts["major"], facts["minor"]), driver


def load_for(
    ordinal: int, compile: Callable[[str, int], Made], load: Callable[[int, bytes], Program] = load_program
) -> tuple[Any, Program]:
    """Compile a source for a device and load it there; return what the compiler made, and the program.

    As PTX, which every driver takes that is not older than the compiler; for an
    older one as a binary for exactly this device.

    Parameters
    ----------
    ordinal : int
    compile : callable
        Is given an architecture and the major version of the driver.
    load : callable
        `load_program`, or `Program` for one that nobody shares.
    """
    capability, driver = _facts(ordinal)
    made = compile(_nvrtc.virtual(*capability, driver), driver)
    try:
        return made, load(ordinal, made.code)
    except HalError as exc:
        if exc.code != _PTX_TOO_NEW or not _nvrtc.target(*capability, driver).startswith("sm_"):
            raise
    made = compile(_nvrtc.target(*capability, driver), driver)
    return made, load(ordinal, made.code)


def on_device(kernel: Kernel, ordinal: int) -> Loaded:
    """Return the kernel as a device has it, and bring it there first if needed."""
    loaded = kernel._loaded.get(ordinal)
    if loaded is None or not loaded.program.current:
        loaded = kernel._loaded[ordinal] = _load(kernel, ordinal)
    return loaded


def _load(kernel: Kernel, ordinal: int) -> Loaded:
    """Bring a kernel to a device, compiled for it if it is source."""
    try:
        if kernel._form == "source":
            made, program = load_for(ordinal, kernel._compile)
        else:
            made = kernel._compile("", 0)
            program = load_program(ordinal, made.code)
        loaded = program.function(made.entry)
    except HalError as exc:
        if exc.operation == "compile":
            raise
        raise _explained(exc, kernel, ordinal, _facts(ordinal)[0]) from None
    _check_parameters(kernel, loaded.sizes)
    return loaded


def _check_parameters(kernel: Kernel, found: Sequence[int] | None) -> None:
    """Compare a kernel's declaration with the parameters of its program, as far as a driver knows them.

    Raises
    ------
    KernelArgumentError
        If they differ in number or in size.
    NotSupportedError
        If the driver does not say, and a parameter is larger than one cell.
    """
    declared = [8 if p.pointer else p.dtype.itemsize for p in kernel.parameters]
    if found is None and max(declared, default=0) > CELL:
        raise NotSupportedError(
            f"kernel {kernel.name}: a struct of more than {CELL} bytes is not passed by value on this device "
            f"({kernel.signature}); give the kernel a pointer to it",
            operation="launch",
        )
    if found is not None and list(found) != declared:
        raise KernelArgumentError(
            f"kernel {kernel.name} is declared with {_bytes_of(declared)} ({kernel.signature}), and its program "
            f"has {_bytes_of(found)}; correct signature=",
            operation="launch",
        )


def _bytes_of(sizes: Sequence[int]) -> str:
    listed = " of " + ", ".join(map(str, sizes)) + " bytes" if sizes else ""
    return f"{len(sizes)} parameter{'' if len(sizes) == 1 else 's'}{listed}"


def _explained(exc: HalError, kernel: Kernel, ordinal: int, capability: tuple[int, int]) -> HalError:
    """Return the error for a program that the driver refused, with the reason for this kernel."""
    device = f"device {ordinal}"
    kind: type[HalError] = type(exc)
    if exc.code == _BAD_PTX:
        text = f"kernel {kernel.name}: the driver cannot assemble its PTX for {device}\n{exc}"
        return CompileError(text, code=exc.code, operation="launch", log=str(exc))
    if exc.code == _NO_BINARY:
        text = (
            f"kernel {kernel.name} was built for another architecture than "
            f"sm_{capability[0]}{capability[1]}, that of {device}: {exc}"
        )
    elif exc.code == _PTX_TOO_NEW:
        text = (
            f"kernel {kernel.name}: its PTX is newer than the driver of {device}; update the "
            f"driver, or give PTX of an older compiler: {exc}"
        )
    elif exc.code == _NO_ENTRY:
        names = [name.decode() for name in _ENTRIES.findall(kernel._cuda or b"")]
        known = f"; it has {', '.join(names)}" if names else ""
        text = f"the CUDA program has no kernel {kernel.name!r}{known}: {exc}"
    else:
        text = f"kernel {kernel.name} on {device}: {exc}"
    return kind(text, code=exc.code, operation="launch")


def forget() -> None:
    """Unload the modules (change of backend)."""
    with _cache.lock:
        programs, _cache.programs, _cache.era = list(_cache.programs.values()), {}, object()
    for program in programs:
        with contextlib.suppress(HalError):  # the backend may be closed already
            program.close()
