"""cupy (14.2.0): its stream layer, over any device of the runtime.

``from halstream.cupy import cuda`` stands for ``from cupy import cuda``. Of the
arrays there is what programs about streams use; kernels are not built yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import cuda

if TYPE_CHECKING:
    from ._creation import (
        arange,
        array,
        asanyarray,
        asarray,
        asnumpy,
        empty,
        empty_like,
        full,
        get_array_module,
        get_default_memory_pool,
        get_default_pinned_memory_pool,
        matmul,
        ones,
        zeros,
        zeros_like,
    )
    from ._ndarray import ndarray

__all__ = [
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asnumpy",
    "cuda",
    "empty",
    "empty_like",
    "full",
    "get_array_module",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "is_available",
    "matmul",
    "ndarray",
    "ones",
    "zeros",
    "zeros_like",
]


def is_available() -> bool:
    """cupy.is_available (14.2.0): as ``cuda.is_available()``."""
    return cuda.is_available()


def __getattr__(name: str) -> Any:
    # Arrays load NumPy, which programs of streams and memory alone need not.
    if name in __all__:
        from . import _creation, _ndarray

        found = getattr(_ndarray if name == "ndarray" else _creation, name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
