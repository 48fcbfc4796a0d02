"""torch.Event, the class that holds for every device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .. import _core as core
from ._device import device as Device
from ._errors import ERRORS, error
from ._make import device_argument, mismatch
from ._streams import NO_EVENTS, CpuStream, Stream


class Event(core.Event):
    """torch.Event (2.15): a point on a stream of any device of a type.

    `blocking` counts, as in torch after 2.13; `synchronize` takes an optional
    time limit; IPC is not built.
    """

    __module__ = "halstream.torch"
    _errors = ERRORS
    _stream_class: ClassVar[type[core.Stream]] = Stream
    _record_here = True
    _timing: bool = False
    _mismatch: ClassVar[str] = Stream._mismatch
    if not TYPE_CHECKING:
        # As in torch the work is in __new__: a subclass overrides that.
        __init__ = object.__init__

    def __new__(
        cls,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> Event:
        if device is None and enable_timing is blocking is interprocess is False:
            return cls._make(False, False)
        given = {"enable_timing": enable_timing, "blocking": blocking, "interprocess": interprocess}
        for name, value in given.items():
            if not isinstance(value, bool):
                raise TypeError(f"Event(): argument '{name}' must be bool, not {type(value).__name__}")
        kind = CpuEvent if device_argument("Event", device).type == "cpu" else cls
        return kind._make(enable_timing, blocking)

    @classmethod
    def _make(cls, timing: bool, blocking: bool) -> Event:
        new = object.__new__(cls)
        flags = (core.TIMING if timing else 0) | (core.BLOCKING_SYNC if blocking else 0)
        new._create(-1, flags)
        if timing:
            new._timing = True
        return new

    def elapsed_time(self, other: Any) -> float:
        """torch.Event.elapsed_time (2.15): milliseconds from this event to a later one."""
        if not isinstance(other, Event):
            raise RuntimeError("expected other to be a torch.Event object")
        return self.elapsed(other)

    def ipc_handle(self) -> bytes:
        """torch.Event.ipc_handle (2.15): raises, for IPC is not built yet."""
        raise error("not_supported", "torch.Event ipc is not supported yet")

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: bytes) -> Event:
        """torch.Event.from_ipc_handle (2.15): raises, for IPC is not built yet."""
        raise error("not_supported", "torch.Event ipc is not supported yet")

    @property
    def device(self) -> Any:
        """The device; without an index before the first record."""
        ordinal = self._ordinal
        return Device("cuda") if ordinal < 0 else Device("cuda", ordinal)

    @property
    def event_id(self) -> int:
        """Raw handle, 0 before the first record."""
        return self.handle

    def __repr__(self) -> str:
        if self.closed:
            return "torch.Event closed"
        where = self.device
        return (
            f"torch.Event device_type={where.type}, "
            f"device_index={-1 if where.index is None else where.index}, "
            f"event_flag={int(self._timing)}, event_id={self.event_id}"
        )

    def _wrong_type(self, operation: str, operand: object, expected: type) -> Exception:
        return RuntimeError("expected stream to be a torch.Stream or torch.cuda.Stream object")

    def _fail(
        self,
        exc: BaseException,
        operation: str,
        operand: object = None,
        expected: type | None = None,
    ) -> BaseException:
        if isinstance(operand, CpuStream):
            what = "recording" if operation == "record" else "blocking"
            return RuntimeError(f"Event device type CUDA does not match {what} stream's device type CPU.")
        if operation == "elapsed" and isinstance(operand, Event):
            return self._no_elapsed(operand) or super()._fail(exc, operation, operand, expected)
        failed = super()._fail(exc, operation, operand, expected)
        return mismatch(failed, self._mismatch, self, operand)

    def _no_elapsed(self, end: Event) -> BaseException | None:
        """Name the first of torch's reasons for having no elapsed time, in torch's order."""
        if not (self._timing and end._timing):
            return ERRORS["timing_disabled"](operation="elapsed")
        if not (self.recorded and end.recorded):
            return ERRORS["unrecorded"](operation="elapsed")
        if not (self.query() and end.query()):
            return ERRORS["not_ready"](operation="elapsed")
        return None

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


class CpuEvent(Event):
    """torch.Event of device ``'cpu'``: can never be recorded, so it is always complete."""

    def record(self, stream: Any = None) -> None:
        """Raise: this device has no events."""
        raise RuntimeError(NO_EVENTS)

    @property
    def device(self) -> Any:
        """The host."""
        return Device("cpu")


# The type has the name that it has in torch.
CpuEvent.__name__ = CpuEvent.__qualname__ = Event.__name__
Stream._event_class = Event
