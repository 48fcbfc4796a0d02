"""torch.cpu (2.15): names that do nothing, so that device-agnostic code can call them.

As in torch these streams order nothing: all work of the host is done when the
call returns. Use `cuda` for asynchronous streams.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .._runtime import runtime
from ._errors import not_built as _not_built

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """torch.cpu.Stream (2.15): orders nothing."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Do nothing."""

    def record_event(self) -> None:
        """Do nothing."""

    def wait_event(self, event: Any) -> None:
        """Do nothing."""


class Event:
    """torch.cpu.Event (2.15): always complete."""

    def query(self) -> bool:
        """Return True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def wait(self, stream: Any = None) -> None:
        """Do nothing."""


# One for all threads, as in torch.
_current: list[Any] = runtime.keep("torch.cpu's current stream", [Stream()])


def is_available() -> bool:
    """torch.cpu.is_available (2.15): True."""
    return True


def device_count() -> int:
    """torch.cpu.device_count (2.15): 1."""
    return 1


def current_device() -> str:
    """torch.cpu.current_device (2.15): ``'cpu'``."""
    return "cpu"


def set_device(device: Any) -> None:
    """torch.cpu.set_device (2.15): does nothing."""


def synchronize(device: Any = None) -> None:
    """torch.cpu.synchronize (2.15): does nothing."""


def current_stream(device: Any = None) -> Any:
    """torch.cpu.current_stream (2.15): the same for all threads."""
    return _current[0]


class StreamContext(AbstractContextManager[None]):
    """torch.cpu.StreamContext (2.15): None changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.prev_stream: Any = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        self.prev_stream = _current[0]
        _current[0] = self.stream

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.stream is not None:
            _current[0] = self.prev_stream


def stream(stream: Any) -> StreamContext:
    """torch.cpu.stream (2.15)."""
    return StreamContext(stream)


__getattr__: Callable[[str], Any] = _not_built(__name__)
