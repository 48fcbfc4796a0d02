"""Streams of torch as halstream's own objects."""

from __future__ import annotations

from typing import Any

import halstream as hs


def own(stream: Any) -> hs.Stream:
    """Return halstream's object for a stream of torch."""
    handle = stream.cuda_stream
    return hs.Stream.from_handle(handle) if handle else hs.Device(stream.device_index).default_stream
