"""paddle.device of 3.3: streams, events and the choice of a device.

Calling the module makes a `Device`, as from 3.3 on. What is imported under its own
name is not in paddle's ``__all__``, but importable there, too. Names for graphs are not here.
"""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from ..._dialects._not_built import not_built
from .._names import convert_to_place, device_to_paddle
from .._names import device_to_place as device_to_place
from .._names import extract_device_id as extract_device_id
from .._places import IPUPlace as _IPUPlace
from .._places import XPUPlace as _XPUPlace
from . import cpu as cpu
from . import cuda as cuda
from . import custom_device as custom_device
from . import xpu as xpu
from ._choice import device, device_guard, get_device, set_device
from ._choice import get_default_device as get_default_device
from ._choice import set_default_device as set_default_device
from ._device import Device as Device
from ._event import Event
from ._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
)
from ._queries import current_device as current_device
from ._queries import (
    device_count,
    get_all_custom_device_type,
    get_all_device_type,
    get_available_custom_device,
    get_available_device,
    get_cudnn_version,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    is_compiled_with_cinn,
    is_compiled_with_cuda,
    is_compiled_with_custom_device,
    is_compiled_with_distribute,
    is_compiled_with_ipu,
    is_compiled_with_rocm,
    is_compiled_with_xpu,
)
from ._queries import get_device_module as get_device_module
from ._random import (
    get_rng_state,
    ipc_collect,
    is_bf16_supported,
    manual_seed,
    set_rng_state,
)
from ._random import manual_seed_all as manual_seed_all
from ._random import nvtx as nvtx
from ._stream import Stream
from ._streams import (
    StreamContext,
    current_stream,
    get_stream_from_external,
    is_current_stream_capturing,
    set_stream,
    stream_guard,
    synchronize,
)
from ._streams import stream as stream

__all__ = [
    "Event",
    "IPUPlace",
    "Stream",
    "StreamContext",
    "XPUPlace",
    "current_stream",
    "device",
    "device_count",
    "device_guard",
    "empty_cache",
    "get_all_custom_device_type",
    "get_all_device_type",
    "get_available_custom_device",
    "get_available_device",
    "get_cudnn_version",
    "get_device",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_stream_from_external",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_compiled_with_cinn",
    "is_compiled_with_cuda",
    "is_compiled_with_custom_device",
    "is_compiled_with_distribute",
    "is_compiled_with_ipu",
    "is_compiled_with_rocm",
    "is_compiled_with_xpu",
    "is_current_stream_capturing",
    "manual_seed",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_stream",
    "stream_guard",
    "synchronize",
]


_convert_to_place = convert_to_place
_device_to_paddle = device_to_paddle


def XPUPlace(dev_id: int) -> _XPUPlace:
    """`paddle.device.XPUPlace` of 3.3."""
    return _XPUPlace(dev_id)


def IPUPlace() -> _IPUPlace:
    """`paddle.device.IPUPlace` of 3.3."""
    return _IPUPlace()


class _DeviceModule(types.ModuleType):
    """The module's class: calling it makes a `Device`."""

    def __call__(self, *args: Any, **kwargs: Any) -> Device:
        return Device(*args, **kwargs)


sys.modules[__name__].__class__ = _DeviceModule

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
