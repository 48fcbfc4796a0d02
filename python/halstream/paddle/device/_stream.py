"""paddle.device.Stream."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

from ... import _core as core
from ..._core._interop import cuda_stream
from ..._dialects._stream import DialectStream
from .._errors import ERRORS, WrongOperand
from .._names import device_to_place, label_of, place_of, with_streams
from ..base._streams import BaseStream, CUDAStream, CustomDeviceStream
from ._event import Event

# Paddle's 1 is high and 2 is normal; 3.3 takes torch's numbers, too.
_PRIORITIES = {None: 0, 2: 0, 0: 0, 1: -1, -1: -1}


class Stream(DialectStream):
    """paddle.device.Stream, with the documented `blocking` and the `stream_base` of 2.5 to 3.3.

    A priority that means nothing is taken for 2, as in 3.3.
    With ``blocking=True`` each call that enqueues returns after the work is
    done, and the stream is ordered with the legacy default stream.
    """

    _errors = ERRORS
    _event_class = Event

    def __init__(
        self,
        device: Any = None,
        priority: int | None = None,
        blocking: Any = False,
        *,
        stream_base: Any = None,
    ) -> None:
        if isinstance(blocking, BaseStream):
            # The third positional argument up to 3.3.
            blocking, stream_base = False, blocking
        if stream_base is not None:
            if not isinstance(stream_base, BaseStream):
                raise TypeError("stream_base should be CUDAStream, XPUStream, CustomDeviceStream")
            self._attach(stream_base._id, stream_base._ordinal, stream_base._owner)
            self.device = stream_base.place
            self.stream_base = stream_base
            return
        if not (blocking is None or isinstance(blocking, bool)):
            raise TypeError("stream_base should be CUDAStream, XPUStream, CustomDeviceStream")
        place = with_streams(device_to_place(device))
        level = _PRIORITIES.get(priority, 0)
        flags = core.BLOCK_HOST if blocking else core.NON_BLOCKING
        self._create(place._index, level, flags)
        self.device = place

    @cached_property
    def device(self) -> Any:
        """The stream's place."""
        return place_of(self._ordinal)

    @cached_property
    def stream_base(self) -> Any:
        """The base object; the same one for every wrapper of the stream."""
        label = label_of(self.device)
        if label == "gpu":
            return CUDAStream._wrap(self)
        base = CustomDeviceStream._wrap(self)
        base._custom = label
        return base

    @property
    def priority(self) -> int:
        """Not there: paddle has no such name, and the core's numbers mean something else than paddle's."""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute 'priority'")

    @property
    def cuda_stream(self) -> int:
        """The raw handle, as the wrapper has it from 3.4 on."""
        return self.handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return cuda_stream(self)

    def __eq__(self, o: object) -> bool:
        if isinstance(o, Stream):
            # Two wrappers of one stream are two: compare their stream_base.
            return object.__eq__(self, o)
        return isinstance(o, core.Stream) and self._same(o)

    # Equal for wrappers of one stream, and for equal streams of other dialects.
    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        handle = 0 if self.closed else self.handle
        return f"<paddle.device.Stream device={self.device} stream={handle:#x}>"

    _makes_events = True

    def _new_event(self) -> Event:
        # On the stream's own device; 3.3 makes it on the expected one, where it cannot be recorded.
        return Event._on(self.device)

    def _wrong_type(self, operation: str, operand: object, expected: type) -> TypeError:
        name = type(operand).__name__
        missing = "stream_base" if expected is core.Stream else "event_base"
        if operation == "record":
            missing = "record"  # asked of the event itself
        return WrongOperand(f"'{name}' object has no attribute '{missing}'")
