"""Waits for the end of an object, for the tests."""

from __future__ import annotations

import threading
import time


def set_soon(event: threading.Event, limit: float) -> bool:
    """Wait for an event that the end of an object sets; return whether it is set.

    A free-threaded CPython ends an object that another thread gives up last on the thread that made it, the next
    time that this one runs Python code: not while it waits for the event.
    """
    end = time.monotonic() + limit
    while not event.wait(0.01) and time.monotonic() < end:
        pass
    return event.is_set()
