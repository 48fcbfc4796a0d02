"""cupy.cuda.profiler (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import runtime
from ._errors import not_built as _not_built

__all__ = ["start", "stop"]


def start() -> None:
    """cupy.cuda.profiler.start (14.2.0)."""
    runtime.profilerStart()


def stop() -> None:
    """cupy.cuda.profiler.stop (14.2.0)."""
    runtime.profilerStop()


__getattr__: Callable[[str], Any] = _not_built(__name__)
