"""Waits for the end of an object, for the tests."""

from __future__ import annotations

import gc
import sysconfig
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


def collect_young() -> None:
    """Collect the youngest objects, where there are generations; a free-threaded CPython would look at all."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        gc.collect(0)
