"""The current stream of paddle.device: current_stream, set_stream, stream_guard, synchronize."""

from __future__ import annotations

import operator
from typing import Any

from ... import _core as core
from ..._core import _current
from ..._dialects._adapt import raising
from .._errors import ERRORS
from .._names import convert_to_place, device_to_place, expected_place, no_device, with_streams
from .._place import Place
from ..base._capture import capturing
from ._stream import Stream


def current_stream(device: Any = None) -> Stream:
    """`paddle.device.current_stream` of 3.3; the object that was set, where one was."""
    place = expected_place() if device is None else convert_to_place(device)
    return _on(with_streams(place))


@raising(ERRORS)
def _on(place: Any) -> Stream:
    stream = Stream._current(place._index)
    if "device" not in stream.__dict__:
        stream.device = place
    elif stream.device != place:
        # Set under another name of the same device: that object keeps its name.
        other = object.__new__(Stream)
        other._attach(stream._id, stream._ordinal, stream._owner)
        other.device = place
        return other
    return stream


def set_stream(stream: Any) -> Stream:
    """`paddle.device.set_stream` of 3.3; inside a guard it is undone when the guard ends."""
    if not isinstance(stream, core.Stream):
        name = type(stream).__name__
        raise AttributeError(f"'{name}' object has no attribute 'stream_base'")
    place = getattr(stream, "device", None)
    previous = _on(place) if isinstance(place, Place) else Stream._current(stream._ordinal)
    _current.set_stream(stream, False, process=True)
    return previous


class stream_guard:
    """`paddle.device.stream_guard` of 3.3; it holds for its thread and asyncio task only.

    One guard may be entered again inside itself. The expected place stays. In
    strict mode the guard holds for the whole process, as paddle's does.
    """

    def __init__(self, stream: Any = None) -> None:
        self.stream = stream
        self._scope = _current.GuardScope()

    def __enter__(self) -> None:
        stream = self.stream
        if stream is None:
            return
        if not isinstance(stream, core.Stream):
            if not hasattr(stream, "device"):
                name = type(stream).__name__
                raise AttributeError(f"'{name}' object has no attribute 'device'")
            raise no_device()
        self._scope.enter(stream)

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        if self.stream is not None:
            self._scope.leave(self.stream)


StreamContext = stream_guard


def stream(stream: Any) -> stream_guard:
    """`paddle.device.stream` of 3.3."""
    return StreamContext(stream)


@raising(ERRORS)
def synchronize(device: Any = None) -> None:
    """`paddle.device.synchronize` of 3.3."""
    place = expected_place() if device is None else convert_to_place(device)
    core.synchronize(with_streams(place)._index)


@raising(ERRORS)
def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """`paddle.device.get_stream_from_external` of 3.3; a handle that names no stream raises."""
    place = device_to_place(device)
    if isinstance(place, Place) and place.is_cpu_place():
        raise AttributeError("'CPUPlace' object has no attribute 'get_device_id'")
    handle = operator.index(data_ptr)
    if handle == 0:
        raise ValueError("(InvalidArgument) the pointer of an external stream must not be 0")
    found = Stream.from_handle(handle, with_streams(place)._index)
    if found._ordinal == place._index:
        found.device = place
    return found


def is_current_stream_capturing() -> bool:
    """`paddle.device.is_current_stream_capturing` of 3.3: whether a `CUDAGraph` captures, on whatever stream."""
    return bool(capturing)
