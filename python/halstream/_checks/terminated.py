"""What was found, written before SIGTERM ends the process: launchers end the other ranks so when one has failed."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

__all__ = ["before_sigterm"]


def before_sigterm(write: Callable[[], object]) -> None:
    """Have `write` called before SIGTERM ends the process, unless the program handles the signal itself.

    On another thread than the main one, where Python takes no handlers, this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        return

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        try:
            write()
        finally:
            os.kill(os.getpid(), number)

    signal.signal(signal.SIGTERM, end)
