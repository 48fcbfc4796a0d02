"""Current stream and current device of torch.cuda (2.15)."""

from __future__ import annotations

from typing import Any, Literal

from ... import _core as core
from ..._core import _current
from .._device import device_index, existing, in_range
from ._build import wrap
from .streams import Stream


class StreamContext:
    """torch.cuda.StreamContext (2.15): makes a stream and its device current.

    Unlike torch's it belongs to the task, not to the thread, and one object
    may be entered again while it is entered. Streams of other devices that
    the body makes current are undone as well.
    """

    __module__ = "halstream.torch.cuda"

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.idx: int = _current.current_device()
        self._entered: core.Stream | None = None
        # What was current on the device that was current, and on the stream's if that is another one.
        self._before: tuple[int, core.Stream | None] | None = None
        self._there: tuple[int, core.Stream | None] | None = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        stream = self.stream if isinstance(self.stream, core.Stream) else self._other_stream()
        here, there = _current.current_device(), stream._ordinal
        before = here, _current.current_stream(here)
        other = None if here == there else (there, _current.current_stream(there))
        _current.push(stream, there, there)
        self._entered, self._before, self._there = stream, before, other

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.stream is not None:
            _current.leave(self._entered)

    def _other_stream(self) -> Stream:
        """Return the stream of an object that is none of this package."""
        stream = self.stream
        _ = stream.device  # what torch asks for first, and names when it is not there
        return _from_parts(stream.stream_id, stream.device_index, stream.device_type)

    @property
    def src_prev_stream(self) -> Stream | None:
        """The stream that was current on the device that was current; None before entering."""
        return _named(self._before)

    @property
    def dst_prev_stream(self) -> Stream | None:
        """The stream that was current on another device of the stream; else None."""
        return _named(self._there)


def stream(stream: Any) -> StreamContext:
    """torch.cuda.stream (2.15): None changes nothing."""
    return StreamContext(stream)


def _named(saved: tuple[int, core.Stream | None] | None) -> Stream | None:
    if saved is None:
        return None
    ordinal, stream = saved
    return Stream._default(ordinal) if stream is None else Stream._wrap(stream)


def set_stream(stream: Any) -> None:
    """torch.cuda.set_stream (2.15): also sets the device; inside a context until its end."""
    if stream is None:
        return
    if isinstance(stream, core.Stream):
        _current.set_stream(stream)
    else:
        _set_stream_by_id(stream.stream_id, stream.device_index, stream.device_type)


def _set_stream_by_id(stream_id: int, device_index: int, device_type: int) -> None:
    """torch.cuda._set_stream_by_id (2.15)."""
    _current.set_stream(_from_parts(stream_id, device_index, device_type))


def _from_parts(stream_id: int, device_index: int, device_type: int) -> Stream:
    return Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)


def current_stream(device: Any = None) -> Stream:
    """torch.cuda.current_stream (2.15): the very object that was made current, if it is one."""
    if device is None:
        return Stream._current(_current.current_device())
    return Stream._current(in_range(device_index(device, optional=True)))


def default_stream(device: Any = None) -> Stream:
    """torch.cuda.default_stream (2.15): the legacy default stream."""
    if device is None:
        return Stream._default(_current.current_device())
    return Stream._default(in_range(device_index(device, optional=True)))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """torch.cuda.get_stream_from_external (2.15): a handle that no live stream has raises here."""
    if device is None:
        return wrap(Stream, -1, 0, {"stream_ptr": data_ptr})
    index = in_range(device_index(device, optional=True))
    return wrap(Stream, index, 0, {"stream_ptr": data_ptr})


class device:
    """torch.cuda.device (2.15): makes a device current; None or a negative number changes nothing.

    Unlike torch's it belongs to the task, not to the thread.
    """

    __module__ = "halstream.torch.cuda"

    def __init__(self, device: Any) -> None:
        self.idx: int = device_index(device, optional=True)
        self.prev_idx: int = -1
        self._entered: list[int] = []

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _current.current_device()
            _current.enter_device(existing(self.idx))
            self._entered.append(self.idx)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> Literal[False]:
        if self.prev_idx >= 0:
            inside = _current.current_device()
            _current.leave_device(self._entered.pop())
            self.idx = inside
        else:
            self.idx = -1
        return False


class _DeviceGuard(device):
    """torch.cuda._DeviceGuard (2.15): `device` for a number that is resolved already."""

    def __init__(self, index: int) -> None:
        super().__init__(index)


class device_of(device):
    """torch.cuda.device_of (2.15): the device of an object with `is_cuda` and `get_device`."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def set_device(device: Any) -> None:
    """torch.cuda.set_device (2.15): a negative number changes nothing; undone with its context."""
    index = device_index(device)
    if index >= 0:
        _current.set_device(existing(index))


def current_device() -> int:
    """torch.cuda.current_device (2.15)."""
    return _current.current_device()
