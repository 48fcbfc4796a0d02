"""torch.accelerator (2.15): the device-generic names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ... import _core as core
from ..._core import _current, _interop
from .._device import device, existing, in_range
from .._errors import dialect_errors
from .._errors import not_built as _not_built
from .._streams import CpuStream, Stream
from ..cuda import device_count, is_available
from . import memory
from .memory import (
    empty_cache,
    empty_host_cache,
    get_memory_info,
    index_of,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    reset_peak_memory_stats,
)

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "empty_host_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory",
    "memory_allocated",
    "memory_reserved",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def current_accelerator(check_available: bool = False) -> device | None:
    """torch.accelerator.current_accelerator (2.15): type ``'cuda'`` for every backend."""
    return None if check_available and not is_available() else device("cuda")


def current_device_index() -> int:
    """torch.accelerator.current_device_index (2.15)."""
    return _current.current_device()


def current_device_idx() -> int:
    """torch.accelerator.current_device_idx (2.15): deprecated name of `current_device_index`."""
    warnings.warn("Use `current_device_index` instead.", FutureWarning, stacklevel=2)
    return current_device_index()


def set_device_index(device: Any, /) -> None:
    """torch.accelerator.set_device_index (2.15): negative numbers change nothing."""
    index = index_of(device, optional=False)
    if index >= 0:
        _current.set_device(existing(index))


def set_device_idx(device: Any, /) -> None:
    """torch.accelerator.set_device_idx (2.15): deprecated name of `set_device_index`."""
    warnings.warn("Use `set_device_index` instead.", FutureWarning, stacklevel=2)
    set_device_index(device)


def current_stream(device: Any = None, /) -> Stream:
    """torch.accelerator.current_stream (2.15): never a `torch.cuda.Stream`."""
    index = in_range(index_of(device, optional=True))
    found = _current.current_stream(index)
    if found is None:
        return Stream._default(index)
    found = found._on(index)
    # Not _wrap: a torch.cuda.Stream is a Stream, but must not come back from here.
    if isinstance(found, Stream) and type(found) is Stream:
        return found
    new = object.__new__(Stream)
    new._attach(found._id, index, found._owner)
    return new


def set_stream(stream: Any) -> None:
    """torch.accelerator.set_stream (2.15): also sets the device; inside a context until its end."""
    if isinstance(stream, CpuStream):
        raise RuntimeError("stream's device type cpu doesn't match the current accelerator cuda")
    if not isinstance(stream, core.Stream):
        raise TypeError(
            "_accelerator_setStream(): incompatible function arguments. The following argument "
            f"types are supported:\n    1. (arg0: torch.Stream) -> None\n\nInvoked with: {stream!r}"
        )
    _current.set_stream(stream)


@dialect_errors
def synchronize(device: Any = None, /) -> None:
    """torch.accelerator.synchronize (2.15): nothing to do before the runtime is first used."""
    index = index_of(device, optional=True)
    if _interop.initialized():
        core.synchronize(existing(index))


class device_index:
    """torch.accelerator.device_index (2.15): makes a device current; None changes nothing.

    Unlike torch's it belongs to the task, not to the thread.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx: int = -1

    def __enter__(self) -> None:
        if self.idx is None:
            return
        if not isinstance(self.idx, int):
            raise TypeError(f"a device index is an int or None, not {type(self.idx).__name__}")
        if self.idx >= 0:
            self.prev_idx = _current.current_device()
            _current.enter_device(existing(self.idx))

    def __exit__(self, *exc_info: object) -> None:
        if self.idx is not None and self.prev_idx >= 0:
            _current.leave_device(self.idx)


__getattr__: Callable[[str], Any] = _not_built(__name__)
