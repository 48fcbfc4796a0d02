"""Starting threads that run functions of streams, none of which begins while the interpreter ends."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["end", "start"]

_END_S = 2.0  # how long the end of the program waits for a thread that begins

#: Held while a thread begins. A handler of a signal may start one inside the start of another.
_beginning = threading.RLock()


def start(target: Callable[[], None], name: str) -> None:
    """Start a daemon thread, which has begun when this returns.

    Raises
    ------
    RuntimeError
        If the system starts none, or Python any more.
    """
    with _beginning:
        threading.Thread(target=target, name=name, daemon=True).start()


def end() -> None:
    """Wait for a thread that another one is starting, at the end of the program. Later ones do not begin.

    To CPython 3.10 a thread that begins while the interpreter ends is fatal.
    """
    _beginning.acquire(timeout=_END_S)
