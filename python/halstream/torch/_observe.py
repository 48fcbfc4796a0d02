"""Observation of streams and events: warnings about host waits, and callbacks.

Two switches that a dialect may offer: a warning or an error for every stream that
the host waits for, and callbacks for the use of streams and events. Both concern
the calls that are made through the dialect that offers them.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

from .._errors import HalError
from .._runtime import runtime

__all__ = [
    "KINDS",
    "active",
    "check_host_wait",
    "host_wait",
    "listen",
    "notify",
    "set_host_wait",
    "start",
]

KINDS = (
    "event_creation",
    "event_deletion",
    "event_record",
    "event_wait",
    "stream_creation",
    "device_synchronization",
    "stream_synchronization",
    "event_synchronization",
    "memory_allocation",
    "memory_deallocation",
)


class _Switches:
    """0: host waits are silent, 1: they warn, 2: they raise; and whether callbacks run."""

    host_wait = 0
    started = False


_switches = _Switches()
_callbacks: dict[str, list[Callable[..., object]]] = runtime.keep("torch's callbacks", {kind: [] for kind in KINDS})


def set_host_wait(level: int) -> None:
    """Choose what a host wait for a stream does: 0 nothing more, 1 warn, 2 raise."""
    _switches.host_wait = level


def host_wait() -> int:
    """Return what `set_host_wait` chose."""
    return _switches.host_wait


def check_host_wait(text: str, error: Callable[[str], BaseException] = HalError) -> None:
    """Warn or raise, as chosen; a dialect calls it before the host waits for a stream."""
    if _switches.host_wait == 1:
        warnings.warn(text, UserWarning, stacklevel=3)
    elif _switches.host_wait == 2:
        raise error(text)


def listen(kind: str, callback: Callable[..., object]) -> None:
    """Add a callback; it stays until the process ends and runs once `start` was called."""
    _callbacks[kind].append(callback)


def start() -> None:
    """Let the callbacks run from now on."""
    _switches.started = True


def active() -> bool:
    """True if either switch is on."""
    return _switches.started or _switches.host_wait != 0


def notify(kind: str, *args: Any) -> None:
    """Run every callback of a kind; an exception is logged and the others still run."""
    if not _switches.started:
        return
    for callback in _callbacks[kind]:
        try:
            callback(*args)
        except Exception:
            logging.getLogger(__name__).exception("a callback of %s failed", kind)
