"""What ElementwiseKernel and ReductionKernel share: parameters, their types, arguments, and how code gets at them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import _current
from .._dialects._kernel_arguments import Packed
from .._memory._array import Array
from ._ndarray import ndarray
from .cuda import _compile, runtime
from .cuda._arguments import pack
from .cuda.function import Function, Module

__all__ = [
    "Argument",
    "Code",
    "Kernels",
    "Operand",
    "ParameterInfo",
    "Types",
    "argument",
    "broadcast",
    "check_name",
    "decide_types",
    "merged",
    "outputs",
    "parameters",
]

_TYPENAMES = {
    np.dtype(name): text
    for name, text in {
        "float64": "double",
        "float32": "float",
        "float16": "float16",
        "complex128": "thrust::complex<double>",
        "complex64": "thrust::complex<float>",
        "int64": "long long",
        "int32": "int",
        "int16": "short",
        "int8": "signed char",
        "uint64": "unsigned long long",
        "uint32": "unsigned int",
        "uint16": "unsigned short",
        "uint8": "unsigned char",
        "bool": "bool",
    }.items()
}
_HEADERS = ("complex.cuh", "carray.cuh", "math_constants.h")
# Bytes that an index of 32 bits reaches.
_NARROW = 1 << 31


def typename(dtype: Any) -> str:
    """Return the type in CUDA C++ of a dtype."""
    found = _TYPENAMES.get(np.dtype(dtype))
    if found is None:
        raise TypeError(f"Unable to find C++ type for dtype {dtype}")
    return found


# -- parameters ---------------------------------------------------------------


class ParameterInfo(NamedTuple):
    """A parameter that a program declares, such as ``raw T x``."""

    name: str
    dtype: Any  #: None for a placeholder
    ctype: str  #: the type in CUDA C++, or the placeholder
    raw: bool
    is_const: bool


def parameters(text: str, is_const: bool) -> tuple[ParameterInfo, ...]:
    """Return the parameters of a declaration.

    Raises
    ------
    Exception
        With cupy's words, if one cannot be read.
    TypeError
        If there is no such dtype.
    """
    return tuple(_parameter(part, is_const) for part in text.strip().split(",")) if text else ()


def _parameter(text: str, is_const: bool) -> ParameterInfo:
    words = text.split()
    if len(words) < 2:
        raise Exception(f"Syntax error: {text}")  # cupy's class
    *before, kind, name = words
    raw = False
    dtype = None if len(kind) == 1 else np.dtype(kind)
    ctype = kind if dtype is None else typename(dtype)
    for word in before:
        if word == "raw":
            raw = True
        elif word == "_non_const":
            is_const = False
        else:
            raise Exception(f'Unknown keyword "{word}"')  # cupy's class
    return ParameterInfo(name, dtype, ctype, raw, is_const)


def check_name(name: str) -> None:
    """Refuse what is no name of a function."""
    if re.fullmatch(r"[a-zA-Z_][a-zA-Z_0-9]*", name) is None:
        raise ValueError(f'Invalid kernel name: "{name}"')


class Types(NamedTuple):
    """The dtypes of a call's parameters."""

    ins: tuple[Any, ...]
    outs: tuple[Any, ...]
    placeholders: tuple[tuple[str, Any], ...]  #: by name

    def typedefs(self) -> str:
        """Return the placeholders' declarations."""
        return "".join(f"typedef {typename(dtype)} {name};\n" for name, dtype in self.placeholders)


def decide_types(
    in_params: Sequence[ParameterInfo],
    out_params: Sequence[ParameterInfo],
    in_types: Sequence[Any],
    out_types: Sequence[Any],
) -> Types:
    """Return the dtypes that the arrays give to the parameters; None stands for a scalar, which gives none.

    Raises
    ------
    TypeError
        If two arrays differ about a type.
    KeyError
        If no array gives a placeholder's type.
    """
    known: dict[str, Any] = {}
    if any(dtype is None for dtype in out_types):
        raise TypeError("Output arguments must be cupy.ndarray")
    pairs = [*zip(out_params, out_types, strict=False), *zip(in_params, in_types, strict=True)]
    for p, dtype in pairs:
        if dtype is None:
            continue
        if p.dtype is not None:
            if dtype != p.dtype:
                raise TypeError(f"Type is mismatched. {p.name} {dtype} {p.dtype}")
        elif known.setdefault(p.ctype, dtype) != dtype:
            raise TypeError(f"Type is mismatched. {p.name} {dtype} {known[p.ctype]} {p.ctype}")
    ins, outs = (
        tuple(known[p.ctype] if p.dtype is None else p.dtype for p in params) for params in (in_params, out_params)
    )
    return Types(ins, outs, tuple(sorted(known.items())))


# -- arguments ------------------------------------------------------------------


class Operand(NamedTuple):
    """An array as a kernel works on it."""

    array: Any  #: ndarray, or another library's
    packed: Packed
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]  #: in bytes

    @property
    def contiguous(self) -> bool:
        """True in C order."""
        step = self.dtype.itemsize
        for length, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if length != 1 and stride != step:
                return False
            step *= length
        return True

    @property
    def narrow(self) -> bool:
        """True if an index of 32 bits reaches every element."""
        reach = sum(abs(stride) * (n - 1) for stride, n in zip(self.strides, self.shape, strict=True))
        return reach + self.dtype.itemsize < _NARROW and math.prod(self.shape) < _NARROW

    def viewed(self, shape: Sequence[int], strides: Sequence[int]) -> Operand:
        """Return the same memory in another form."""
        return self._replace(shape=tuple(shape), strides=tuple(strides))


#: An array, or a number.
Argument = Any
_NUMBERS = (int, float, complex)


def argument(x: Any) -> Argument:
    """Return an argument of a call: an `Operand`, or a scalar as it is.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If it is memory that the current device cannot reach.
    """
    if isinstance(x, ndarray):
        _check_device(x)
        return Operand(x, pack(x), x.dtype, x.shape, x.strides)
    if isinstance(x, Array):
        return Operand(x, pack(x), x.dtype, x.shape, x.strides)
    if isinstance(x, _NUMBERS) or (isinstance(x, np.generic) and x.dtype in _TYPENAMES):
        return x
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        raise TypeError(f"Unsupported type {type(x)}")
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides") or _steps(shape, dtype.itemsize)
    return Operand(x, pack(x), dtype, shape, tuple(strides))


def _steps(shape: Sequence[int], size: int) -> tuple[int, ...]:
    """Return the strides of an array that is contiguous in C order."""
    steps: list[int] = []
    for length in reversed(shape):
        steps.append(size)
        size *= length
    return tuple(reversed(steps))


def _check_device(x: ndarray) -> None:
    here, there = _current.current_device(), x.data.device_id
    if here != there and not runtime.deviceCanAccessPeer(here, there):
        raise ValueError(
            f"The device where the array resides ({there}) is different from the current device ({here}). "
            "Peer access is unavailable between these devices."
        )


def broadcast(
    args: Sequence[Argument], params: Sequence[ParameterInfo], sized: bool
) -> tuple[list[Argument], tuple[int, ...]]:
    """Return the arguments with all arrays that are not raw in one shape, and that shape.

    Raises
    ------
    ValueError
        If there is none.
    """
    looped = [isinstance(a, Operand) and not p.raw for a, p in zip(args, params, strict=False)]
    if sized and any(looped):
        raise ValueError("Specified 'size' can be used only if all of the ndarray are 'raw'.")
    if not sized and not any(looped):
        raise ValueError("Loop size is undecided.")
    shapes = [a.shape for a, yes in zip(args, looped, strict=True) if yes]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        text = " ".join(str(shape).replace(" ", "") for shape in shapes)
        raise ValueError(f"operands could not be broadcast together with shapes {text}") from None
    return [_stretched(a, shape) if yes else a for a, yes in zip(args, looped, strict=True)], shape


def _stretched(a: Operand, shape: tuple[int, ...]) -> Operand:
    ahead = len(shape) - len(a.shape)
    strides = [0] * ahead
    for n, wanted, stride in zip(a.shape, shape[ahead:], a.strides, strict=True):
        strides.append(stride if n == wanted else 0)
    return a.viewed(shape, strides)


def outputs(
    given: Sequence[Argument],
    types: Sequence[Any],
    shape: tuple[int, ...],
    params: Sequence[ParameterInfo],
    sized: bool,
) -> list[Operand]:
    """Return the outputs: those that were given, or new arrays.

    Raises
    ------
    TypeError
        If one is no array.
    ValueError
        If one has another shape, or the shape of a raw one is not known.
    """
    if not given:
        if any(p.raw for p in params) and not sized:
            raise ValueError("Output array size is Undecided")
        return [argument(ndarray(shape, dtype)) for dtype in types]
    for a, p in zip(given, params, strict=True):
        if not isinstance(a, Operand):
            raise TypeError("Output arguments type must be cupy.ndarray")
        if not p.raw and a.shape != shape:
            raise ValueError("Out shape is mismatched")
    return list(given)


def merged(
    args: Sequence[Argument], params: Sequence[ParameterInfo], shape: tuple[int, ...]
) -> tuple[list[Argument], tuple[int, ...]]:
    """Return the arguments and the shape of a loop with as few dimensions as all arrays in it allow."""
    looped = [a for a, p in zip(args, params, strict=False) if isinstance(a, Operand) and not p.raw]
    if len(shape) <= 1 or not looped:
        return list(args), shape
    kept: list[int] = []  # the last axis of each group
    lengths: list[int] = []
    for axis in range(len(shape) - 1, -1, -1):
        if shape[axis] == 1 and (kept or axis):
            continue
        if kept and all(a.strides[axis] == a.strides[kept[-1]] * lengths[-1] for a in looped):
            lengths[-1] *= shape[axis]
        else:
            kept.append(axis)
            lengths.append(shape[axis])
    kept.reverse()
    smaller = tuple(reversed(lengths))
    out = [
        a.viewed(smaller, [a.strides[axis] for axis in kept]) if isinstance(a, Operand) and not p.raw else a
        for a, p in zip(args, params, strict=False)
    ]
    return out, smaller


# -- code -------------------------------------------------------------------------


class Code:
    """The declarations of a kernel, made of its parameters and of the arguments of a call.

    A kernel gets the address of each array, and the numbers of the shapes and strides
    one by one; it makes the arrays' objects of them.
    """

    def __init__(self) -> None:
        self.declared: list[str] = []  #: parameters of the function
        self.values: list[Any] = []  #: their arguments
        self.body: list[str] = []  #: at the start of the function
        self.key: list[Any] = []  #: what the text depends on
        self.types: list[Any] = []  #: of the arrays
        self._arrays = 0

    def numbers(self, name: str, values: Iterable[int]) -> str:
        """Declare a list of numbers; return its name."""
        names: list[str] = []
        for value in values:
            names.append(f"{name}_{len(names)}")
            self.declared.append(f"ptrdiff_t {names[-1]}")
            self.values.append(np.int64(value))
        if names:
            self.body.append(f"const ptrdiff_t {name}[] = {{{', '.join(names)}}};")
        return name

    def indexer(self, name: str, shape: Sequence[int], numbers: str) -> None:
        """Declare the object with the shape of a loop."""
        narrow = math.prod(shape) < _NARROW
        self.key.append((len(shape), narrow))
        self.body.append(f"CIndexer<{len(shape)}, {narrow:d}> {name}{f'({numbers})' if shape else ''};")

    def scalar(self, p: ParameterInfo, value: Any, dtype: Any) -> None:
        """Declare a number.

        Raises
        ------
        OverflowError
            If an int does not fit its type.
        """
        made = np.empty((), dtype)
        made[...] = value
        self.key.append(dtype)
        self.declared.append(f"{'const ' if p.is_const else ''}{typename(dtype)} {p.name}")
        self.values.append(made[()])

    def array(self, p: ParameterInfo, a: Operand, shape: str) -> None:
        """Declare an array; `shape` is the name of the shape's numbers unless it is raw."""
        number, name = self._arrays, p.name if p.raw else f"_raw_{p.name}"
        self._arrays += 1
        contiguous, kind = a.contiguous, typename(a.dtype)
        self.key.append((a.dtype, len(a.shape), contiguous, a.narrow))
        self.types.append(a.dtype)
        self.declared.append(f"{kind} *_data{number}")
        self.values.append(a.packed._replace(mode="R") if p.is_const and a.packed.mode == "B" else a.packed)
        given = f"_data{number}"
        if a.shape:
            given += ", " + (self.numbers(f"_shape{number}", a.shape) if p.raw else shape)
            if not contiguous:
                given += ", " + self.numbers(f"_strides{number}", a.strides)
        const = "const " if p.is_const else ""
        self.body.append(f"{const}CArray<{kind}, {len(a.shape)}, {contiguous:d}, {a.narrow:d}> {name}({given});")

    def source(self, name: str, types: Types, preamble: str, body: str) -> str:
        """Return the program with the kernel."""
        half = np.dtype(np.float16)
        uses_half = half in self.types or half in (*types.ins, *types.outs) or "float16" in preamble + body
        headers = [*_HEADERS, *(("float16.cuh",) if uses_half else ())]
        includes = "".join(f"#include <cupy/{header}>\n" for header in headers)
        begin = "\n  ".join(self.body)
        return (
            f"{includes}{types.typedefs()}{preamble}\n"
            f'extern "C" __global__ void {name}({", ".join(self.declared)}) {{\n  {begin}\n{body}\n}}\n'
        )


class Kernels:
    """The compiled forms of a kernel, by device and by what their text depends on."""

    def __init__(self) -> None:
        self.codes: dict[tuple[Any, ...], str] = {}  #: by the types of the arrays
        self._known: dict[Any, Function] = {}

    def find(self, key: Any) -> Function | None:
        """Return a form that the current device has, None if it has none."""
        found = self._known.get((_current.current_device(), key))
        return found if found is not None and found.module.current else None

    def add(self, key: Any, types: Sequence[Any], name: str, source: str, options: tuple[str, ...]) -> Function:
        """Compile a form and bring it to the current device."""
        ordinal = _current.current_device()
        program, _ = _compile.load(source, ordinal, options, title=f"kernel {name}", shared=True)
        made = self._known[ordinal, key] = Module.of(program, ordinal).get_function(name)
        self.codes.setdefault(tuple(types), source)
        return made
