"""cupy.cuda.profiler (cupy 14.2.0)."""

from __future__ import annotations

from . import runtime

__all__ = ["start", "stop"]


def start() -> None:
    """cupy.cuda.profiler.start (14.2.0)."""
    runtime.profilerStart()


def stop() -> None:
    """cupy.cuda.profiler.stop (14.2.0)."""
    runtime.profilerStop()
