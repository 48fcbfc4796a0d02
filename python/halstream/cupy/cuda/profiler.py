"""cupy.cuda.profiler (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import runtime
from ._missing import names as _names

__all__ = ["start", "stop"]


def start() -> None:
    """cupy.cuda.profiler.start (14.2.0)."""
    runtime.profilerStart()


def stop() -> None:
    """cupy.cuda.profiler.stop (14.2.0)."""
    runtime.profilerStop()


__getattr__: Callable[[str], Any] = _names.getter(__name__)
