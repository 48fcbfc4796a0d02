"""`mindspore.hal` of 2.10: streams, events and device queries; the same classes as in runtime.

Nothing logs mindspore's deprecation warnings here.
"""

from __future__ import annotations

from ._event import Event
from ._functions import (
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
    synchronize,
)
from ._queries import (
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_initialized,
)
from ._stream import Stream

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "device_count",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_initialized",
    "set_cur_stream",
    "synchronize",
]
