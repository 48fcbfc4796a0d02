"""Stream, its options, and the two default streams."""

from __future__ import annotations

import operator
import os
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from ... import _core as core
from ..._core import _current, _interop
from ..._dialects._adapt import raising
from ._arguments import checked, missing_property, options_of
from ._context import Context
from ._errors import ERRORS, closed
from ._threads import require_context

if TYPE_CHECKING:
    from ._device import Device
    from ._event import Event
    from .graph import GraphBuilder

__all__ = ["LEGACY_DEFAULT_STREAM", "PER_THREAD_DEFAULT_STREAM", "Stream", "StreamOptions"]

_NO_STREAM = "stream is required and must not be None; pass device.default_stream explicitly to use the default stream."
_FOREIGN = (
    "Passing foreign stream objects to this function via the stream protocol is deprecated. Convert the object "
    "explicitly using Stream(obj) instead."
)


@dataclass
class StreamOptions:
    """cuda.core.StreamOptions (1.2.2)."""

    nonblocking: Any = True
    priority: int | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not isinstance(self.priority, int):
            raise TypeError(f"Expected int, got {type(self.priority).__name__}")


class Recorder:
    """What stands for a stream that captures: a GraphBuilder."""

    stream: Stream


class Stream(core.Stream):
    """cuda.core.Stream (1.2.2); made by `Device.create_stream` and `from_handle`.

    Differences: `handle` is an int, and two objects are equal if they name one stream; a stream
    waits for streams and records events whichever device is current; `sync` takes a time limit;
    the default streams cannot be closed. Copies and pickles are refused.
    """

    __module__ = "halstream.cuda.core"  # strict mode, which knows classes by it, sees them as they are made
    _errors = ERRORS
    _makes_events = True
    _event_class: ClassVar[type[Event]]  # set by _event.py, which imports this file
    _device_class: ClassVar[type[Device]]  # set by _device.py
    _builder_class: ClassVar[type[GraphBuilder]]  # set by graph
    _given_up = False  # by `close`

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            "Stream objects cannot be instantiated directly. Please use Device APIs (create_stream) or other Stream "
            "APIs (from_handle)."
        )

    @classmethod
    def _new(cls, ordinal: int, options: Any) -> Stream:
        """Return a new stream on a device."""
        chosen = options_of(StreamOptions, options, "Stream")
        greatest, level = core.Device(ordinal).priority_range[1], chosen.priority or 0
        if not greatest <= level <= 0:
            raise ValueError(f"priority={level} is out of range [{greatest}, 0]")
        new = object.__new__(cls)
        new._create(ordinal, level, core.NON_BLOCKING if chosen.nonblocking else 0)
        return new

    @classmethod
    def _of(cls, source: Any) -> Stream:
        """Return the stream of an object that has the method ``__cuda_stream__``; it is kept alive."""
        if isinstance(source, Stream):
            source._open()
        elif not isinstance(source, core.Stream):
            _check_protocol(source)
        new = object.__new__(cls)
        found = _from_cuda_stream(core.Stream, source, None)
        new._attach(found._id, found._ordinal, found._owner)
        new._foreign = source
        return new

    @staticmethod
    def from_handle(handle: int) -> Stream:  # type: ignore[override]
        """Return a stream for a handle; the stream stays its maker's."""
        try:
            number = operator.index(handle)
        except TypeError:
            raise TypeError("an integer is required") from None
        if number < 0:
            raise OverflowError("can't convert negative value to size_t")
        if number in (1, 2):
            return LEGACY_DEFAULT_STREAM if number == 1 else PER_THREAD_DEFAULT_STREAM
        new: Stream = object.__new__(Stream)
        found = _from_handle(number)
        new._attach(found._id, found._ordinal, found._owner)
        return new

    def _open(self) -> None:
        """Raise an error if the stream was closed."""
        if self._given_up:
            raise closed("Stream")

    # -- what it is ---------------------------------------------------------

    @property
    def device(self) -> Device:
        """The device it is on; for a default stream the current one."""
        self._open()
        return self._device_class(self._ordinal)

    @property
    def context(self) -> Context:
        """The context of its device; for a default stream that of the current one."""
        self._open()
        return Context._of(self._ordinal)

    resources = missing_property("cuda.core.Stream.resources")

    @property
    def handle(self) -> int:
        """The stream's number; 1 and 2 are the default streams, 0 is what was closed."""
        return 0 if self._given_up else core.Stream.handle.fget(self)  # type: ignore[attr-defined]

    @property
    def is_nonblocking(self) -> bool:
        """True if it takes no part in the order of the legacy default stream."""
        self._open()
        return self.non_blocking

    @property
    def priority(self) -> int:
        """The priority; lower is more urgent."""
        self._open()
        return core.Stream.priority.fget(self)  # type: ignore[attr-defined, no-any-return]

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._given_up

    def __cuda_stream__(self) -> tuple[int, int]:
        self._open()
        return _cuda_stream(self)

    def __repr__(self) -> str:
        where = "closed" if self._given_up else f"device={self._ordinal}"
        return f"<Stream handle={self.handle:#x} {where}>"

    # -- order ----------------------------------------------------------------

    def sync(self, timeout: float | None = None) -> None:
        """Wait for the work of the stream; `timeout` in seconds is an addition."""
        self._open()
        self.synchronize(timeout)

    def record(self, event: Event | None = None, options: Any = None) -> Event:
        """Record an event, by default a new one with `options`, and return it."""
        self._open()
        if event is None:
            event = self._event_class._bound(self._ordinal, options)
        elif not isinstance(event, self._event_class):
            raise TypeError(f"Event expected, got {type(event).__name__}")
        event._open()
        return core.Stream.record(self, event)  # type: ignore[no-any-return]

    def wait(self, event_or_stream: Any) -> None:
        """Make later work wait for an event, or for the work of another stream so far."""
        self._open()
        if isinstance(event_or_stream, self._event_class):
            event_or_stream._open()
            self.wait_event(event_or_stream)
        elif isinstance(event_or_stream, Recorder):
            self.wait_stream(event_or_stream.stream)
        elif isinstance(event_or_stream, Stream):
            event_or_stream._open()
            self.wait_stream(event_or_stream)
        elif hasattr(event_or_stream, "__cuda_stream__"):
            self.wait_stream(Stream._of(event_or_stream))
        else:
            raise ValueError(
                "only an Event, Stream, or object supporting __cuda_stream__ can be waited, got "
                f"{type(event_or_stream)}"
            )

    def create_graph_builder(self) -> GraphBuilder:
        """Return a builder of graphs that captures this stream."""
        self._open()
        return self._builder_class._on(self)

    def close(self) -> None:
        """Give the stream up; pending work still runs. One of another maker is only let go."""
        if self._given_up:
            return
        if self._owner is not None and not self._owner.external and self._foreign is None:
            core.Stream.close(self)
        self._given_up = True
        self._foreign = None


class DefaultStream(Stream):
    """One of the default streams, of the device that is current at each use."""

    _number: int
    if not TYPE_CHECKING:

        @property
        def _id(self) -> int:
            require_context()
            return _default_id(self._number == 2)

        @property
        def _ordinal(self) -> int:
            require_context()
            return _current.current_device()

    @classmethod
    def _numbered(cls, number: int) -> Stream:
        new = object.__new__(cls)
        new._number = number
        return new

    @property
    def handle(self) -> int:
        """1 for the legacy default stream, 2 for that of each thread."""
        return self._number

    def close(self) -> None:
        """Refuse: the default streams are there for the whole program."""
        raise ERRORS["invalid_value"]("a default stream belongs to the whole program, and nobody closes it")

    def __hash__(self) -> int:
        # As the core's objects for the default streams of device 0, which is what they are mostly.
        return hash(0 if self._number == 1 else 2)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DefaultStream):
            return self._number == other._number
        return isinstance(other, core.Stream) and self._same(other)

    def __repr__(self) -> str:
        return f"<Stream handle={self._number:#x} device=current>"


_from_handle = raising(ERRORS)(core.Stream.from_handle)
_from_cuda_stream = raising(ERRORS)(_interop.from_cuda_stream)
_cuda_stream = raising(ERRORS)(_interop.cuda_stream)
_default_id = raising(ERRORS)(_interop.default_id)


def _check_protocol(source: Any) -> None:
    """Check what an object gives for its stream.

    Raises
    ------
    TypeError
        If it has no ``__cuda_stream__``.
    RuntimeError
        If that gives something else than 0 and a handle.
    """
    try:
        answer = source.__cuda_stream__
    except AttributeError:
        raise TypeError(f"{type(source)} object does not have a '__cuda_stream__' attribute") from None
    if callable(answer):
        answer = answer()
    else:
        warnings.warn(
            "Implementing __cuda_stream__ as an attribute is deprecated; it must be implemented as a method",
            DeprecationWarning,
            stacklevel=4,
        )
    try:
        count = len(answer)
    except TypeError:
        raise RuntimeError(f"obj.__cuda_stream__ must return a sequence with 2 elements, got {type(answer)}") from None
    if count != 2:
        raise RuntimeError(f"obj.__cuda_stream__ must return a sequence with 2 elements, got {count} elements")
    if answer[0] != 0:
        raise RuntimeError(
            f"The first element of the sequence returned by obj.__cuda_stream__ must be 0, got {answer[0]}"
        )


def stream_of(given: Any, protocol: bool = False) -> Stream:
    """Return the stream of an argument: a stream, or a builder of graphs that captures one.

    Parameters
    ----------
    given : object
    protocol : bool, default False
        Whether an object with ``__cuda_stream__`` passes, with the package's warning.

    Raises
    ------
    TypeError
        If it is something else.
    RuntimeError
        If it was closed.
    """
    if isinstance(given, Stream):
        given._open()
        return given
    if isinstance(given, Recorder):
        return given.stream
    if given is None:
        raise TypeError(_NO_STREAM)
    if protocol and hasattr(given, "__cuda_stream__"):
        warnings.warn(_FOREIGN, DeprecationWarning, stacklevel=3)
        return Stream._of(given)
    raise TypeError(f"Stream or GraphBuilder expected, got {type(given).__name__}")


def on_this_thread(stream: Stream) -> core.Stream:
    """Return the calling thread's own stream for the per-thread default stream, any other as it is."""
    if isinstance(stream, DefaultStream) and stream._number == 2:
        found: core.Stream = core.Device(stream._ordinal).per_thread_stream
        return found
    return stream


LEGACY_DEFAULT_STREAM: Stream = DefaultStream._numbered(1)
PER_THREAD_DEFAULT_STREAM: Stream = DefaultStream._numbered(2)


def default_stream() -> Stream:
    """Return the legacy default stream, or that of each thread where the package's variable asks for it."""
    value = os.environ.get("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM", "0")
    return PER_THREAD_DEFAULT_STREAM if value.strip().isdecimal() and int(value) else LEGACY_DEFAULT_STREAM


def checked_stream(given: Any) -> Stream:
    """Return an argument that must be a stream itself.

    Raises
    ------
    TypeError
        If it is something else.
    """
    stream = checked(given, Stream, "stream")
    stream._open()
    return stream


Recorder.__module__ = StreamOptions.__module__ = "halstream.cuda.core"
