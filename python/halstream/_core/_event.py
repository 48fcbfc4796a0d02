"""Event: a point on a stream."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, TypeVar

from .. import _native
from . import _current, _handles
from ._awaiting import EventAwaits
from ._base import BLOCKING_SYNC, INTERPROCESS, REAP_AT, TIMING, Base, drain, reap
from ._device import Device, ordinal
from ._stream import Stream

E = TypeVar("E", bound="Event")

_stream_record = _native.raw("stream_record")
_stream_wait_event = _native.raw("stream_wait_event")
_event_new = _native.raw("event_new")
_event_query = _native.raw("event_query")
_event_sync = _native.raw("event_sync")


class Event(_handles.EventBase, Base, EventAwaits):
    """A point on a stream; wait for it, ask for it, measure time between two.

    Parameters
    ----------
    device : Device, int, str or None
        Where it may be recorded; None: the device of its first record.
    timing : bool
        True lets `elapsed` use it.
    blocking_sync : bool
        True makes `synchronize` sleep at once where a vendor would spin.
    interprocess : bool
        Not supported yet.

    Raises
    ------
    InvalidDeviceError
        If the device does not exist.
    NotSupportedError
        If `interprocess` is True.

    Notes
    -----
    Contract E1 to E7. Recording again overwrites; a wait keeps the record that
    was current at its call.
    """

    _stream_class: ClassVar[type[Stream]] = Stream
    # True where record() without a stream looks only at the current device (torch).
    _record_here: ClassVar[bool] = False

    def __init__(
        self,
        device: Device | int | str | None = None,
        *,
        timing: bool = False,
        blocking_sync: bool = False,
        interprocess: bool = False,
    ) -> None:
        where = -1 if device is None else ordinal(device)
        self._create(
            where,
            (TIMING if timing else 0) | (BLOCKING_SYNC if blocking_sync else 0) | (INTERPROCESS if interprocess else 0),
        )

    @classmethod
    def from_handle(cls: type[E], handle: int) -> E:
        """Return an event object for a raw handle; the event stays its maker's.

        Raises
        ------
        InvalidHandleError
            If no live event has this handle.
        """
        value = operator.index(handle)
        try:
            found = _native.event_find(value)
        except (RuntimeError, OverflowError) as exc:
            raise _native.error(exc, cls._errors) from None
        new = object.__new__(cls)
        new._id = found
        new._owned = False
        return new

    @classmethod
    def from_ipc(cls: type[E], handle: bytes) -> E:
        """Return a new event that stands for one of another process, by its handle from `to_ipc`.

        Raises
        ------
        InvalidValueError
            If it is no such handle, or the process that made it has ended or closed the event.
        WrongContextError
            If this process made the handle.
        """
        try:
            made = _native.event_open(bytes(handle).hex())
        except RuntimeError as exc:
            raise _native.error(exc, cls._errors) from None
        new = object.__new__(cls)
        new._id = made
        return new

    def to_ipc(self, device: int) -> bytes:
        """Return the 64 bytes by which another process of the machine finds the event.

        Parameters
        ----------
        device : int
            Where the event belongs if it was never recorded.

        Raises
        ------
        InvalidValueError
            If the event was made without `interprocess`, or with `from_ipc`.
        NotSupportedError
            If this backend or system cannot.
        """
        try:
            return bytes.fromhex(_native.event_share(self._id, device))
        except RuntimeError as exc:
            raise self._fail(exc, "ipc_handle") from None

    def release(self) -> int:
        """Return the raw handle and keep the event open when this object is collected.

        `close` of any object that wraps the event closes it.
        """
        self._owned = False
        return self.handle

    def _create(self, ordinal: int, flags: int) -> None:
        """Make a new native event that this object owns; one that it had before is closed."""
        if len(reap) >= REAP_AT:
            drain()
        try:
            self._id = _event_new(ordinal, flags)
        except RuntimeError as exc:
            raise self._fail(exc, "create event") from None

    def record(self, stream: Any = None) -> None:
        """Record on a stream; None is the current stream of the event's device.

        An event without a device yet takes the current device's stream.

        Parameters
        ----------
        stream : Stream or None

        Raises
        ------
        WrongDeviceError
            If the stream is on another device than the event.
        TypeError
            If `stream` is no stream.
        ClosedError
            If the event or the stream is closed.
        """
        if stream is None:
            try:
                where = -1 if self._record_here else self._ordinal
            except RuntimeError as exc:
                raise self._fail(exc, "record") from None
            stream = self._stream_class._current(_current.current_device() if where < 0 else where)
        try:
            _stream_record(stream._id, self._id)
        except Exception as exc:
            other = self._adopt(stream, Stream)
            if other is None:
                raise self._fail(exc, "record", stream, Stream) from None
            Event.record(self, other)

    def wait(self, stream: Any = None) -> None:
        """Make later work of a stream (None: the current one) wait for this event.

        Parameters
        ----------
        stream : Stream or None

        Raises
        ------
        TypeError
            If `stream` is no stream.
        ClosedError
            If the event or the stream is closed.
        """
        if stream is None:
            stream = self._stream_class._current(_current.current_device())
        try:
            _stream_wait_event(stream._id, self._id)
        except Exception as exc:
            raise self._fail(exc, "wait", stream, Stream) from None

    def query(self) -> bool:
        """Return True if the latest record is done, or there is none; never blocks.

        Returns
        -------
        bool

        Raises
        ------
        ClosedError
            If the event is closed.
        """
        try:
            return _event_query(self._id) != 0
        except RuntimeError as exc:
            raise self._fail(exc, "query") from None

    def synchronize(self, timeout: float | None = None) -> None:
        """Block until the latest record is done.

        Parameters
        ----------
        timeout : float or None
            Seconds; None waits for ever.

        Raises
        ------
        WaitTimeoutError
            When the limit comes first; the work goes on.
        ClosedError
            If the event is closed.
        """
        if timeout is None:
            try:
                _event_sync(self._id, -1)
            except RuntimeError as exc:
                raise self._fail(exc, "synchronize") from None
        else:
            self._synchronize(_event_sync, timeout)

    def elapsed(self, end: Any) -> float:
        """Device time from this event to a later one.

        Parameters
        ----------
        end : Event
            Recorded after this event; both made with ``timing=True``.

        Returns
        -------
        float
            Milliseconds; negative if `end` came first.

        Raises
        ------
        TimingDisabledError
            If either was made without timing.
        UnrecordedError
            If either was never recorded.
        NotReadyError
            If either is still pending; synchronize `end` first.
        WrongDeviceError
            If they were recorded on different devices.

        Notes
        -----
        Contract E5.
        """
        try:
            return float(_native.event_elapsed(self._id, end._id))
        except Exception as exc:
            raise self._fail(exc, "elapsed", end, Event) from None

    @property
    def _ordinal(self) -> int:
        """Ordinal of the device, -1 before the first record of an unbound event."""
        return int(_native.event_device(self._id))

    @property
    def handle(self) -> int:
        """Raw handle, 0 before the first record of an event made without a device.

        On the CUDA backend it is the driver's event, with which other libraries query the
        event, wait for it and record it while it is open; from the first request on each record
        is two calls of the driver. On other backends it is the runtime's own number.
        """
        return int(_native.event_handle(self._id))

    @property
    def _made_with(self) -> int:
        """The TIMING, BLOCKING_SYNC and INTERPROCESS bits of its creation."""
        return int(_native.event_flags(self._id))

    @property
    def recorded(self) -> bool:
        """True once `record` was called, in a capture or outside of one."""
        return bool(_native.event_was_recorded(self._id))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return not _native.is_open(self._id)

    def close(self) -> None:
        """Give the event up; waits already enqueued keep their point. Idempotent."""
        _native.close(self._id)

    def _transfer_to(self, cls: type[E]) -> E:
        """Transfer ownership of the handle to an event of class `cls`, which this event keeps alive.

        Later calls return the same object.
        """
        other = object.__new__(cls)
        other._id = self._id
        kept: E = self.__dict__.setdefault("_transferred", other)
        if kept is other:
            self._owned = False
        else:
            del other._id  # another thread was first; this object may close nothing
        return kept

    def _repr_html_(self) -> str:
        from .._notebook.objects import event

        return event(self)

    def __repr__(self) -> str:
        state = "closed" if self.closed else "recorded" if self.recorded else "unrecorded"
        return f"<halstream.Event {state}>"


Stream._core_event = Event
Stream._event_class = Event
