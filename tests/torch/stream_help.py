"""Streams of torch as halstream's own objects."""

from __future__ import annotations

import threading
import time
from typing import Any

import halstream as hs
from halstream import _native, _records


def own(stream: Any) -> hs.Stream:
    """Return halstream's object for a stream of torch."""
    handle = stream.cuda_stream
    return hs.Stream.from_handle(handle) if handle else hs.Device(stream.device_index).default_stream


def waits(thread: threading.Thread, limit: float = 20.0) -> bool:
    """Return True once a thread waits for the runtime, False if it ends without that."""
    end = time.monotonic() + limit
    while thread.is_alive() and time.monotonic() < end:
        if _records.decode(_native.stall_waits()):
            return True
        time.sleep(0.001)
    return False
