"""The part of `mindspore` 2.10 that stream programs use: streams, choice of device, a few tensors.

The target of the host backend's devices is 'CPU' until `set_device` or
`set_context` chooses 'GPU' or 'Ascend'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core as _core  # first: it waits for a thread that is importing the package
from .._dialects._not_built import not_built
from . import common, context, device_context, hal, nn, ops, runtime
from ._target import get_current_device, set_device
from .common import dtype
from .common.api import jit
from .common.dtype import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype_to_nptype,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .common.tensor import Tensor, tensor
from .context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context
from .runtime import (
    Event,
    MemPool,
    PluggableAllocator,
    Stream,
    StreamCtx,
    StreamLimitCtx,
    communication_stream,
    current_stream,
    default_stream,
    dispatch_threads_num,
    empty_cache,
    get_device_limit,
    get_stream_limit,
    launch_blocking,
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
    reset_stream_limit,
    set_cpu_affinity,
    set_cur_stream,
    set_device_limit,
    set_kernel_launch_capture,
    set_kernel_launch_group,
    set_memory,
    set_stream_limit,
    synchronize,
    use_mem_pool,
)

#: The release that is mirrored.
__version__ = "2.10.0"

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "Event",
    "MemPool",
    "PluggableAllocator",
    "Stream",
    "StreamCtx",
    "StreamLimitCtx",
    "Tensor",
    "bfloat16",
    "bool_",
    "common",
    "communication_stream",
    "complex64",
    "complex128",
    "context",
    "current_stream",
    "default_stream",
    "device_context",
    "dispatch_threads_num",
    "dtype",
    "dtype_to_nptype",
    "empty_cache",
    "float16",
    "float32",
    "float64",
    "get_context",
    "get_current_device",
    "get_device_limit",
    "get_stream_limit",
    "hal",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "launch_blocking",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_replay",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "nn",
    "ops",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "reset_stream_limit",
    "runtime",
    "set_context",
    "set_cpu_affinity",
    "set_cur_stream",
    "set_device",
    "set_device_limit",
    "set_kernel_launch_capture",
    "set_kernel_launch_group",
    "set_memory",
    "set_stream_limit",
    "synchronize",
    "tensor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "use_mem_pool",
]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
