"""cupy (14.2.0): its stream layer, over any device of the runtime.

``from halstream.cupy import cuda`` stands for ``from cupy import cuda``. Of the
arrays there is what programs about streams use, and there are kernels. Names of the
package that are not built yet raise when they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core as _core  # first: it waits for a thread that is importing the package
from . import cuda
from ._numpy_names import FROM_NUMPY
from ._numpy_names import find as _from_numpy
from .cuda._errors import not_built

if TYPE_CHECKING:
    from ._creation import (
        arange,
        array,
        asanyarray,
        asarray,
        asnumpy,
        empty,
        empty_like,
        from_dlpack,
        full,
        get_array_module,
        get_default_memory_pool,
        get_default_pinned_memory_pool,
        matmul,
        ones,
        zeros,
        zeros_like,
    )
    from ._elementwise import ElementwiseKernel, fuse
    from ._ndarray import ndarray
    from ._raw import RawKernel, RawModule
    from ._reduction import ReductionKernel

__all__ = [
    "ElementwiseKernel",
    "RawKernel",
    "RawModule",
    "ReductionKernel",
    "arange",
    "array",
    "asanyarray",
    "asarray",
    "asnumpy",
    "cuda",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "fuse",
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


__version__ = "14.2.0"


def is_available() -> bool:
    """cupy.is_available (14.2.0): as ``cuda.is_available()``."""
    return cuda.is_available()


_not_built = not_built(__name__)


def __getattr__(name: str) -> Any:
    # Arrays and dtypes load NumPy, which programs of streams and memory alone need not.
    if name in FROM_NUMPY:
        found = _from_numpy(name)
    elif name in __all__:
        from . import _creation, _elementwise, _ndarray, _raw, _reduction

        modules = {"RawKernel": _raw, "RawModule": _raw, "ndarray": _ndarray}
        modules |= {"ElementwiseKernel": _elementwise, "fuse": _elementwise, "ReductionKernel": _reduction}
        found = getattr(modules.get(name, _creation), name)
    else:
        return _not_built(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
