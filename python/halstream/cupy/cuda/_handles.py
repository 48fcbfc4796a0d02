"""Streams identified by a raw handle."""

from __future__ import annotations

import os
from typing import Any

from ... import _core as core
from ..._core import _interop
from ..._core._current import current_device
from ..._dialects._adapt import raising
from ._errors import ERRORS, intptr

default_id = raising(ERRORS)(_interop.default_id)

#: True if the current stream is the thread's own default stream where none was made current.
PER_THREAD_DEFAULT = int(os.environ.get("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "0")) != 0


#: What to do instead of a call that no capture takes.
NO_CALLBACK = "launch_host_func, and launchHostFunc of the runtime, enqueue a function that can"


class Handle(core.Stream):
    """A stream identified by its raw handle, with this dialect's errors."""

    _errors = ERRORS

    @classmethod
    def find(cls, handle: Any, device: int | None = None) -> Handle:
        """Return the stream of a handle; 0, 1 and 2 on `device`, None for the current one."""
        return cls.from_handle(intptr(handle), device)


class Resolved:
    """`_id` and `_ordinal` of a stream that is known only by `ptr`.

    Streams that were made here have both as ordinary attributes, which hide
    this. Handles 0, 1 and 2 mean the device that is current at each use;
    others are looked up once.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, stream: Any, owner: type) -> Any:
        if stream is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {self._name!r}")
        if stream.device_id < 0 and stream.ptr in (0, 1, 2):
            return default_id(stream.ptr == 2) if self._name == "_id" else current_device()
        found = Handle.find(stream.ptr, None if stream.device_id < 0 else stream.device_id)
        if stream.ptr > 2:
            vars(stream).update(_id=found._id, _ordinal=found._ordinal, _owner=found._owner)
        return getattr(found, self._name)


def foreign_handle(obj: Any) -> int:
    """Return the handle that an object gives through the CUDA stream protocol."""
    try:
        version, handle = obj.__cuda_stream__()
    except AttributeError:
        raise TypeError(
            f"Object of type {type(obj).__name__} does not implement the CUDA stream protocol (__cuda_stream__ method)"
        ) from None
    except (TypeError, ValueError):
        raise TypeError("__cuda_stream__() must return a 2-tuple of (version, stream_ptr)") from None
    if not (isinstance(version, int) and isinstance(handle, int)):
        raise TypeError(
            f"__cuda_stream__() must return (int, int), got ({type(version).__name__}, {type(handle).__name__})"
        )
    if version != 0:
        raise TypeError(f"__cuda_stream__() returned unsupported version {version}, only version 0 is supported")
    return handle
