"""cupyx.profiler (cupy 14.2.0)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ...cupy.cuda import runtime
from ...cupy.cuda._errors import not_built as _not_built
from ._time import benchmark
from ._time_range import time_range

__all__ = ["benchmark", "profile", "time_range"]


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """cupyx.profiler.profile (14.2.0): start the profiler, stop it in any case."""
    runtime.profilerStart()
    try:
        yield
    finally:
        runtime.profilerStop()


__getattr__: Callable[[str], Any] = _not_built(__name__)
