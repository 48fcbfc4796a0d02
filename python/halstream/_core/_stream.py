"""Stream: a line of work on a device.

The dialects subclass it. What a dialect
changes goes through the class attributes `_errors`, `_event_class` and `_event_flags` and
the hook `_wrong_type`; the rest is here.
"""

from __future__ import annotations

import contextlib
import operator
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .. import _native
from .._errors import HalError, InvalidValueError, NotSupportedError
from .._runtime import Owner
from . import _current, _handles, _hostfunc, _interop
from ._awaiting import StreamAwaits
from ._base import NON_BLOCKING, REAP_AT, Base, drain, reap
from ._declared import Declared
from ._device import Device, in_use, ordinal
from ._lookup import DEVICE, address_of, kind_of

if TYPE_CHECKING:
    from .._kernel import Kernel
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
_stream_nop = _native.raw("stream_nop")
_stream_native = _native.raw("stream_native")
# ctypes and cffi are looked up here and never loaded: while they are not loaded, no object of theirs can be given.
_modules = sys.modules


class Stream(Base, StreamAwaits):
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
    _owner: Owner | None = None
    _index = -1
    _hash: int | None = None
    _ordinal: int
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

    # -- what it is ----------------------------------------------------------

    def _repr_html_(self) -> str:
        from .._notebook.objects import stream

        return stream(self)

    @property
    def device(self) -> Device:
        """The device the stream lives on."""
        return Device(self._ordinal)

    @property
    def handle(self) -> int:
        """Raw handle, 0 for the legacy default stream; unique while the stream lives."""
        value = int(_native.stream_handle(self._id))
        return 0 if value == 1 else value  # CUDA's other name of that stream

    @property
    def index(self) -> int:
        """Small number of the stream on its device, never used again; 0 = default stream."""
        if self._index < 0 or self._owner is None:
            self._index = int(_native.stream_index(self._id))  # kept for when it is closed
        return self._index

    @property
    def non_blocking(self) -> bool:
        """True if the stream takes no part in the legacy default stream's order."""
        return bool(_native.stream_flags(self._id) & NON_BLOCKING)

    @property
    def failures(self) -> int:
        """Number of functions on this stream that raised."""
        return int(_native.stream_failures(self._id))

    @property
    def closed(self) -> bool:
        """True after `close`."""
        return not _native.is_open(self._id)

    @property
    def priority(self) -> int:
        """The priority, within the device's range; lower is more urgent."""
        return int(_native.stream_priority(self._id))

    def describe(self) -> str:
        """Return what is pending and what the head operation waits for."""
        return str(_native.describe(self._id))

    def __eq__(self, other: object) -> bool:
        return self._same(other) if isinstance(other, Stream) else NotImplemented

    def __hash__(self) -> int:
        # The handle, and not the id: a stream of cupy is known by its handle alone.
        owner = self._owner
        found = self._hash if owner is None else owner.hash
        if found is None:
            try:
                handle = self.handle
                # The default streams of all devices have the same handle.
                found = hash(handle) if handle > 2 or not self._ordinal else hash((handle, self._ordinal))
            except RuntimeError:  # closed
                found = hash(self._id)
            if owner is None:
                self._hash = found
            else:
                owner.hash = found
        return found

    def _same(self, other: Stream) -> bool:
        """Return True if both objects name one stream of the runtime."""
        try:
            return self._id == other._id
        except RuntimeError:  # the handle of one of them names no live stream
            return False

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

    # -- work ---------------------------------------------------------------

    def call(
        self,
        function: Callable[..., object],
        /,
        *args: Any,
        reads: Iterable[Any] | None = None,
        writes: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Run a Python function in stream order, on another thread.

        An exception goes to `sys.unraisablehook`, is counted in `failures`,
        and later work still runs.

        Parameters
        ----------
        function : callable
            May not call the runtime (H3), but for opening a gate.
        *args, **kwargs
            Its arguments; they live until it has run. An `Array` arrives as a
            NumPy array on the host device; on a vendor device it is refused.
        reads, writes : iterable of buffers
            What it works on; strided arrays count with their elements only.
            Without both, array arguments count as read. `halstream.accesses`
            says it with the function.

        Raises
        ------
        TypeError
            If `function` cannot be called.
        NotSupportedError
            If an argument is memory of a vendor's device.
        ClosedError
            If the stream is closed.

        Notes
        -----
        Contract H1, H2, H3, M11.
        """
        _hostfunc.submit(self, function, args, kwargs, False, reads, writes)

    def call_checked(
        self,
        function: Callable[..., object],
        /,
        *args: Any,
        reads: Iterable[Any] | None = None,
        writes: Iterable[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Like `call`, but the next `synchronize` of the stream raises the exception.

        Raises
        ------
        TypeError, NotSupportedError, ClosedError
            As for `call`.
        """
        _hostfunc.submit(self, function, args, kwargs, True, reads, writes)

    def call_many(self, calls: Iterable[Callable[..., object] | tuple[Any, ...]], /) -> None:
        """Enqueue several Python functions in one step; each of them is like one of `call`.

        Many short functions cost less so. Other threads' work on the stream
        comes before all of them or after all of them, but for streams whose
        operations a schedule, a listener or another backend takes one by one.

        Parameters
        ----------
        calls : iterable of callable or tuple
            A function without arguments, or a tuple of a function and its
            arguments. Nothing is enqueued unless all of them are.

        Raises
        ------
        TypeError
            For an element that is neither, or no iterable.

        Notes
        -----
        Contract H1, H2, H3, H6.
        """
        if not isinstance(calls, Iterable):
            raise TypeError(f"call_many() takes an iterable of functions, not {type(calls).__name__}")
        _hostfunc.submit_many(self, calls)

    def call_native(
        self,
        function: Any,
        argument: Any = None,
        *,
        reads: Iterable[Any] | None = None,
        writes: Iterable[Any] | None = None,
    ) -> None:
        """Run a C function ``void f(void *)`` in stream order, without Python's lock.

        Parameters
        ----------
        function : address, ctypes function, cffi function pointer or numba cfunc
        argument : int, ctypes object, Array, NumPy array or None
            What it is given; it lives until the function has run. An `Array`
            of a vendor's device is refused, as the host cannot see its memory.
        reads, writes : iterable of buffers
            What it works on. Without both, an array argument counts as read.

        Raises
        ------
        TypeError
            If `function` is no native function.
        NotSupportedError
            If the argument is memory of a vendor's device.

        Notes
        -----
        Contract M11, M12.
        """
        value, ranges = _argument(argument)
        said = _hostfunc.declared(function, reads, writes)
        if said is not None:
            ranges = said
        if isinstance(function, Declared):
            function = function.function
        address = _function_address(function)
        if _hostfunc.look is not None:
            ranges, _ = _hostfunc.look(function, (), {}, ranges, said is not None)
        try:
            _stream_native(self._id, address, value, ranges)
        except OverflowError:
            raise InvalidValueError(f"{address} or {value} is no address") from None
        except RuntimeError as exc:
            raise self._fail(exc, "call_native") from None
        if not isinstance(function, int) or not isinstance(argument, (int, type(None))):
            _hostfunc.hold(self, function, argument)

    def launch(
        self,
        kernel: Kernel,
        grid: Any,
        block: Any,
        /,
        *args: Any,
        shared: int = 0,
        cooperative: bool = False,
        cluster: Any = None,
    ) -> None:
        """Run a kernel in stream order, in its form for the stream's backend.

        Parameters
        ----------
        kernel : Kernel
        grid, block : int or tuple of 1 to 3 int
            Blocks of the launch and threads of a block, within the vendor's
            limits on every device.
        *args
            As the kernel declares them: numbers for scalars; for pointers an
            `Array` of the stream's device, a NumPy array in pinned memory, or
            None. Their memory lives until the kernel has run.
        shared : int, default 0
            Bytes of dynamic shared memory of each block, also more than the
            48 KiB that a CUDA program must ask for with an attribute. A host
            form is not given any.
        cooperative : bool, default False
            Whether all blocks must run at the same time, as a grid-wide
            barrier needs; a launch of more blocks than fit is refused.
        cluster : int or tuple of 1 to 3 int, optional
            Blocks of a cluster, which share memory on a device of compute
            capability 9.0 or above; at most 8, and each dimension divides
            that of the grid.

        Raises
        ------
        KernelArgumentError
            If the count, a dtype or the size of the launch does not fit.
        WrongDeviceError
            If an array is on another device.
        NotSupportedError
            If the kernel has no form for this backend.
        CompileError
            If its CUDA form has errors, at the first launch on a device.

        Notes
        -----
        Contract M11, K1, K2. A Python host form that raises gives its exception
        to the stream's next `synchronize`; a CUDA form that faults loses the
        device (`DeviceLostError`).
        """
        enqueue = getattr(kernel, "_launch", None)
        if enqueue is None:
            raise TypeError(f"launch() takes a Kernel, not {type(kernel).__name__}")
        try:
            if shared or cooperative or cluster is not None:
                enqueue(self, grid, block, args, (shared, cooperative, cluster))
            else:
                enqueue(self, grid, block, args)
        except HalError as exc:
            raise self._fail(exc, "launch") from None

    def nop(self) -> None:
        """Enqueue an operation that does nothing.

        Raises
        ------
        ClosedError
            If the stream is closed.
        """
        try:
            _stream_nop(self._id)
        except RuntimeError as exc:
            raise self._fail(exc, "nop") from None

    def delay(self, seconds: float) -> None:
        """Enqueue an operation that keeps the stream (and an engine) busy for a time.

        Raises
        ------
        TypeError
            If `seconds` is no number.
        InvalidValueError
            If it is not from 0 to 86400.
        ClosedError
            If the stream is closed.
        """
        try:
            if not 0 <= seconds <= 86400:
                raise InvalidValueError(f"delay() takes 0 to 86400 seconds, not {seconds!r}")
        except TypeError:
            raise TypeError(f"delay() takes a number of seconds, not {type(seconds).__name__}") from None
        try:
            _native.stream_delay(self._id, int(seconds * 1e9))
        except RuntimeError as exc:
            raise self._fail(exc, "delay") from None

    # -- captures -----------------------------------------------------------

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


def native_address(function: Any) -> int | None:
    """Return the address of a native function, None if it is something else."""
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    ctypes: Any = _modules.get("ctypes")
    if ctypes is not None and isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value or 0
    address = getattr(function, "address", None)  # numba
    if isinstance(address, int):
        return address
    return _cffi_address(function)


def _function_address(function: Any) -> int:
    address = native_address(function)
    if address is None:
        raise TypeError(
            f"call_native() takes the address of a C function, a ctypes or cffi function or a "
            f"numba cfunc, not {type(function).__name__}; give a Python function to call()"
        )
    return address


def _ctypes_address(value: Any) -> int | None:
    ctypes: Any = _modules.get("ctypes")
    if ctypes is None:
        return None
    if isinstance(value, ctypes._SimpleCData) and isinstance(value, ctypes.c_void_p):
        return value.value or 0
    if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)):
        return int(ctypes.addressof(value))
    if isinstance(value, (ctypes._Pointer, ctypes._CFuncPtr)):  # what it points to
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    return None


def _cffi_address(value: Any) -> int | None:
    cffi = _modules.get("_cffi_backend")
    if cffi is None or not isinstance(value, cffi._CDataBase):
        return None
    pointer = cffi.cast(cffi.new_primitive_type("uintptr_t"), value)
    return int(pointer)


def _argument(argument: Any) -> tuple[int, str]:
    """Return what the function is given, and what that says of memory."""
    if argument is None:
        return 0, ""
    if isinstance(argument, int):
        return argument, ""
    address = _ctypes_address(argument)
    if address is None:
        address = _cffi_address(argument)
    if address is not None:
        return address, ""
    start, size = address_of(argument)
    if size and _interop.backend_name() != "host" and kind_of(start) == DEVICE:
        raise NotSupportedError(
            "a native function runs on the host and cannot see a device's memory: launch a "
            "kernel, or copy to pinned memory first",
            operation="call_native",
        )
    if _hostfunc.keep is not None:
        _hostfunc.keep(argument)
    return start, f"r:{start}:{size}"
