"""`mindspore.runtime` of 2.10: streams, events and memory; the same classes as in hal.

A first call works like every later one; mindspore on a CPU skips it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._dialects._not_built import not_built
from ._event import Event
from ._functions import (
    StreamCtx,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
    synchronize,
)
from ._limits import (
    StreamLimitCtx,
    get_device_limit,
    get_stream_limit,
    launch_blocking,
    reset_stream_limit,
    set_device_limit,
    set_stream_limit,
)
from ._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_replay,
    memory_reserved,
    memory_stats,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
    set_memory,
)
from ._settings import (
    MemPool,
    PluggableAllocator,
    dispatch_threads_num,
    set_cpu_affinity,
    set_kernel_launch_capture,
    set_kernel_launch_group,
    use_mem_pool,
)
from ._stream import Stream

__all__ = [
    "Event",
    "MemPool",
    "PluggableAllocator",
    "Stream",
    "StreamCtx",
    "StreamLimitCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "dispatch_threads_num",
    "empty_cache",
    "get_device_limit",
    "get_stream_limit",
    "launch_blocking",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_replay",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "reset_stream_limit",
    "set_cpu_affinity",
    "set_cur_stream",
    "set_device_limit",
    "set_kernel_launch_capture",
    "set_kernel_launch_group",
    "set_memory",
    "set_stream_limit",
    "synchronize",
    "use_mem_pool",
]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
