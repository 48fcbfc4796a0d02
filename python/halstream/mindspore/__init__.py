"""`mindspore` 2.10 as its stream programs see it: ``hal``, ``runtime`` and the choice of device.

The devices of the host backend go by the target 'CPU' until `set_device` or
`set_context` chooses 'GPU' or 'Ascend'.
"""

from __future__ import annotations

from . import context, device_context, hal, runtime
from ._target import get_current_device, set_device
from .context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context
from .runtime import (
    Event,
    Stream,
    StreamCtx,
    StreamLimitCtx,
    communication_stream,
    current_stream,
    default_stream,
    get_device_limit,
    get_stream_limit,
    launch_blocking,
    reset_stream_limit,
    set_cur_stream,
    set_device_limit,
    set_stream_limit,
    synchronize,
)

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "Event",
    "Stream",
    "StreamCtx",
    "StreamLimitCtx",
    "communication_stream",
    "context",
    "current_stream",
    "default_stream",
    "device_context",
    "get_context",
    "get_current_device",
    "get_device_limit",
    "get_stream_limit",
    "hal",
    "launch_blocking",
    "reset_stream_limit",
    "runtime",
    "set_context",
    "set_cur_stream",
    "set_device",
    "set_device_limit",
    "set_stream_limit",
    "synchronize",
]
