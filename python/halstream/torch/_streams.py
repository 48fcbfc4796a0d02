"""torch.Stream, the class that holds for every device."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar

from .. import _core as core
from .._dialects._stream import DialectStream
from ._device import CPU, CUDA, in_range
from ._device import device as Device
from ._device import device_index as index_of
from ._errors import ERRORS
from ._make import device_argument, foreign, mismatch, pooled, three_parts

NO_EVENTS = "cpu backend doesn't support events."


class Stream(DialectStream):
    """torch.Stream (2.15): the next stream of the device's pool.

    An id or a handle that names no live stream fails here, not at its first
    use; `synchronize` takes an optional time limit; `stream_id` is the handle.
    Closing one, which torch cannot, closes it for all objects of the same pooled stream.
    """

    __module__ = "halstream.torch"
    _errors = ERRORS
    _mismatch: ClassVar[str] = "Event device index {} does not match recording stream's device index {}."
    if not TYPE_CHECKING:
        # As in torch the work is in __new__: a subclass overrides that.
        __init__ = object.__init__

    def __new__(cls, device: Any = None, *parts: Any, priority: int = 0, **named: Any) -> Stream:
        if parts or named:
            number, index, kind = three_parts(device, parts, named)
            if kind == CPU:
                return object.__new__(CpuStream)
            if kind != CUDA:
                raise RuntimeError(f"no device of type {kind} exists on this runtime")
            return foreign(cls, number, in_range(index))
        where = device_argument("Stream", device)
        if where.type == "cpu":
            return object.__new__(CpuStream)
        return pooled(cls, index_of(where, optional=True), priority)

    def is_capturing(self) -> bool:
        """torch.Stream.is_capturing (2.15): True while the stream takes part in a capture."""
        return self._capturing("is_capturing")

    @property
    def stream_id(self) -> int:
        """0 for the default stream; here the handle, in torch a number of the pool."""
        return self.handle

    @property
    def native_handle(self) -> int:
        """Raw handle."""
        return self.handle

    @property
    def device_index(self) -> int:
        """Number of the device."""
        return self._ordinal

    @property
    def device_type(self) -> int:
        """1: CUDA."""
        return CUDA

    @property
    def device(self) -> Device:  # type: ignore[override]
        """The device that the stream belongs to."""
        return Device("cuda", self._ordinal)

    def __repr__(self) -> str:
        number = "closed" if self.closed else self.stream_id
        return f"torch.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={number}"

    def _wrong_type(self, operation: str, operand: object, expected: type) -> Exception:
        name = "event" if issubclass(expected, core.Event) else "stream"
        return RuntimeError(f"expected {name} to be a torch.{name.capitalize()} object")

    def _fail(
        self,
        exc: BaseException,
        operation: str,
        operand: object = None,
        expected: type | None = None,
    ) -> BaseException:
        failed = super()._fail(exc, operation, operand, expected)
        return mismatch(failed, self._mismatch, operand, self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")


# Two forms in one function; introspection shows torch's first.
Stream.__new__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("cls", inspect.Parameter.POSITIONAL_OR_KEYWORD),
        inspect.Parameter("device", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None),
        inspect.Parameter("priority", inspect.Parameter.KEYWORD_ONLY, default=0),
    ]
)


class CpuStream(Stream):
    """torch.Stream of device ``'cpu'``: always done, and without events."""

    _id = -1  # names no stream: the core refuses every operation on it

    closed = False

    @property
    def _ordinal(self) -> int:  # type: ignore[override]
        raise ValueError("Expected a cuda device, but got: cpu")

    @property
    def handle(self) -> int:
        """There is none."""
        raise RuntimeError("cpu backend doesn't support native handles.")

    @property
    def stream_id(self) -> int:
        """0."""
        return 0

    @property
    def device_index(self) -> int:
        """-1."""
        return -1

    @property
    def device_type(self) -> int:
        """0: CPU."""
        return CPU

    @property
    def device(self) -> Device:  # type: ignore[override]
        """The host."""
        return Device("cpu")

    def is_capturing(self) -> bool:
        """Return False."""
        return False

    def query(self) -> bool:
        """Return True."""
        return True

    def synchronize(self, timeout: float | None = None) -> None:
        """Do nothing."""

    def record_event(self, event: Any = None) -> Any:
        """Raise: this device has no events."""
        if event is not None and not isinstance(event, core.Event):
            raise self._wrong_type("record", event, core.Event)
        raise RuntimeError(NO_EVENTS)

    def wait_event(self, event: Any) -> None:
        """Do nothing for an event that was never recorded."""
        if not isinstance(event, core.Event):
            raise self._wrong_type("wait_event", event, core.Event)
        if event.recorded:
            raise RuntimeError("Event device type CUDA does not match blocking stream's device type CPU.")

    def wait_stream(self, stream: Any) -> None:
        """Raise: this device has no events."""
        raise RuntimeError(NO_EVENTS)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc_info: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CpuStream) if isinstance(other, core.Stream) else NotImplemented

    def __hash__(self) -> int:
        return hash((CPU, 0, -1))


# The type has the name that it has in torch.
CpuStream.__name__ = CpuStream.__qualname__ = Stream.__name__
