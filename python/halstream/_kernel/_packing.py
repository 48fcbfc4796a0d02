"""The size of a launch, and its arguments packed into the bytes that a device takes."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from .._errors import KernelArgumentError
from .._memory._array import Array
from .._runtime import runtime
from ._signature import Parameter

__all__ = ["CELL", "Packer", "Shape", "shape_of"]

#: Each argument takes a multiple of so many bytes; the same number is `Cell` of hal/driver.
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
    packed: bytes  #: as the extension takes it

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


def _packed(grid: Any, block: Any, shared: int, cooperative: bool, cluster: Any) -> bytes:
    """Return the size of a launch as the extension takes it."""
    return struct.pack("<11I", *grid, *block, shared, cooperative, *cluster)


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
    if type(grid) is type(block) is int and (known := _shapes.get((grid, block))) is not None:
        return known
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


class Packer:
    """A compiled signature. It packs common kinds of arguments and reports no errors.

    Parameters
    ----------
    parameters : sequence of Parameter

    Attributes
    ----------
    modes : bytes
        A letter for each `CELL` of the arguments: ``'-'`` for a scalar or a struct; ``'r'``, ``'w'`` or
        ``'b'`` for a pointer, whose memory is read, written or both.
    pack : callable
        Returns the arguments, each filled up to cells;
        None if one is unusual. Of an array that is its address and its size.
        Whether a device can use the memory there is not checked.
    """

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.modes = "".join(_MODES[p.direction] * (1 if p.pointer else _cells(p)) for p in parameters).encode()
        formats = [_format(p) for p in parameters]
        # With a type that struct does not have, which is rare, nothing is usual.
        self.pack: Callable[[tuple[Any, ...]], bytes | None] = (
            _compiled(parameters, struct.Struct("<" + "".join(formats)).pack) if all(formats) else lambda args: None
        )


# A launch spends most of its time on its arguments, so the function that packs them is written
# for its signature, without loops and without rules that are looked up.
_FUNCTION = """
def pack(args):
    try:
        {names} = args
    except ValueError:
        return None
{checks}
    try:
        return join({fields})
    except (OverflowError, error):  # a float that its type does not reach
        return None
"""
_POINTER = """
    if type(a{i}) is Array:
        memory = a{i}._memory
        if not memory.ptr or memory.foreign or ({written} and memory.readonly):
            return None
        p{i}, dtype = a{i}.ptr, a{i}.dtype
        n{i} = dtype.itemsize  # of all elements it is nbytes, which a call would make slower
        for length in a{i}.shape:
            n{i} *= length
        if not n{i} or (dtype is not t{i} and t{i} is not None and dtype != t{i}):
            return None
    elif a{i} is None:
        p{i} = n{i} = 0
    else:
        found = other(a{i}, t{i}, {written})
        if found is None:
            return None
        p{i}, n{i} = found
"""
_SCALAR = """
    kind = type(a{i})
    if kind is int:
        if not {least} <= a{i} <= {most}:
            return None
    elif kind is t{i}:
        a{i} = a{i}.item()
    elif kind is not {other}:
        return None
"""


_STRUCT = """
    if type(a{i}) is not bytes or len(a{i}) != {size}:
        return None
"""


def _cells(p: Parameter) -> int:
    """Return how many cells a value takes."""
    return -(-int(p.dtype.itemsize) // CELL)


def _compiled(parameters: Sequence[Parameter], join: Callable[..., bytes]) -> Callable[[tuple[Any, ...]], bytes | None]:
    """Write the function of `Packer.pack` for a signature."""
    env: dict[str, Any] = {"Array": Array, "join": join, "error": struct.error, "other": _other_array}
    checks, fields = "", []
    for i, p in enumerate(parameters):
        if p.pointer:
            env[f"t{i}"] = p.dtype
            checks += _POINTER.format(i=i, written=p.direction in ("out", "inout"))
            fields += [f"p{i}", f"n{i}"]
            continue
        if p.struct:
            checks += _STRUCT.format(i=i, size=p.dtype.itemsize)
            fields.append(f"a{i}")
            continue
        env[f"t{i}"] = p.dtype.type
        least, most, other = _limits(p)
        checks += _SCALAR.format(i=i, least=least, most=most, other=other)
        fields.append(f"a{i}")
    names = "".join(f"a{i}, " for i in range(len(parameters))) or "()"
    exec(_FUNCTION.format(names=names, checks=checks, fields=", ".join(fields)), env)
    return cast("Callable[[tuple[Any, ...]], bytes | None]", env["pack"])


def _limits(p: Parameter) -> tuple[int, int, str]:
    """Return the least and the greatest int for a scalar, and Python's other class for it."""
    if p.dtype.kind in "iu":
        limits = np.iinfo(p.dtype)
        return int(limits.min), int(limits.max), "int"
    if p.dtype.kind == "f":
        return -_EXACT, _EXACT, "float"
    return 1, 0, "bool"  # no int


def _other_array(value: Any, dtype: Any, written: bool) -> tuple[int, int] | None:
    """Return address and size of a NumPy array of the usual kind."""
    if type(value) is not np.ndarray:
        return None
    flags, size = value.flags, value.nbytes
    if not flags.c_contiguous or (written and not flags.writeable):
        return None
    if not size or (dtype is not None and value.dtype != dtype):
        return None
    return value.__array_interface__["data"][0], size


def _format(p: Parameter) -> str:
    if p.pointer:
        return "QQ"
    letter = f"{p.dtype.itemsize}s" if p.struct else _FORMATS.get(p.dtype.name)
    return f"{letter}{_cells(p) * CELL - p.dtype.itemsize}x" if letter else ""
