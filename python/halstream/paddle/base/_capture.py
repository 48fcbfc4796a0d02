"""The capture of a `CUDAGraph` that is underway."""

from __future__ import annotations

from ... import _core as core
from ..._runtime import runtime

__all__ = ["capturing"]

#: The stream that captures, and the ordinal of its device; paddle has one capture in a process.
capturing: list[tuple[core.Stream, int]] = runtime.keep("the capture of paddle", [], clear=True)
