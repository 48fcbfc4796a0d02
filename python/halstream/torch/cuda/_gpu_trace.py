"""torch.cuda._gpu_trace (2.15): callbacks for the use of streams and events.

They run once ``torch._C._activate_gpu_trace()`` was called, for calls that
are made through the torch dialect. Kernels are not watched.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import _observe

__all__ = [
    "register_callback_for_device_synchronization",
    "register_callback_for_event_creation",
    "register_callback_for_event_deletion",
    "register_callback_for_event_record",
    "register_callback_for_event_synchronization",
    "register_callback_for_event_wait",
    "register_callback_for_memory_allocation",
    "register_callback_for_memory_deallocation",
    "register_callback_for_stream_creation",
    "register_callback_for_stream_synchronization",
]


def register_callback_for_event_creation(cb: Callable[[int], None]) -> None:
    """Call ``cb(event)`` when an event is first recorded."""
    _observe.listen("event_creation", cb)


def register_callback_for_event_deletion(cb: Callable[[int], None]) -> None:
    """Call ``cb(event)`` when a recorded event is destroyed."""
    _observe.listen("event_deletion", cb)


def register_callback_for_event_record(cb: Callable[[int, int], None]) -> None:
    """Call ``cb(event, stream)`` after each record."""
    _observe.listen("event_record", cb)


def register_callback_for_event_wait(cb: Callable[[int, int], None]) -> None:
    """Call ``cb(event, stream)`` after each wait of a stream for a recorded event."""
    _observe.listen("event_wait", cb)


def register_callback_for_stream_creation(cb: Callable[[int], None]) -> None:
    """Call ``cb(stream)`` when the pool makes a stream."""
    _observe.listen("stream_creation", cb)


def register_callback_for_device_synchronization(cb: Callable[[], None]) -> None:
    """Call ``cb()`` when the host waits for a device."""
    _observe.listen("device_synchronization", cb)


def register_callback_for_stream_synchronization(cb: Callable[[int], None]) -> None:
    """Call ``cb(stream)`` when the host waits for a stream."""
    _observe.listen("stream_synchronization", cb)


def register_callback_for_event_synchronization(cb: Callable[[int], None]) -> None:
    """Call ``cb(event)`` when the host waits for an event."""
    _observe.listen("event_synchronization", cb)


def register_callback_for_memory_allocation(cb: Callable[[int], None]) -> None:
    """Call ``cb(address)`` after `caching_allocator_alloc`."""
    _observe.listen("memory_allocation", cb)


def register_callback_for_memory_deallocation(cb: Callable[[int], None]) -> None:
    """Call ``cb(address)`` after `caching_allocator_delete`."""
    _observe.listen("memory_deallocation", cb)
