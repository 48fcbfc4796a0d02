"""Names of cupy that are NumPy's own: dtypes, constants, a few functions and exceptions."""

from __future__ import annotations

from typing import Any

#: Names of cupy that are NumPy's own objects.
FROM_NUMPY = frozenset(
    """
    AxisError ComplexWarning ModuleDeprecationWarning RankWarning TooHardError
    VisibleDeprecationWarning bool bool_ broadcast_shapes byte cdouble cfloat complex128 complex64
    complex_ complexfloating csingle double dtype e euler_gamma finfo float16 float32 float64
    float_ floating generic get_printoptions half iinfo index_exp inexact inf int16 int32 int64
    int8 int_ intc integer intp isdtype issubdtype iterable long longlong mintypecode nan ndindex
    newaxis number pi printoptions promote_types s_ set_printoptions short signedinteger single
    singlecomplex typename ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong ulonglong
    unsignedinteger ushort
    """.split()  # noqa: SIM905 (one name a line would fill the file)
)

# What NumPy 2 has under another name, or no more: a scalar type, by its code where it has no name of its own.
_OTHERS = {
    "bool": "?",
    "cfloat": "complex128",
    "complex_": "complex128",
    "float_": "float64",
    "long": "l",
    "singlecomplex": "complex64",
    "ulong": "L",
}


def find(name: str) -> Any:
    """Return NumPy's object of a name.

    Raises
    ------
    AttributeError
        The NumPy of this environment has no such name.
    """
    import numpy as np  # here, so that programs of streams and memory alone do not load NumPy

    if name in _OTHERS:
        return np.dtype(_OTHERS[name]).type
    exceptions = getattr(np, "exceptions", np)
    return getattr(exceptions if hasattr(exceptions, name) else np, name)
