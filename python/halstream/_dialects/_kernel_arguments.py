"""Arguments of CUDA's kernels without a declaration: packed by their values, checked with what the driver knows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _memory
from .._core import _hostfunc
from .._core._stream import Stream
from .._errors import NotSupportedError
from .._kernel import _launch
from .._kernel._packing import CELL, Shape

__all__ = ["Packed", "address", "enqueue", "fitted", "scalar"]

# What a kernel may be given of NumPy, by the codes of the types.
_SCALARS = frozenset(np.dtype(code).type for code in "?bhilqBHILQefdFD")
# An int that may be an address: what is smaller is looked up nowhere.
_ADDRESS = 1 << 32

# What errors call the kinds of arguments.
_KINDS = {"p": "a pointer", "i": "an integer", "u": "an integer", "f": "a floating-point number", "b": "a bool"}
_KINDS |= {"c": "a complex number", "V": "a structure"}


class Packed(NamedTuple):
    """An argument as a launch takes it."""

    cell: bytes
    mode: str  #: as `Packer.modes` has them, in capitals
    kind: str  #: of the value: 'i' for integers, 'p' for addresses, else the kind of its dtype
    memory: Any = None  #: that the argument is in


def address(start: int, size: int, memory: Any) -> Packed:
    """Return memory that a kernel may read and write: its program says what it does."""
    return Packed(struct.pack("<QQ", start, size), "B" if start and size else "-", "p", memory)


def scalar(x: Any, largest: str) -> Packed | None:
    """Return a number of Python's or of NumPy's as a launch takes it, None for anything else.

    Parameters
    ----------
    x : object
    largest : str
        The type of C that the package's error names for an int which no type has room for.

    Raises
    ------
    OverflowError
        For such an int.
    """
    if type(x) in _SCALARS:
        return Packed(x.tobytes(), "-", x.dtype.kind)
    if isinstance(x, bool):
        return Packed(bytes([x]), "-", "b")
    if isinstance(x, float):
        return Packed(struct.pack("<d", x), "-", "f")
    if isinstance(x, complex):
        return Packed(struct.pack("<dd", x.real, x.imag), "-", "c")
    if not isinstance(x, int):
        return None
    if _ADDRESS <= x < 1 << 64:  # the number of an address, which says more than the number alone
        where, start, size, _ = _memory.lookup(x)
        if where != _memory.PAGEABLE:
            return address(x, start + size - x, None)
    try:
        return Packed(struct.pack("<q" if x < 1 << 63 else "<Q", x), "-", "i" if x < 1 << 63 else "u")
    except struct.error:
        raise OverflowError(f"Python int too large to convert to C {largest}") from None


def fitted(name: str, kernel: _launch.Loaded, arguments: Sequence[Packed]) -> list[Packed]:
    """Return arguments that fit the parameters of a kernel, as far as the driver says what those are.

    Raises
    ------
    TypeError
        If the value of one does not fit.
    NotSupportedError
        If one is larger than those that are passed by value.
    """
    return [_fitting(name, kernel, i, given) for i, given in enumerate(arguments)]


def enqueue(name: str, kernel: _launch.Loaded, stream: Stream, shape: Shape, arguments: Sequence[Packed]) -> list[Any]:
    """Enqueue a launch, and return the memory among its arguments.

    Parameters
    ----------
    name : str
        The kernel's in its program.
    kernel : Loaded
        The kernel on the stream's device.
    stream : Stream
    shape : Shape
    arguments : sequence of Packed
        Those of `fitted`.

    Raises
    ------
    HalError
        If the device cannot run it.
    """
    packed = list(arguments)
    if _hostfunc.keep is not None:  # a sanitizer wants to know which arrays are only read
        for i, (p, mode) in enumerate(zip(packed, kernel.program.accesses(name), strict=False)):
            if p.mode == "B":
                packed[i] = p._replace(mode=mode.upper())
    modes, cells = "".join(p.mode for p in packed).encode(), b"".join(p.cell for p in packed)
    memory = [p.memory for p in packed if p.memory is not None]
    _launch.enqueue(name, kernel, stream, shape, modes, cells, memory)
    return memory


def _fitting(name: str, kernel: _launch.Loaded, number: int, given: Packed) -> Packed:
    sizes, has = kernel.sizes, 8 if given.kind == "p" else len(given.cell)
    size = has if sizes is None or number >= len(sizes) else sizes[number]
    if size == has:
        if has > CELL:
            raise NotSupportedError(
                f"kernel {name}, argument {number + 1}: a value of {has} bytes; {CELL} are the most, give a "
                "pointer to it"
            )
        return given._replace(cell=given.cell.ljust(CELL, b"\0"))
    if given.kind in "iu" and size < has:
        value = int.from_bytes(given.cell, "little", signed=given.kind == "i")
        if -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            return given._replace(cell=given.cell[:size].ljust(CELL, b"\0"))
    raise TypeError(
        f"kernel {name}, argument {number + 1}: the parameter has {size} bytes, and {_KINDS[given.kind]} of "
        f"{has} bytes does not fit; give a NumPy scalar of the parameter's type, such as numpy.float32(x)"
    )
