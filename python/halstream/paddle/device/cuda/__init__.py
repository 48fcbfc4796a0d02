"""paddle.device.cuda of 3.3: the base layer of the GPUs.

Its streams and events are the base objects, which wrappers keep in
``stream_base`` and ``event_base``; either may be given for the other.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .... import _core as core
from ...._core import _current
from ...._dialects._adapt import raising
from ...._dialects._not_built import not_built
from ..._errors import ERRORS, VisibleDeprecationWarning
from ..._names import convert_to_place, extract_device_id
from ..._places import CUDAPlace
from ...base._events import CUDAEvent as Event
from ...base._streams import CUDAStream as Stream
from ...base.core import _set_current_stream as _set_current_stream
from .._memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_summary,
    reset_max_memory_allocated,
    reset_max_memory_reserved,
    reset_peak_memory_stats,
)
from .._queries import (
    device_count,
    get_device_capability,
    get_device_name,
    get_device_properties,
)
from .._random import get_rng_state, manual_seed, set_rng_state
from . import graphs as graphs

__all__ = [
    "Event",
    "Stream",
    "current_stream",
    "device_count",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "manual_seed",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_summary",
    "reset_max_memory_allocated",
    "reset_max_memory_reserved",
    "reset_peak_memory_stats",
    "set_rng_state",
    "stream_guard",
    "synchronize",
]


def _deprecated(name: str) -> None:
    warnings.warn(
        f"paddle.device.cuda.{name} is deprecated since 2.5.0; use paddle.device.{name}",
        VisibleDeprecationWarning,
        stacklevel=3,
    )


def _ordinal(device: Any, text: str) -> int:
    """Return the ordinal of None, an int or a place; a negative int is the current device."""
    if device is None or (isinstance(device, int) and device < 0):
        return _current.current_device()
    place = CUDAPlace(device) if isinstance(device, int) else device
    if not isinstance(place, CUDAPlace):
        raise ValueError(text)
    return place._index


@raising(ERRORS)
def _current_stream(device: Any) -> Stream:
    text = "device type must be int or paddle.CUDAPlace"
    return Stream._current(_ordinal(convert_to_place(device), text))


def current_stream(device: Any = None) -> Stream:
    """`paddle.device.cuda.current_stream` of 3.3."""
    _deprecated("current_stream")
    return _current_stream(device)


@raising(ERRORS)
def _synchronize(device: Any) -> None:
    if isinstance(device, str):
        if device.partition(":")[0] not in ("gpu", "cuda", "dcu"):
            raise ValueError(
                f"The current string {device} is not expected. Because "
                "paddle.device.cuda.synchronize only support string which is like 'gpu:x' or "
                "'gpu'. Please input appropriate string again!"
            )
        device = convert_to_place(device)
    core.synchronize(_ordinal(device, "device type must be int, str or paddle.CUDAPlace"))


def synchronize(device: Any = None) -> None:
    """`paddle.device.cuda.synchronize` of 3.3."""
    _deprecated("synchronize")
    _synchronize(device)


@contextlib.contextmanager
def _guard(stream: Any) -> Iterator[None]:
    if stream is None:
        yield
        return
    if not isinstance(stream, core.Stream):
        raise TypeError("stream type should be paddle.device.cuda.Stream")
    scope = _current.GuardScope()
    scope.enter(stream)
    try:
        yield
    finally:
        scope.leave(stream)


def stream_guard(stream: Any) -> contextlib.AbstractContextManager[None]:
    """`paddle.device.cuda.stream_guard` of 3.3; it holds for its thread and task only."""
    _deprecated("stream_guard")
    return _guard(stream)


def extract_cuda_device_id(device: Any, op_name: str) -> int:
    """`paddle.device.cuda.extract_cuda_device_id` of 3.3."""
    return extract_device_id(device, op_name)


def create_stream(
    device_id: Any = None,
    priority: int = 2,
    device_type: str | None = None,
    blocking: bool = False,
) -> Stream:
    """`paddle.device.cuda.create_stream` of 3.3; ignores the type and `blocking`, as there."""
    return Stream(device_id, priority)


def create_event(
    enable_timing: bool = False,
    blocking: bool = False,
    interprocess: bool = False,
    device_type: str | None = None,
    device_id: int = 0,
) -> Event:
    """`paddle.device.cuda.create_event` of 3.3; ignores type and ordinal, as there."""
    return Event(enable_timing, blocking, interprocess)


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
