"""The declaration of a kernel's parameters, and numbers that fit it."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._errors import InvalidValueError, KernelArgumentError

_DECLARATION = re.compile(
    r"(?:(?P<direction>in|out|inout)\s+)?(?P<dtype>[a-z]+\d*)\s*(?P<pointer>\*?)\s*(?P<name>[A-Za-z_]\w*)?"
)
_BYTES = re.compile(r"bytes([1-9]\d{0,8})")
#: Bytes that a parameter may have: CUDA's limit for all parameters of a kernel together.
_BYTES_MOST = 4096
# C and NumPy mean different types by these.
_AMBIGUOUS = {"int", "long", "float", "double", "char", "short", "unsigned", "uint"}


class Parameter(NamedTuple):
    """One parameter of a kernel."""

    name: str
    dtype: Any  #: numpy.dtype; of kind 'V' for the bytes of a struct; None for ``void *``
    direction: str  #: 'in', 'out' or 'inout' for pointers, '' for scalars

    @property
    def pointer(self) -> bool:
        """True if it is given an array."""
        return self.direction != ""

    @property
    def struct(self) -> bool:
        """True if it is given the bytes of a struct."""
        return self.dtype is not None and self.dtype.kind == "V"

    def __str__(self) -> str:
        kind = "void" if self.dtype is None else self.dtype.name
        if self.struct:
            kind = f"bytes{self.dtype.itemsize}"
        return f"{self.direction} {kind} *{self.name}" if self.pointer else f"{kind} {self.name}"


class Wrong(Exception):
    """What is wrong with an argument, and the exception class for it."""

    def __init__(self, text: str, error: Any = KernelArgumentError) -> None:
        super().__init__(text)
        self.error = error


def parse(signature: str | Sequence[str]) -> tuple[Parameter, ...]:
    """Return the parameters that a signature declares; see `Kernel`.

    Raises
    ------
    InvalidValueError
        If a parameter is no type and name, or its type is unknown.
    """
    if isinstance(signature, str):
        signature = signature.split(",") if signature.strip() else []
    found = []
    for number, text in enumerate(signature, 1):
        match = _DECLARATION.fullmatch(text.strip())
        if match is None:
            raise InvalidValueError(
                f"parameter {number}, {text.strip()!r}, cannot be read; say for example 'float32 a' or 'in float32 *x'"
            )
        direction, word, pointer, name = match.group("direction", "dtype", "pointer", "name")
        dtype = None
        if word in _AMBIGUOUS:
            raise InvalidValueError(
                f"parameter {number}, {text.strip()!r}: {word} has another size in C than in NumPy, "
                "or on other machines; say for example int32 or float64"
            )
        if size := _BYTES.fullmatch(word):
            if pointer or int(size.group(1)) > _BYTES_MOST:
                raise InvalidValueError(
                    f"parameter {number}, {text.strip()!r}: bytes and a number are a struct that is passed by value, "
                    f"of {_BYTES_MOST} bytes at most"
                )
            dtype = np.dtype(f"V{size.group(1)}")
        elif word != "void":
            try:
                dtype = np.dtype(word)
            except TypeError:
                dtype = None
            if dtype is None or dtype.kind not in "biufc":
                raise InvalidValueError(f"parameter {number}, {text.strip()!r}: {word} is no numeric dtype of NumPy")
        if bool(pointer) != bool(direction) or (word == "void" and not pointer):
            raise InvalidValueError(
                f"parameter {number}, {text.strip()!r}: a pointer says in, out or inout, a scalar "
                "nothing, and void is only for pointers"
            )
        found.append(Parameter(name or f"arg{number}", dtype, direction or ""))
    return tuple(found)


# Every floating dtype reaches so far.
_SMALL = 65504.0


@functools.cache
def _limits(dtype: Any) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def scalar(parameter: Parameter, value: Any) -> Any:
    """Return a scalar in the declared dtype, if that loses nothing of its kind.

    Raises
    ------
    Wrong
        If the value is no number that the type holds.
    """
    dtype = parameter.dtype
    if parameter.struct:
        return _struct(dtype, value)
    # The common case, three times as fast: no overflow is possible.
    kind = type(value)
    if (kind is float and dtype.kind == "f" and -_SMALL <= value <= _SMALL) or kind is dtype.type:
        return dtype.type(value)
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        if value.dtype != dtype:
            raise Wrong(f"the value has dtype {value.dtype}")
        return dtype.type(value)
    if isinstance(value, bool):
        kinds = "b"
    elif isinstance(value, int):
        kinds = "iufc"
    elif isinstance(value, float):
        kinds = "fc"
    elif isinstance(value, complex):
        kinds = "c"
    else:
        raise Wrong(f"it takes a number, not {type(value).__name__}")
    if dtype.kind not in kinds:
        raise Wrong(f"it takes no {type(value).__name__}")
    if dtype.kind in "iu":
        least, most = _limits(dtype)
        if not least <= value <= most:
            raise Wrong(f"{value} is not from {least} to {most}")
        return dtype.type(value)
    try:
        with np.errstate(over="ignore"):
            return dtype.type(value)
    except OverflowError:
        raise Wrong("the value is too large") from None


def _struct(dtype: Any, value: Any) -> Any:
    """Return the bytes of a struct.

    Raises
    ------
    Wrong
        If the value has no bytes, or not as many as the struct.
    """
    try:
        given = bytes(memoryview(value))
    except (TypeError, BufferError, ValueError):
        raise Wrong(f"it takes bytes, or an object with a buffer, not {type(value).__name__}") from None
    if len(given) != dtype.itemsize:
        raise Wrong(f"it takes {dtype.itemsize} bytes, not {len(given)}")
    return np.frombuffer(given, dtype)[0]
