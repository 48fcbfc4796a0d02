"""cupyx (14.2.0): its profiler, over the streams of `halstream.cupy`."""

from __future__ import annotations

from . import profiler

__all__ = ["profiler"]
