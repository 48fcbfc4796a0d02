"""`mindspore.dtype` of 2.10: the element types that tensors of stream programs have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._dialects._not_built import not_built

__all__ = [
    "Type",
    "bfloat16",
    "bool_",
    "complex64",
    "complex128",
    "dtype_to_nptype",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


_TITLES = {"bfloat16": "BFloat16", "bool_": "Bool"}


class Type:
    """An element type; there is one object of each."""

    def __init__(self, name: str) -> None:
        self._name = name
        # NumPy has no bfloat16: the name is there, tensors of it are not.
        self._numpy = None if name == "bfloat16" else np.dtype(name.rstrip("_"))

    def __str__(self) -> str:
        head = 2 if self._name.startswith("u") else 1
        return _TITLES.get(self._name, self._name[:head].upper() + self._name[head:])

    def __repr__(self) -> str:
        return f"mindspore.{self._name}"


bfloat16: Type = Type("bfloat16")
bool_: Type = Type("bool_")
complex64: Type = Type("complex64")
complex128: Type = Type("complex128")
float16: Type = Type("float16")
half: Type = float16
float32: Type = Type("float32")
float64: Type = Type("float64")
int8: Type = Type("int8")
int16: Type = Type("int16")
int32: Type = Type("int32")
int64: Type = Type("int64")
uint8: Type = Type("uint8")
uint16: Type = Type("uint16")
uint32: Type = Type("uint32")
uint64: Type = Type("uint64")

_BY_NUMPY: dict[Any, Type] = {
    value._numpy: value for value in list(globals().values()) if isinstance(value, Type) and value._numpy is not None
}


def of(dtype: Any) -> Type:
    """Return the type of a NumPy array's elements; TypeError for one that tensors cannot have."""
    found = _BY_NUMPY.get(dtype)
    if found is None:
        raise TypeError(f"For Tensor, the type of input_data is not supported: {dtype}.")
    return found


def dtype_to_nptype(type_: Type) -> Any:
    """`mindspore.dtype_to_nptype` of 2.10: the scalar class of NumPy."""
    return to_numpy(type_).type


def to_numpy(type_: object) -> Any:
    """Return the dtype of NumPy; TypeError for what is no type, or none that NumPy has."""
    if not isinstance(type_, Type):
        raise TypeError(f"The type of 'dtype' must be mindspore.dtype, but got {type(type_)}.")
    if type_._numpy is None:
        raise TypeError("Tensors of BFloat16 are not supported: NumPy has no such type.")
    return type_._numpy


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
