"""Names of cupy that are NumPy's own: dtypes, constants, a few functions and exceptions."""

from __future__ import annotations

from typing import Any

import numpy as np

# What NumPy 2 has under another name, or no more.
_OTHERS = {
    "bool": np.bool_,
    "cfloat": np.complex128,
    "complex_": np.complex128,
    "float_": np.float64,
    "long": np.dtype("l").type,
    "singlecomplex": np.complex64,
    "ulong": np.dtype("L").type,
}


def find(name: str) -> Any:
    """Return NumPy's object of a name.

    Raises
    ------
    AttributeError
        The NumPy of this environment has no such name.
    """
    if name in _OTHERS:
        return _OTHERS[name]
    exceptions = getattr(np, "exceptions", np)
    return getattr(exceptions if hasattr(exceptions, name) else np, name)
