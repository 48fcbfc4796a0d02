"""`mindspore.hal` of 2.10: streams, events, device queries and memory; the same classes as in runtime.

Nothing logs mindspore's deprecation warnings here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from .._event import Event
from .._functions import (
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
    synchronize,
)
from .._queries import (
    device_count,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_initialized,
)
from .._stream import Stream
from . import contiguous_tensors_handle
from ._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
)

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "contiguous_tensors_handle",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "is_available",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_cur_stream",
    "synchronize",
]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
