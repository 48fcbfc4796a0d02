"""The size of a launch, and its arguments packed into the bytes that a device takes."""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._errors import KernelArgumentError
from .._memory._array import Array
from .._runtime import runtime
from ._signature import Parameter

__all__ = ["CELL", "Packer", "Shape", "shape_of"]

#: Bytes that each argument takes; the same number is `Cell` of hal/driver.
CELL = 16

# What a device is given of each scalar type, as `struct` calls it.
_FORMATS = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
_MODES = {"": "-", "in": "r", "out": "w", "inout": "b"}
# Every integer up to this one is a float64, so that it is rounded only once.
_EXACT = 2**53

# The vendor's limits, also on the host device: what passes there launches everywhere.
_GRID = (2**31 - 1, 65535, 65535)
_BLOCK = (1024, 1024, 64)
_THREADS = 1024


# Blocks of a cluster: as many as every device has that has clusters.
_CLUSTER = 8
# Bytes of dynamic shared memory of a block: no device has more.
_SHARED = 227 << 10


class Shape(NamedTuple):
    """The size of a launch, within the vendor's limits."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    threads: int  #: of a block
    shared: int  #: bytes of dynamic shared memory of a block
    packed: str  #: as the extension takes it

    def with_options(self, kernel: str, shared: Any, cooperative: Any, cluster: Any) -> Shape:
        """Return the launch with options of `Stream.launch`, which are checked here.

        Raises
        ------
        KernelArgumentError
            If no device can have them; the text names the kernel.
        """
        given = _whole_number(kernel, "shared", shared)
        if not 0 <= given <= _SHARED:
            raise KernelArgumentError(
                f"kernel {kernel}: shared is {given} bytes, not from 0 to {_SHARED}", operation="launch"
            )
        if not isinstance(cooperative, (bool, np.bool_)):
            raise KernelArgumentError(
                f"kernel {kernel}: cooperative is True or False, not {cooperative!r}", operation="launch"
            )
        blocks = (0, 0, 0) if cluster is None else _size(kernel, "cluster", cluster, (_CLUSTER,) * 3)
        if cluster is not None:
            self._check_cluster(kernel, blocks)
        return self._replace(shared=given, packed=_packed(self.grid, self.block, given, bool(cooperative), blocks))

    def _check_cluster(self, kernel: str, blocks: tuple[int, int, int]) -> None:
        if blocks[0] * blocks[1] * blocks[2] > _CLUSTER:
            raise KernelArgumentError(
                f"kernel {kernel}: a cluster of {blocks} has more than {_CLUSTER} blocks", operation="launch"
            )
        if any(size % part for size, part in zip(self.grid, blocks, strict=True)):
            raise KernelArgumentError(
                f"kernel {kernel}: clusters of {blocks} blocks do not divide the grid {self.grid}; each "
                "dimension of the grid is a multiple of the cluster's",
                operation="launch",
            )


def _packed(grid: Any, block: Any, shared: int, cooperative: bool, cluster: Any) -> str:
    """Return the size of a launch in the hexadecimal digits that `StreamLaunch` of pybuild takes."""
    return struct.pack("<11I", *grid, *block, shared, cooperative, *cluster).hex()


def _whole_number(kernel: str, what: str, given: Any) -> int:
    try:
        return operator.index(given)
    except TypeError:
        raise KernelArgumentError(f"kernel {kernel}: {what} is an integer, not {given!r}", operation="launch") from None


# By grid and block as they were given: a program launches few sizes again and again.
_shapes: dict[Any, Shape] = runtime.keep("shapes of kernel arguments", {})
_SHAPES_MOST = 1024
_INTEGERS = {int}


def shape_of(kernel: str, grid: Any, block: Any) -> Shape:
    """Return the size of a launch.

    Raises
    ------
    KernelArgumentError
        If it is none, or no device can have it; the text names the kernel.
    """
    usual = _whole(grid) and _whole(block)
    found = _shapes.get((grid, block)) if usual else None
    if found is None:
        size = _size(kernel, "grid", grid, _GRID), _size(kernel, "block", block, _BLOCK)
        threads = size[1][0] * size[1][1] * size[1][2]
        if threads > _THREADS:
            raise KernelArgumentError(
                f"kernel {kernel}: a block of {size[1]} has more than {_THREADS} threads", operation="launch"
            )
        found = Shape(*size, threads, 0, _packed(*size, 0, False, (0, 0, 0)))
        if usual:
            if len(_shapes) >= _SHAPES_MOST:
                _shapes.clear()
            _shapes[grid, block] = found
    return found


def _whole(size: Any) -> bool:
    """Return True for plain integers: others may equal them as keys, as 1.0 and True do."""
    kind = type(size)
    return kind is int or (kind is tuple and {*map(type, size)} <= _INTEGERS)


def _size(kernel: str, what: str, given: Any, most: Sequence[int]) -> tuple[int, int, int]:
    lengths = given if isinstance(given, (tuple, list)) else (given,)
    try:
        numbers = [operator.index(n) for n in lengths]
    except TypeError:
        numbers = []
    if not 1 <= len(numbers) <= 3:
        raise KernelArgumentError(
            f"kernel {kernel}: {what} is one to three integers, not {given!r}", operation="launch"
        )
    x, y, z = numbers + [1] * (3 - len(numbers))
    for axis, number, limit in zip("xyz", (x, y, z), most, strict=True):
        if not 1 <= number <= limit:
            raise KernelArgumentError(
                f"kernel {kernel}: {what}.{axis} is {number}, not from 1 to {limit}", operation="launch"
            )
    return x, y, z


class _Rule(NamedTuple):
    """The arguments of a parameter that `Packer` packs."""

    scalar: Any  #: NumPy's class of a scalar; None for a pointer
    dtype: Any  #: of a pointer's array; None if any will do
    written: bool  #: a pointer's memory
    other: type | None  #: Python's class for a scalar, besides int
    least: int  #: that an int may be
    most: int


class Packer:
    """A compiled signature. It packs common kinds of arguments and reports no errors.

    Parameters
    ----------
    parameters : sequence of Parameter

    Attributes
    ----------
    modes : str
        A letter for each parameter: ``'-'`` for a scalar; ``'r'``, ``'w'`` or
        ``'b'`` for a pointer, whose memory is read, written or both.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.modes = "".join(_MODES[p.direction] for p in parameters)
        self._rules = [_rule(p) for p in parameters]
        formats = [_format(p) for p in parameters]
        # With a type that struct does not have, which is rare, nothing is usual.
        self._pack = struct.Struct("<" + "".join(formats)).pack if all(formats) else None

    def pack(self, args: Sequence[Any]) -> str | None:
        """Return the arguments as hexadecimal digits of `CELL` bytes each; None if one is unusual.

        Of an array that is its address and its size. Whether a device can use
        the memory there is not checked.
        """
        rules, pack = self._rules, self._pack
        if pack is None or len(args) != len(rules):
            return None
        fields: list[Any] = []
        for (scalar, dtype, written, other, least, most), value in zip(rules, args, strict=True):
            kind = type(value)
            if scalar is None:
                if kind is Array:
                    memory = value._memory
                    if not memory.ptr or memory.foreign or (written and memory.readonly):
                        return None
                    address = value.ptr
                elif kind is np.ndarray:
                    flags = value.flags
                    if not flags.c_contiguous or (written and not flags.writeable):
                        return None
                    address = value.__array_interface__["data"][0]
                elif value is None:
                    fields += (0, 0)
                    continue
                else:
                    return None
                size = value.nbytes
                if not size or (dtype is not None and value.dtype != dtype):
                    return None
                fields += (address, size)
            elif kind is scalar:
                fields.append(value.item())
            elif kind is other or (kind is int and least <= value <= most):
                fields.append(value)
            else:
                return None
        try:
            return pack(*fields).hex()
        except (OverflowError, struct.error):  # a float that its type does not reach
            return None


def _rule(p: Parameter) -> _Rule:
    written = p.direction in ("out", "inout")
    if p.pointer:
        return _Rule(None, p.dtype, written, None, 1, 0)
    if p.dtype.kind in "iu":
        limits = np.iinfo(p.dtype)
        return _Rule(p.dtype.type, None, False, None, int(limits.min), int(limits.max))
    if p.dtype.kind == "f":
        return _Rule(p.dtype.type, None, False, float, -_EXACT, _EXACT)
    return _Rule(p.dtype.type, None, False, bool, 1, 0)


def _format(p: Parameter) -> str:
    if p.pointer:
        return "QQ"
    letter = _FORMATS.get(p.dtype.name)
    return f"{letter}{CELL - p.dtype.itemsize}x" if letter else ""
