"""Stream: a line of work on a device.

The dialects subclass it. What a dialect
changes goes through the class attributes `_errors`, `_event_class` and `_event_flags` and
the hook `_wrong_type`; the rest is here.
"""

from __future__ import annotations

import contextlib
import operator
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .. import _native
from .._errors import HalError, InvalidValueError
from . import _current, _handles, _interop
from ._awaiting import StreamAwaits
from ._base import NON_BLOCKING, REAP_AT, Owner, drain, reap
from ._device import Device, in_use, ordinal
from ._stream_properties import StreamProperties

if TYPE_CHECKING:
    from ._event import Event

S = TypeVar("S", bound="Stream")
E = TypeVar("E", bound="Event")

_stream_record = _native.raw("stream_record")
_stream_record_new = _native.raw("stream_record_new")
_stream_wait_event = _native.raw("stream_wait_event")
_stream_wait_stream = _native.raw("stream_wait_stream")
_stream_query = _native.raw("stream_query")
_stream_sync = _native.raw("stream_sync")
_push = _current.push
_pop = _current.pop
_leave = _current.leave
_event_of = _handles.event_of


class Stream(StreamProperties, StreamAwaits):
    """A line of work on a device; work on it runs in the order of the calls.

    Parameters
    ----------
    device : Device, int, str or None
        Where the stream lives; None is the current device.
    priority : int
        Lower is more urgent; numbers outside the device's range are clamped.
    non_blocking : bool
        True takes the stream out of the implicit order with the legacy
        default stream.

    Raises
    ------
    InvalidDeviceError
        If the device does not exist.
    TypeError
        If `priority` is not an integer.

    Notes
    -----
    Contract S1, S2, S5. Dropping the last reference to a stream with work
    pending lets the work finish (L2).

    Examples
    --------
    >>> import halstream as hs
    >>> s = hs.Stream()
    >>> out = []
    >>> s.call(out.append, 1)
    >>> s.synchronize()
    >>> out
    [1]
    """

    _core_event: ClassVar[type[Event]]  # set by _event.py, which imports this file
    _event_class: ClassVar[type[Event]]
    _event_flags: ClassVar[int] = 0
    #: True where `_new_event` makes the event that `record` returns, False where the core does as it records it.
    _makes_events: ClassVar[bool] = False
    _foreign: Any = None  # another library's object that owns the stream

    def __init__(
        self,
        device: Device | int | str | None = None,
        *,
        priority: int = 0,
        non_blocking: bool = False,
    ) -> None:
        self._create(ordinal(device), priority, NON_BLOCKING if non_blocking else 0)

    def _create(self, ordinal: int, priority: int, flags: int, context: int = 0) -> None:
        """Make a new native stream that this object owns."""
        if len(reap) >= REAP_AT:
            drain()
        elif reap:
            # A dropped stream of a vendor's device is in one of its few hardware queues until it is closed.
            with contextlib.suppress(HalError):  # as in a forked process: the next call fails as well, and says it
                if _interop.backend_name() != "host":
                    drain()
        level = max(-(2**31), min(2**31 - 1, operator.index(priority)))
        try:
            ident = _native.stream_new(ordinal, level, flags, context)
        except RuntimeError as exc:
            raise self._fail(exc, "create stream") from None
        self._id, self._ordinal = ident, ordinal
        self._owner = Owner(ident)
        in_use.add(ordinal)

    def _attach(self, ident: int, ordinal: int, owner: Owner | None = None) -> None:
        """Make this object a wrapper of a native stream that exists already."""
        self._id, self._ordinal = ident, ordinal
        self._owner = owner
        in_use.add(ordinal)

    @classmethod
    def _wrap(cls: type[S], other: Stream) -> S:
        """Return `other` if it already has this class; otherwise a new wrapper that shares its handle."""
        if isinstance(other, cls):
            return other
        new = object.__new__(cls)
        new._attach(other._id, other._ordinal, other._owner)
        return new

    @classmethod
    def _default(cls: type[S], ordinal: int, per_thread: bool = False) -> S:
        """Return the legacy (or the caller's per-thread) default stream of a device."""
        try:
            ident = _native.stream_default(ordinal, int(per_thread))
        except RuntimeError as exc:
            raise _native.error(exc, cls._errors) from None
        new = object.__new__(cls)
        new._attach(ident, ordinal)
        return new

    @classmethod
    def _current(cls: type[S], ordinal: int) -> S:
        """Return the current stream of a device in this class."""
        stream = _current.current_stream(ordinal)
        return cls._default(ordinal) if stream is None else cls._wrap(stream._on(ordinal))

    def _on(self, ordinal: int) -> Stream:
        """Return the stream for a device; a stream of cupy without a device means the one given."""
        return self

    @classmethod
    def from_handle(cls: type[S], handle: int, device: Device | int | str | None = None) -> S:
        """Return a stream object for a raw handle; the stream stays its maker's.

        Parameters
        ----------
        handle : int
            What `handle` of a live stream gave; 0 and 1 are the legacy default
            stream, 2 is the caller's per-thread default stream. On a vendor's
            backend also what another library of the process has for a stream.
        device : Device, int, str or None
            The device of handles 0, 1 and 2.

        Raises
        ------
        InvalidHandleError
            If no live stream has this handle.
        InvalidDeviceError
            If the device does not exist.
        TypeError
            If `handle` is not an integer.
        """
        where = ordinal(device)
        value = operator.index(handle)
        if value in (0, 1, 2):
            return cls._default(where, per_thread=value == 2)
        try:
            ident, found, owner = _interop.external(value, where)
        except (RuntimeError, OverflowError) as exc:
            raise _native.error(exc, cls._errors) from None
        new = object.__new__(cls)
        new._attach(ident, found, owner)
        return new

    @classmethod
    def from_cuda_stream(cls: type[S], source: Any, device: Device | int | str | None = None) -> S:
        """Return the stream of another library's object; the object is kept alive.

        Parameters
        ----------
        source : object
            With ``__cuda_stream__``, which gives (0, handle); a stream of this
            package comes back itself.
        device : Device, int, str or None
            The device of default streams, see `from_handle`.

        Raises
        ------
        TypeError
            If there is no such method.
        InvalidValueError
            If it answers something else.
        InvalidHandleError
            If no live stream has the handle.
        NotSupportedError
            If the handle is a CUDA driver's and another backend is in use.
        """
        return _interop.from_cuda_stream(cls, source, device)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return (0, handle) for another library.

        Raises
        ------
        NotSupportedError
            For a stream that is not CUDA's where a CUDA driver is loadable: the
            other library would hand the number to the driver.
        """
        return _interop.cuda_stream(self)

    # -- order ------------------------------------------------------------

    def record(self, event: Any = None) -> Any:
        """Mark the point that the stream has reached; None makes a new event.

        Parameters
        ----------
        event : Event or None
            Overwritten if it was recorded before. An event that was made
            without a device takes the stream's.

        Returns
        -------
        Event
            `event`, or the new one.

        Raises
        ------
        WrongDeviceError
            If the event belongs to another device.
        TypeError
            If `event` is no event.
        ClosedError
            If the stream or the event is closed.

        Notes
        -----
        Contract E3, E4, E7.
        """
        if event is None:
            if self._makes_events:
                event = self._new_event()
            else:
                try:
                    event = _event_of(self._event_class, _stream_record_new(self._id, -1, self._event_flags))
                except Exception as exc:
                    raise self._fail(exc, "record") from None
                if len(reap) >= REAP_AT:
                    drain()
                return event
        try:
            _stream_record(self._id, event._id)
        except Exception as exc:
            other = self._adopt(event, self._core_event)
            if other is None:
                raise self._fail(exc, "record", event, self._core_event) from None
            Stream.record(self, other)
        return event

    def wait(self, other: Any) -> None:
        """Make later work wait for an event or for another stream's work so far.

        The host does not block. An event that was never recorded is complete.

        Parameters
        ----------
        other : Event or Stream
            A stream stands for all work enqueued on it before this call; it
            may be another library's, with ``__cuda_stream__``.

        Raises
        ------
        TypeError
            If `other` is neither.
        ClosedError
            If it or the stream is closed.

        Notes
        -----
        Contract E1, E2, E3, S6.
        """
        if isinstance(other, self._core_event):
            self.wait_event(other)
        elif isinstance(other, Stream):
            self.wait_stream(other)
        elif hasattr(other, "__cuda_stream__"):
            self.wait_stream(Stream.from_cuda_stream(other, self._ordinal))
        elif other is None or isinstance(other, (int, float, str)):
            raise TypeError(f"wait() takes an event or a stream, not {type(other).__name__}")
        else:
            self.wait_event(other)

    def wait_event(self, event: Any) -> None:
        """Make later work wait for the latest record of an event.

        Parameters
        ----------
        event : Event

        Raises
        ------
        TypeError
            If `event` is no event.
        ClosedError
            If the stream or the event is closed.
        """
        try:
            _stream_wait_event(self._id, event._id)
        except Exception as exc:
            other = self._adopt(event, self._core_event)
            if other is None:
                raise self._fail(exc, "wait_event", event, self._core_event) from None
            Stream.wait_event(self, other)

    def wait_stream(self, stream: Any) -> None:
        """Make later work wait for the work enqueued on another stream so far.

        Parameters
        ----------
        stream : Stream

        Raises
        ------
        TypeError
            If `stream` is no stream.
        ClosedError
            If either stream is closed.
        """
        try:
            _stream_wait_stream(self._id, stream._id)
        except Exception as exc:
            raise self._fail(exc, "wait_stream", stream, Stream) from None

    def query(self) -> bool:
        """Return True if all work enqueued so far is done; never blocks.

        Returns
        -------
        bool

        Raises
        ------
        HalError
            The first error of the stream, once; `ClosedError` if it is closed.
        """
        try:
            return _stream_query(self._id) != 0
        except RuntimeError as exc:
            raise self._fail(exc, "query") from None

    def synchronize(self, timeout: float | None = None) -> None:
        """Block until all work enqueued before the call is done.

        Parameters
        ----------
        timeout : float or None
            Seconds; None waits for ever.

        Raises
        ------
        WaitTimeoutError
            When the limit comes first. The work goes on; the text names the
            stream and what its head operation waits for.
        Exception
            The first exception of a function given to `call_checked`, once.

        Notes
        -----
        Contract S4. Ctrl-C raises `KeyboardInterrupt` within 0.1 s.
        """
        if timeout is None:
            try:
                _stream_sync(self._id, -1)
            except RuntimeError as exc:
                raise self._fail(exc, "synchronize") from None
        else:
            self._synchronize(_stream_sync, timeout)

    @property
    def capturing(self) -> bool:
        """Whether the stream takes part in a capture, also in one that was invalidated."""
        return self._capturing("capturing")

    def _capturing(self, operation: str) -> bool:
        """Answer `capturing`; `operation` is the dialect's name of the question, for its errors."""
        return bool(self._capture_state(operation))

    def _capture_state(self, operation: str) -> int:
        """Return 0, or 1 while the stream takes part in a capture, or 2 if that was invalidated."""
        try:
            return int(_native.raw("stream_capture_state")(self._id))
        except RuntimeError as exc:
            raise self._fail(exc, operation) from None

    def _check_not_captured(self, operation: str, remedy: str) -> None:
        """Refuse a dialect's call that cannot be captured, where the stream captures; this invalidates the capture."""
        try:
            _native.raw("stream_check_not_captured")(self._id, operation, remedy)
        except RuntimeError as exc:
            raise self._fail(exc, operation) from None

    def record_external(self, event: Event) -> Event:
        """Record an event for work outside of a graph.

        On a stream that captures this adds a node, which records the event each
        time the graph runs. Elsewhere it is `record`.

        Raises
        ------
        WrongDeviceError
            If the event belongs to another device.
        ClosedError
            If one of the two is closed.

        Notes
        -----
        Contract G7.
        """
        try:
            _native.stream_record_external(self._id, event._id)
        except Exception as exc:
            raise self._fail(exc, "record_external", event, self._core_event) from None
        return event

    def wait_external(self, event: Event) -> None:
        """Wait for an event that work outside of a graph records.

        On a stream that captures this adds a node, which waits for the record that
        is the latest when the graph begins to run. Elsewhere it is `wait`.

        Raises
        ------
        WrongDeviceError
            If the event belongs to another device.
        ClosedError
            If one of the two is closed.

        Notes
        -----
        Contract G7.
        """
        try:
            _native.stream_wait_external(self._id, event._id)
        except Exception as exc:
            raise self._fail(exc, "wait_external", event, self._core_event) from None

    def close(self) -> None:
        """Give the stream up; pending work still runs. Closing again does nothing.

        Raises
        ------
        InvalidValueError
            For a default stream.
        """
        if self._owner is None or self._owner.external:
            raise self._errors.get("invalid_value", InvalidValueError)(
                "only a stream's maker can close it; this is a default or external stream"
            )
        hash(self)  # its handle, which all wrappers are known by, cannot be asked for later
        _native.close(self._id)

    # -- protocols --------------------------------------------------------

    def __enter__(self: S) -> S:
        """Make the stream and its device current."""
        ordinal = self._ordinal
        _push(self, ordinal, ordinal)
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Restore what was current before."""
        if not _pop(self):
            _leave(self)

    def __repr__(self) -> str:
        number = "closed" if self.closed else self.index
        return f"<halstream.Stream {number} on {_native.backend()}:{self._ordinal}>"

    def _new_event(self) -> Event:
        event = object.__new__(self._event_class)
        event._create(-1, self._event_flags)
        return event


Device._stream_class = Stream
