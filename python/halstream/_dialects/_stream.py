"""The base class of the streams whose method for marking a point is called ``record_event``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core as core

__all__ = ["DialectStream"]


class DialectStream(core.Stream):
    """A stream of torch, paddle or mindspore."""

    if TYPE_CHECKING:

        def record_event(self, event: Any = None) -> Any:
            """Mark the point that the stream has reached; None makes a new event. See `halstream.Stream.record`."""
    else:
        record_event = core.Stream.record  # the same function object: one call less
