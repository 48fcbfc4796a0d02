"""What the slow programs share."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

#: How long each takes: longer than it takes to tell what is stuck, and not much longer.
SECONDS = 1.4


@contextlib.contextmanager
def after(act: Callable[[], object], *, daemon: bool = False) -> Iterator[None]:
    """Do something on another thread after a while; the thread has ended when the block has."""

    def wait() -> None:
        time.sleep(SECONDS)
        act()

    other = threading.Thread(target=wait, name="somebody else", daemon=daemon)
    other.start()
    yield
    other.join()
