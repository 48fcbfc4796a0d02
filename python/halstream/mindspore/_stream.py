"""`Stream` of mindspore.hal and mindspore.runtime 2.10.

Both modules show one family of classes: a stream made by either is a Stream of
the other, so what mindspore refuses only for coming from the other module works.
"""

from __future__ import annotations

from typing import Any

from .. import _core as core
from .._core import _current
from .._dialects import _numbered
from .._dialects._stream import DialectStream
from . import _target

_CONSTRUCTOR = (
    "__init__(): incompatible constructor arguments. The following argument types are supported:\n"
    "    1. Stream(priority: int)  [32 bits]\n"
    "    2. Stream(stream: Stream)"
)


def _check_int(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"For 'Stream', the type of '{name}' must be 'int', but got '{type(value).__name__}'.")


def check_stream(function: str, argument: str, value: object) -> None:
    """Raise mindspore's error if `value` is not a stream; those of the other dialects are."""
    if not isinstance(value, core.Stream):
        raise TypeError(f"For '{function}', the argument '{argument}' should be Stream, but got {type(value)}.")


class Stream(DialectStream):
    """`mindspore.hal.Stream` of 2.10.

    Differences: a stream ends with its last object, and its id with it;
    `synchronize` takes a timeout; `device_stream` gives the handle as an int.
    """

    init_finished: bool = True

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        self.init_finished = False
        source = kwargs.get("stream")
        if isinstance(source, core.Stream):
            self._attach(source._id, source._ordinal, source._owner)
        elif isinstance(source, int):
            self._make(source)
        elif source is not None:
            raise TypeError(_CONSTRUCTOR)
        _check_int("priority", priority)
        if "stream_id" in kwargs:
            _check_int("stream_id", kwargs["stream_id"])
            if source is None:
                self._look_up(kwargs["stream_id"])
        elif source is None:
            self._make(priority)
        self.init_finished = True

    def _make(self, priority: int) -> None:
        if not -(2**31) <= priority < 2**31:
            raise TypeError(_CONSTRUCTOR)
        self._create(_current.current_device(), priority, core.NON_BLOCKING)
        _numbered.remember(self)

    def _look_up(self, number: int) -> None:
        if number < 0:
            raise RuntimeError(f"The int value({number}) is less than 0.")
        found = _numbered.find(core.Stream, _current.current_device(), number)
        if found is None:
            raise ValueError(f"stream_id:{number} is not exist")
        self._attach(found._id, found._ordinal, found._owner)

    @property
    def id(self) -> int:
        """Number of the stream on its device; 0 is the default stream."""
        return self.index

    @property
    def device_id(self) -> int:
        """Ordinal of the device."""
        return self._ordinal

    @property
    def device_name(self) -> str:
        """``'CPU'``, ``'GPU'`` or ``'Ascend'``: the target in force, 'CPU' on the host device."""
        return _target.target()

    def stream_id(self) -> int:
        """Return `id`; mindspore has the method in runtime only."""
        return self.index

    def stream_ptr(self) -> int:
        """Return the native handle as an int."""
        return self.handle

    def device_stream(self) -> int:
        """Return the native handle as an int, where mindspore has a capsule."""
        return self.handle

    def _wrong_type(self, operation: str, operand: object, expected: type) -> TypeError:
        name = "record_event" if operation == "record" else operation
        argument = "event" if expected is self._core_event else "stream"
        return TypeError(
            f"For '{name}', the argument '{argument}' should be {expected.__name__}, but got {type(operand)}."
        )

    def __eq__(self, other: object) -> bool:
        check_stream("__eq__", "other", other)
        return isinstance(other, core.Stream) and self._same(other)

    # Streams of other dialects may be equal, so the hash is the one that all have.
    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        if not self.init_finished:
            return ""
        if self.closed:
            return "Stream(closed)"  # mindspore's cannot be closed
        return f"Stream(device_name={self.device_name}, device_id:{self._ordinal}, stream id:{self.index})"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")
