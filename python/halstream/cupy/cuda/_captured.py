"""Calls that cupy itself refuses while a stream captures, before they reach the runtime: the capture goes on."""

from __future__ import annotations

from typing import Any

from ._blocks import stream_of

__all__ = ["refuse_captured", "refuse_library"]


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
