"""cupy.cuda.profiler (cupy 14.2.0)."""

from __future__ import annotations

from . import runtime
from ._missing import names as _names

__all__ = ["start", "stop"]


def start() -> None:
    """cupy.cuda.profiler.start (14.2.0)."""
    runtime.profilerStart()


def stop() -> None:
    """cupy.cuda.profiler.stop (14.2.0)."""
    runtime.profilerStop()


__getattr__ = _names.getter(__name__)
