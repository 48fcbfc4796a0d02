"""Contexts, event kinds and report queues: the parts of the core that Ascend's model needs."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar
from weakref import WeakValueDictionary

from .. import _native
from .._errors import HalError, NotSubscribedError, WaitTimeoutError
from .._runtime import runtime
from . import _hostfunc
from ._base import Base, Owner
from ._event import Event
from ._stream import Stream

# Kinds of events, in the bits of the creation flags above the common ones.
KIND_STANDARD = 0 << 8  # CUDA's: unrecorded is complete, waiting for it does nothing
KIND_FUTURE = 1 << 8  # a wait before the record waits for it; set until a reset
KIND_RECORDED = 2 << 8  # waiting before the first record is an error; query says pending
NOT_WAITABLE = 1 << 4  # streams cannot wait for it

S = TypeVar("S", bound=Stream)
E = TypeVar("E", bound=Event)


class Context(Base):
    """A context of a device: a default stream of its own, current per thread.

    Creating one makes it current on the calling thread. Streams made by it may
    be given work only while it is current there (`WrongContextError`).
    """

    # By id: the stream for what blocks its caller and has no order with other streams.
    _asides: ClassVar[dict[int, Stream]] = runtime.keep("streams for blocking calls of contexts", {}, clear=True)

    def __init__(self, ordinal: int) -> None:
        self._call(_native.context_new, ordinal)

    @classmethod
    def _of(cls, ident: int) -> Context:
        new = cls.__new__(cls)
        new._id = ident
        return new

    @classmethod
    def primary(cls, ordinal: int) -> Context:
        """Make the device's primary context current here and count one more user of it."""
        new = cls.__new__(cls)
        new._call(_native.context_primary, ordinal)
        return new

    @classmethod
    def current(cls) -> Context:
        """Return this thread's current context; `NoContextError` if it has none."""
        new = cls.__new__(cls)
        new._call(_native.context_current)
        return new

    def _call(self, function: Callable[..., int], *args: int) -> None:
        try:
            self._id = function(*args)
        except RuntimeError as exc:
            raise self._fail(exc, "context") from None

    def _do(self, function: Callable[..., Any], *args: int) -> Any:
        try:
            return function(self._id, *args)
        except RuntimeError as exc:
            raise self._fail(exc, "context") from None

    def make_current(self) -> None:
        """Bind the context to the calling thread."""
        self._do(_native.context_set)

    def destroy(self) -> None:
        """Destroy it; its pending work ends first. A primary context cannot be destroyed."""
        self._do(_native.context_destroy)

    @property
    def ordinal(self) -> int:
        """Ordinal of the device."""
        return int(self._do(_native.context_device))

    @property
    def default_stream(self) -> Stream:
        """The context's default stream; it has no implicit order with other streams."""
        return self._default_in(Stream)

    def _default_in(self, cls: type[S]) -> S:
        """Return the context's default stream in a class of streams."""
        stream = cls.__new__(cls)
        stream._attach(self._default_id, self.ordinal)
        return stream

    @property
    def _default_id(self) -> int:
        return int(self._do(_native.context_default_stream))

    @property
    def aside(self) -> Stream:
        """A stream of this context for calls that block and wait for no other stream."""
        found = self._asides.get(self._id)
        if found is None or found.closed:
            for ident, stream in list(self._asides.items()):
                if stream.closed:
                    self._asides.pop(ident, None)
            found = self._asides.setdefault(self._id, self.stream())
        return found

    def stream(self, priority: int = 0) -> Stream:
        """Return a new stream of this context."""
        return self._stream_in(Stream, priority)

    def _stream_in(self, cls: type[S], priority: int) -> S:
        """Return a new stream of this context in a class of streams."""
        stream = cls.__new__(cls)
        stream._create(self.ordinal, priority, 0, self._id)
        return stream

    def event(self, flags: int = 0) -> Event:
        """Return a new event of this context's device; `flags` from this file and `_base`."""
        return self._event_in(Event, flags)

    def _event_in(self, cls: type[E], flags: int) -> E:
        """Return a new event of this context's device in a class of events."""
        event = cls.__new__(cls)
        event._create(self.ordinal, flags)
        return event

    def synchronize(self, timeout: float | None = None) -> None:
        """Block until the work enqueued on the context's streams is done."""
        self._synchronize(_native.context_sync, timeout)

    def __eq__(self, other: object) -> bool:
        return self._id == other._id if isinstance(other, Context) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._id)


def release_primary(ordinal: int, force: bool = False) -> None:
    """Count one user of the primary context less; the last one (or `force`) ends it.

    Raises
    ------
    InvalidValueError
        If nobody uses it.
    """
    try:
        _native.context_release(ordinal, int(force))
    except RuntimeError as exc:
        raise _native.error(exc) from None


def reset_event(stream: Stream, event: Event) -> None:
    """Enqueue "clear" of a `KIND_FUTURE` event on a stream."""
    try:
        _native.event_reset(stream._id, event._id)
    except RuntimeError as exc:
        raise stream._fail(exc, "reset_event") from None


def wait_limited(stream: Stream, event: Event, seconds: float) -> None:
    """Make a stream wait for an event, at most so long.

    When the limit comes first the stream goes on and keeps a timeout error for
    its next synchronize.
    """
    try:
        _native.stream_wait_limited(stream._id, event._id, int(seconds * 1e9))
    except RuntimeError as exc:
        raise stream._fail(exc, "wait_limited") from None


def waits_pending(event: Event) -> int:
    """Return how many enqueued waits for an event have not been passed."""
    try:
        return int(_native.event_waits(event._id))
    except RuntimeError as exc:
        raise _native.error(exc) from None


def timestamp_us(event: Event) -> int:
    """Return when the latest record was done, microseconds of the device's clock."""
    try:
        return int(_native.event_time(event._id)) // 1000
    except RuntimeError as exc:
        raise _native.error(exc) from None


def abort_device(ordinal: int) -> int:
    """Drop the pending work of all streams of a device; return how much."""
    return int(_native.device_abort(ordinal))


def abort(stream: Stream) -> int:
    """Drop the pending work of a stream, but for what already runs; return how much."""
    try:
        return int(_native.stream_abort(stream._id))
    except RuntimeError as exc:
        raise stream._fail(exc, "abort") from None


def destroy_stream(stream: Stream, drop: bool = False) -> None:
    """Wait for a stream's work (with `drop`: drop it) and close the stream.

    Raises
    ------
    InvalidValueError
        For a stream that somebody else owns, a default stream for instance.
    WrongContextError, NoContextError
        If the stream's context is not current here.
    """
    if stream._owner is None or stream._owner.external:
        stream.close()
    # An enqueue is what checks the context.
    stream.nop()
    if drop:
        abort(stream)
    else:
        # The stream ends here, and its error with it.
        with contextlib.suppress(HalError):
            stream.synchronize()
    stream.close()


def gate(stream: Stream) -> int:
    """Enqueue an operation that holds a stream until `open_gate`; return its id."""
    try:
        return int(_native.gate_new(stream._id))
    except RuntimeError as exc:
        raise stream._fail(exc, "gate") from None


def open_gate(ident: int) -> None:
    """Let the stream behind a gate go on, and give the gate up; again does nothing."""
    _native.close(ident)


def host_function(stream: Stream, function: Callable[[Any], object], argument: Any) -> None:
    """Run a function in stream order on the runtime's own threads, now and from now on.

    Raises
    ------
    NotSubscribedError
        If the stream is subscribed to a report queue.

    Notes
    -----
    Contract A10. `Stream.call` makes no such choice: it works on every stream.
    """
    try:
        _native.stream_use_runtime_threads(stream._id)
    except RuntimeError as exc:
        raise stream._fail(exc, "host_function") from None
    stream.call(function, argument)


class ReportQueue(Base):
    """Functions of subscribed streams, run by the thread that calls `process`."""

    _tokens: ClassVar[Any] = itertools.count(1)
    _tasks: ClassVar[dict[int, Callable[[], object]]] = runtime.keep("functions of report queues", {})
    # The living queues by id.
    _queues: ClassVar[WeakValueDictionary[int, ReportQueue]] = runtime.keep("report queues", WeakValueDictionary())

    def __init__(self) -> None:
        self._id = _native.queue_new()
        self._owner = Owner(self._id)
        self._queues[self._id] = self

    @classmethod
    def of(cls, stream: Stream) -> ReportQueue:
        """Return the queue that a stream is subscribed to; `NotSubscribedError` if none."""
        try:
            ident = _native.stream_report_queue(stream._id)
        except RuntimeError as exc:
            raise stream._fail(exc, "report") from None
        queue = cls._queues.get(ident)
        if queue is None:
            raise NotSubscribedError("no thread is subscribed to the reports of this stream")
        return queue

    @property
    def unused(self) -> bool:
        """True if no stream is subscribed to this queue and each report has ended or was dropped."""
        return bool(_native.queue_unused(self._id))

    def subscribe(self, stream: Stream) -> None:
        """Send the reports of a stream here.

        Raises
        ------
        NotSubscribedError
            If the stream already has a queue, or runs functions on the
            runtime's own threads.
        WrongDeviceError
            If the queue serves a stream of another device.
        """
        self._try(stream, _native.stream_subscribe)

    def unsubscribe(self, stream: Stream) -> None:
        """Undo `subscribe`; `NotSubscribedError` if this queue does not serve the stream."""
        self._try(stream, _native.stream_unsubscribe)

    def _try(self, stream: Stream, function: Callable[[int, int], int]) -> None:
        try:
            function(stream._id, self._id)
        except RuntimeError as exc:
            raise self._fail(exc, "subscribe") from None

    def launch(self, stream: Stream, function: Callable[..., object], block: bool, *args: Any) -> None:
        """Enqueue a call of ``function(*args)``; with `block` the stream's later work waits for it.

        An exception in it goes to `sys.unraisablehook`, and later work still runs.
        """
        token = next(self._tokens)
        task = functools.partial(function, *args)
        account = _hostfunc.account_of(function, task.args, "report", token)
        self._tasks[token] = task
        try:
            _native.stream_report(stream._id, self._id, token, int(block), account)
        except RuntimeError as exc:
            del self._tasks[token]
            raise self._fail(exc, "launch") from None

    def process(self, timeout: float | None) -> None:
        """Run the functions that are due; wait for the first one.

        Raises
        ------
        WaitTimeoutError
            If none came within `timeout` seconds (None waits for ever).
        """
        taken: list[int] = []

        def take(ident: int, ns: int) -> int:
            token = _native.queue_next(ident, ns)
            if token:
                taken.append(token)
            return int(token != 0)

        done = _native.wait(take, self._id, timeout)
        while dropped := _native.queue_dropped():
            self._tasks.pop(dropped, None)
        if not done:
            raise WaitTimeoutError(f"no report within {timeout} s", operation="process")
        token = taken[0]
        while token:
            function = self._tasks.pop(token)
            error = ""
            try:
                function()
            except Exception as exc:
                error = _hostfunc._report(token, function, exc, False)
            except BaseException as exc:
                # The calling thread is the user's: Ctrl-C and SystemExit are for it.
                error = f"?{type(exc).__name__}: {exc}"
                raise
            finally:
                _native.queue_done(self._id, token, error)
            del function
            token = _native.queue_next(self._id, 0)
