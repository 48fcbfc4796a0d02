"""Element types of paddle 3.3."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._runtime import State, runtime

_NUMBERS = {
    "bool": 1,
    "uint8": 2,
    "int8": 3,
    "int16": 5,
    "int32": 7,
    "int64": 9,
    "float32": 10,
    "float64": 11,
    "complex64": 12,
    "complex128": 13,
    "float16": 15,
    "bfloat16": 16,
}


def _refused(name: Any) -> TypeError:
    return TypeError(f"dtype must be any of [{', '.join(_NUMBERS)}], but received {name}")


class dtype:
    """`paddle.dtype` of 3.3; there is one object of each type."""

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or name not in _NUMBERS:
            raise _refused(name)
        self._name = name
        # NumPy has no bfloat16: the name is there, tensors of it are not.
        self._numpy = None if name == "bfloat16" else np.dtype(name)

    @property
    def name(self) -> str:
        """The name as paddle writes it, ``FLOAT32``."""
        return self._name.upper()

    def __str__(self) -> str:
        return f"paddle.{self._name}"

    def __repr__(self) -> str:
        return f"<DataType.{self.name}: {_NUMBERS[self._name]}>"

    def __reduce__(self) -> Any:
        return _named, (self._name,)


TYPES: dict[str, dtype] = {name: dtype(name) for name in _NUMBERS}


class _Default(State):
    """The type of floats given without one."""

    name = "float32"

    def snapshot(self) -> str:
        return self.name

    def restore(self, saved: str) -> None:
        self.name = saved

    def begin(self) -> None:
        self.name = "float32"


_default = runtime.add("default dtype of paddle", _Default())


def _named(name: str) -> dtype:
    return TYPES[name]


def of(kind: Any) -> dtype:
    """Return the type of a NumPy dtype; TypeError for one that tensors cannot have."""
    found = TYPES.get(np.dtype(kind).name)
    if found is None:
        raise _refused(np.dtype(kind).name)
    return found


def to_numpy(kind: Any) -> Any:
    """Return the NumPy dtype of a paddle dtype, a name or what NumPy takes for a dtype."""
    if isinstance(kind, str):
        found = TYPES.get(kind.removeprefix("paddle."))
        if found is None:
            raise _refused(kind)
        kind = found
    if isinstance(kind, dtype):
        if kind._numpy is None:
            raise TypeError("tensors of bfloat16 are not built yet: NumPy has no such type")
        return kind._numpy
    return of(kind)._numpy


def get_default_dtype() -> str:
    """`paddle.get_default_dtype` of 3.3."""
    return _default.name


def set_default_dtype(d: Any) -> None:
    """`paddle.set_default_dtype` of 3.3, for the process."""
    kind = to_numpy(d)
    if kind.kind != "f":
        raise TypeError(
            f"set_default_dtype only supports [float16, float32, float64, bfloat16], but received {kind.name}"
        )
    _default.name = kind.name
