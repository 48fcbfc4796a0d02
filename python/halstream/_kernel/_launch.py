"""Kernels of CUDA programs: programs loaded once for each device, arguments as a launch takes them."""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _memory, _native
from .._core import _hostfunc
from .._core._interop import backend_name, device_facts, fact
from .._errors import CompileError, HalError, KernelArgumentError
from . import _nvrtc
from ._packing import CELL, Shape

if TYPE_CHECKING:
    from .._core._stream import Stream
    from . import Kernel

__all__ = ["Loaded", "forget", "launch"]

#: What the host device runs: PTX for devices of this compute capability and older ones.
HOST_CAPABILITY = 8, 0

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
    era: object  #: of the backend that loaded it

    def launch(self, kernel: Kernel, stream: Stream, shape: Shape, args: tuple[Any, ...]) -> bool:
        """Enqueue a launch with arguments of common kinds; for others do nothing and return False.

        The extension checks where the arguments' memory is.

        Raises
        ------
        HalError
            If an argument's memory is of another device, or the driver refuses the launch.
        """
        # A sanitizer needs the arguments one by one.
        if self.era is not _cache.era or _hostfunc.keep is not None:
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


class _Cache:
    """The modules of the process, by device and code."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.modules: dict[tuple[int, bytes], int] = {}
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
    ordinal: int = stream._ordinal
    loaded = on_device(kernel, ordinal)
    if shape.threads > loaded.threads:
        raise KernelArgumentError(
            f"kernel {kernel.name}: a block of {shape.block} has {shape.threads} threads, and device "
            f"{ordinal} allows this kernel {loaded.threads}",
            operation="launch",
        )
    if shape.shared > loaded.shared:
        raise KernelArgumentError(
            f"kernel {kernel.name}: {shape.shared} bytes of dynamic shared memory, and device "
            f"{ordinal} allows a block of this kernel {loaded.shared}",
            operation="launch",
        )
    if _hostfunc.keep is not None:
        for array in (*reads, *writes):
            _hostfunc.keep(array)
    cells = b"".join(_cell(kernel, i, value) for i, value in enumerate(values))
    modes = kernel._packer.modes.upper()  # looked at already
    try:
        _enqueue(stream._id, loaded.function, modes, shape.packed, cells)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def _cell(kernel: Kernel, number: int, value: Any) -> bytes:
    """Return an argument in the bytes that a device expects, filled up to a cell.

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
    cell: bytes = value.astype(dtype.newbyteorder("<")).tobytes()
    return cell.ljust(CELL, b"\0")


# -- programs -----------------------------------------------------------------


def on_device(kernel: Kernel, ordinal: int) -> Loaded:
    """Return the kernel as a device has it, and bring it there first if needed."""
    loaded = kernel._loaded.get(ordinal)
    if loaded is None or loaded.era is not _cache.era:
        loaded = kernel._loaded[ordinal] = _load(kernel, ordinal)
    return loaded


def _load(kernel: Kernel, ordinal: int) -> Loaded:
    """Bring a kernel to a device, compiled for it if it is source."""
    if backend_name() == "host":
        capability, driver = HOST_CAPABILITY, 0
    else:
        facts = device_facts(ordinal)
        capability = facts["major"], facts["minor"]
        driver = int(fact(ordinal, "driver")) // 1000  # the major version
    # PTX, as every driver takes it that is not older than the compiler. A binary
    # for exactly this device works with an older driver.
    source = kernel._form == "source"
    program = kernel._compile(_nvrtc.virtual(*capability, driver) if source else "", driver)
    try:
        return _function(kernel, ordinal, program)
    except HalError as exc:
        if not source or exc.code != _PTX_TOO_NEW or not _nvrtc.target(*capability, driver).startswith("sm_"):
            raise _explained(exc, kernel, ordinal, capability) from None
    try:
        return _function(kernel, ordinal, kernel._compile(_nvrtc.target(*capability, driver), driver))
    except HalError as exc:
        raise _explained(exc, kernel, ordinal, capability) from None


def _function(kernel: Kernel, ordinal: int, program: _nvrtc.Compiled) -> Loaded:
    with _cache.lock:
        era = _cache.era
        key = ordinal, program.code
        module = _cache.modules.get(key)
        if module is None:
            module = _cache.modules[key] = int(_native.module_load(ordinal, _BINARY + program.code.hex()))
    function = int(_native.module_function(module, program.entry))
    _check_parameters(kernel, _native.function_parameters(function))
    threads, shared = int(_native.function_threads(function)), int(_native.function_shared(function))
    return Loaded(function, threads, shared, era)


def _check_parameters(kernel: Kernel, sizes: str) -> None:
    """Compare a kernel's declaration with the parameters of its program, as far as a driver knows them.

    Raises
    ------
    KernelArgumentError
        If they differ in number or in size.
    """
    if sizes == "?":
        return
    found = [int(size) for size in sizes.split()]
    declared = [8 if p.pointer else p.dtype.itemsize for p in kernel.parameters]
    if found != declared:
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
        modules, _cache.modules, _cache.era = list(_cache.modules.values()), {}, object()
    for module in modules:
        with contextlib.suppress(HalError):  # the backend may be closed already
            _native.close(module)
