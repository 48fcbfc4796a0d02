"""torch.cuda.streams (2.15): the stream and event classes of devices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from ... import _core as core
from ..._core import _current
from .._device import device as Device
from .._device import device_index, existing
from .._errors import not_built as _not_built
from .._events import Event as GenericEvent
from .._make import pooled
from .._streams import Stream as GenericStream
from ._build import flag, priority_range, shared, wrap

__all__ = ["Event", "ExternalStream", "Stream"]


class Stream(GenericStream):
    """torch.cuda.Stream (2.15): the next stream of the device's pool.

    An id or a handle that names no live stream of the device fails here, not
    at its first use; `synchronize` takes an optional time limit; `stream_id`
    is the handle.
    """

    _mismatch = "Event device {} does not match recording stream's device {}."

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        index = -1
        if device is not None and not ("stream_id" in kwargs and "device_index" in kwargs):
            index = existing(device_index(device, optional=True))
        if not kwargs:
            return pooled(cls, index, priority)
        return wrap(cls, index, priority, kwargs)

    def __cuda_stream__(self) -> tuple[int, int]:
        """torch.cuda.Stream.__cuda_stream__ (2.15): protocol version and handle.

        Raises on another backend if a CUDA driver can be loaded, as the consumer
        would pass the handle to that driver.
        """
        return shared(self)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """torch.cuda.Stream.priority_range (2.15): least, greatest; (0, -7) on the host."""
        return priority_range()

    @property
    def cuda_stream(self) -> int:
        """Raw handle; 0 for the default stream."""
        return self.handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.handle)

    def __eq__(self, o: object) -> bool:
        # False and not NotImplemented, also for a torch.Stream that names the same stream.
        if isinstance(o, GenericStream) and not isinstance(o, Stream):
            return False
        return isinstance(o, core.Stream) and self._same(o)

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        handle = "closed" if self.closed else f"{self.handle:#x}"
        return f"<torch.cuda.Stream device={self.device} cuda_stream={handle}>"

    def _wrong_type(self, operation: str, operand: object, expected: type) -> Exception:
        needed = {"record": "record", "wait_event": "wait"}.get(operation, "record_event")
        return AttributeError(f"{type(operand).__name__!r} object has no attribute {needed!r}")


class ExternalStream(Stream):
    """torch.cuda.ExternalStream (2.15): a stream made elsewhere; handle 0 is the default stream."""

    def __new__(cls, stream_ptr: int, device: Any = None, **kwargs: Any) -> ExternalStream:
        index = -1 if device is None else existing(device_index(device, optional=True))
        return wrap(cls, index, kwargs.pop("priority", 0), {"stream_ptr": stream_ptr, **kwargs})


class Event(GenericEvent):
    """torch.cuda.Event (2.15): a point on a stream.

    Of an `external` one, records and waits in a capture are nodes of the
    graph. `synchronize` takes an optional time limit.
    """

    _stream_class = Stream
    _mismatch = Stream._mismatch

    def __new__(
        cls,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> Event:
        new = object.__new__(cls)
        if enable_timing is blocking is interprocess is external is False:
            new._create(-1, 0)
            return new
        timing, sleeps, between, outside = map(flag, (enable_timing, blocking, interprocess, external))
        new._timing = bool(timing)
        kept = (core.TIMING if timing else 0) | (core.BLOCKING_SYNC if sleeps else 0)
        kept |= core.INTERPROCESS if between else 0
        new._create(-1, kept | (core.EXTERNAL if outside else 0))
        return new

    def elapsed_time(self, end_event: Any) -> float:
        """torch.cuda.Event.elapsed_time (2.15): milliseconds; negative if `end_event` was first."""
        if not isinstance(end_event, Event):
            raise RuntimeError("expected other to be a torch.cuda.Event object")
        return self.elapsed(end_event)

    def ipc_handle(self) -> bytes:
        """torch.cuda.Event.ipc_handle (2.15): 64 bytes, by which another process of the machine finds the event.

        An event that was never recorded gets the current device.
        """
        return self.to_ipc(_current.current_device())

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Event:
        """torch.cuda.Event.from_ipc_handle (2.15): an event that stands for one of another process."""
        size = len(handle)
        if size != 64:
            raise RuntimeError(f"Event.from_ipc_handle expects byte-like object of size 64, but got {size}")
        kind = Device(device).type
        if kind != "cuda":
            raise RuntimeError(f"Event can only be created on CUDA devices, but got device type {kind}")
        return cls.from_ipc(handle)

    @property
    def device(self) -> Any:
        """The device of the first record; None before it."""
        ordinal = self._ordinal
        return None if ordinal < 0 else Device("cuda", ordinal)

    @property
    def cuda_event(self) -> int:
        """Raw handle, 0 before the first record."""
        return self.handle

    @property
    def _as_parameter_(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.handle)

    def __repr__(self) -> str:
        if self.closed:
            return "<torch.cuda.Event closed>"
        handle = self.handle
        return f"<torch.cuda.Event {handle:#x}>" if handle else "<torch.cuda.Event uninitialized>"


Stream._event_class = Event


__getattr__: Callable[[str], Any] = _not_built(__name__)
