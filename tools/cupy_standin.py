"""A pytest plugin with which cupy's own tests of graphs run on `halstream.cupy`.

It stands in for the packages ``cupy`` and ``cupyx``. Streams, events, graphs and arrays
are halstream's. What the tests need beside those is here, as little of it as they use:
functions of NumPy that are enqueued on the current stream as arithmetic is, and
``cupy.testing``. It refuses nothing by itself; a test for which halstream would have to
mirror another library of NVIDIA's fails.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from halstream import cupy, cupyx
from halstream.cupy import cuda
from halstream.cupy._ndarray import compute


def _enqueued(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function that computes one of NumPy's on the current stream."""
    return lambda array: compute(function, array)


def _random(size: Any = None) -> Any:
    return cupy.asarray(np.random.default_rng(1).random(size))


def _where(condition: Any) -> Any:
    """Return the indices: how many there are is known only when the condition was computed."""
    return tuple(cupy.asarray(found) for found in np.nonzero(condition.get()))


def _assert_array_equal(first: Any, second: Any) -> None:
    np.testing.assert_array_equal(*(a.get() if isinstance(a, cupy.ndarray) else a for a in (first, second)))


class _StandIn(ModuleType):
    """A module with names of its own, and another one's for the rest."""

    def __init__(self, name: str, rest: Any = None, **own: Any) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self._rest = rest
        vars(self).update(own)
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        if self._rest is None or name.startswith("__"):
            raise AttributeError(f"the stand-in for {self.__name__} has no {name}")
        return getattr(self._rest, name)


_StandIn(
    "cupy",
    cupy,
    sin=_enqueued(np.sin),
    sqrt=_enqueued(np.sqrt),
    where=_where,
    fft=_StandIn("cupy.fft", fft=_enqueued(np.fft.fft), ifft=_enqueued(np.fft.ifft)),
    random=_StandIn("cupy.random", random=_random),
    testing=_StandIn("cupy.testing", assert_array_equal=_assert_array_equal),
)
_StandIn("cupyx", cupyx)
sys.modules["cupy.cuda"] = cuda
