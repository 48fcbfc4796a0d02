"""What each thread has made current: the package knows devices by thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ..._runtime import State, runtime
from ._errors import ERRORS

if TYPE_CHECKING:
    from ._device import Device

__all__ = ["devices", "require_context", "set_context"]


class _Threads(State):
    def __init__(self) -> None:
        self.local = threading.local()

    def reset(self) -> None:
        self.local = threading.local()

    begin = reset


_threads = runtime.add("cuda.core's devices of threads", _Threads())


def devices() -> dict[int, Device]:
    """Return the calling thread's objects for devices, by their numbers."""
    found: dict[int, Device] = _threads.local.__dict__.setdefault("devices", {})
    return found


def set_context() -> None:
    """Count the calling thread as one with a current device from now on."""
    _threads.local.context = True


def require_context() -> None:
    """Raise the driver's error if no device was made current on the calling thread.

    Raises
    ------
    CUDAError
        With what to do.
    """
    if not getattr(_threads.local, "context", False):
        raise ERRORS["no_context"]("no device is current on this thread; call Device().set_current() on it first")
