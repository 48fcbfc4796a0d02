"""What cupy itself does while a stream captures: calls that it refuses, and memory that the graph keeps."""

from __future__ import annotations

from typing import Any

from ... import _native
from ..._core import _hostfunc
from ._blocks import stream_of

__all__ = ["captures", "keep_captured", "refuse_captured", "refuse_library"]


_capture_state = _native.raw("stream_capture_state")


def captures(stream: Any) -> bool:
    """Return whether a stream takes part in a capture, also in one that was invalidated."""
    return bool(_capture_state(stream._id))


def keep_captured(stream: Any, *memory: object) -> None:
    """Have the graph keep memory that was just worked on, if the stream captures.

    The core knows the segments of a pool, and not their parts: the pool would give a part that is dropped to
    the next array, although every launch works on it.
    """
    if captures(stream):
        _hostfunc.hold(stream, *memory)


def refuse_captured(what: str, stream: Any = None) -> None:
    """Raise an error if a stream, by default the current one, captures; `what` is the call."""
    where = stream_of(stream)
    if where._capturing("is_capturing"):
        raise RuntimeError(
            f"stream {where.index} is capturing, and {what} cannot become a part of a graph: "
            "do it before the capture begins, or after the graph was launched"
        )


def refuse_library(name: str) -> None:
    """Raise an error if the current stream captures; `name` is the library whose functions are not captured."""
    if stream_of(None)._capturing("is_capturing"):
        raise NotImplementedError(f"calling {name} API during stream capture is currently unsupported")
