"""`Event` of mindspore.hal and mindspore.runtime 2.10."""

from __future__ import annotations

from typing import Any

from .. import _core as core
from .._errors import TimingDisabledError, UnrecordedError
from ._stream import Stream


class Event(core.Event):
    """`mindspore.hal.Event` of 2.10; `synchronize` also takes a timeout."""

    _stream_class = Stream

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        for name, value in (("enable_timing", enable_timing), ("blocking", blocking)):
            if not isinstance(value, bool):
                raise TypeError(f"For 'Event', the '{name}' must be a bool, but got {type(value).__name__}.")
        super().__init__(timing=enable_timing, blocking_sync=blocking)

    def elapsed_time(self, end_event: core.Event) -> float:
        """`mindspore.hal.Event.elapsed_time` of 2.10; a pending event raises, as on CUDA."""
        try:
            return self.elapsed(end_event)
        except (UnrecordedError, TimingDisabledError) as exc:
            if self.recorded and end_event.recorded:
                raise
            # mindspore looks at the records before it looks at the flags.
            raise UnrecordedError(
                "event_ or other_event has not been recorded yet, event is created:"
                f"{self.recorded:d}other_event is created:{end_event.recorded:d}",
                code=exc.code,
                operation=exc.operation,
            ) from None

    def _wrong_type(self, operation: str, operand: object, expected: type) -> TypeError:
        name = "elapsed_time" if operation == "elapsed" else operation
        argument = "end_event" if expected is core.Event else "stream"
        return TypeError(
            f"For '{name}', the argument '{argument}' should be {expected.__name__}, but got {type(operand)}."
        )

    def __repr__(self) -> str:
        if self.closed:
            return "Event(closed)"  # mindspore's cannot be closed
        flags = self._made_with
        handle = self.handle
        return (
            f"Event(enable_timing={bool(flags & core.TIMING):d}, "
            f"blocking:{bool(flags & core.BLOCKING_SYNC):d}, "
            f"is_created:{self.recorded:d}, event:{hex(handle) if handle else 0})"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")


Stream._event_class = Event
