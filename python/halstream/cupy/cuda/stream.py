"""cupy.cuda.stream (cupy 14.2.0): streams, events, the current stream."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ... import _core as core
from ... import _native
from ..._core import _current, _interop
from ..._dialects._adapt import raising
from ..._errors import WrongDeviceError
from ..._runtime import Owner
from ._constants import streamCaptureModeRelaxed
from ._devices import getDeviceCount
from ._errors import ERRORS, c_int, valid_capture
from ._errors import not_built as _not_built
from ._event import Event, get_elapsed_time
from ._handles import NO_CALLBACK, PER_THREAD_DEFAULT, Handle, Resolved, foreign_handle
from .graph import Graph

__all__ = ["Event", "ExternalStream", "Stream", "get_current_stream", "get_elapsed_time"]

S = TypeVar("S", bound="_BaseStream")


class _BaseStream(core.Stream):
    """cupy.cuda.stream._BaseStream (14.2.0).

    Differences: setting `ptr` or `device_id` of a stream made here changes only the number
    shown; `synchronize` takes a time-out; `query` is `done` that raises; streams of other
    dialects are equal to the stream they name; copies and pickles are refused.
    """

    _errors = ERRORS
    _initial: ClassVar[_BaseStream]
    ptr: int
    device_id: int
    if not TYPE_CHECKING:
        _id = Resolved()
        _ordinal = Resolved()

    def __init__(self, ptr: int, device_id: int) -> None:
        self.ptr = ptr
        self.device_id = device_id

    @property
    def is_non_blocking(self) -> bool:
        """True if the stream takes no part in the order of the default stream."""
        return self.non_blocking

    def use(self: S) -> S:
        """Make it current on the current device, until the next ``with`` ends."""
        _current.set_stream(self, False, ordinal=self._here(), transient=True)
        return self

    def __enter__(self: S) -> S:
        _current.enter(self, False, ordinal=self._here(), forget_transient=True)
        return self

    def __exit__(self, *args: object) -> None:
        _current.leave()  # by position, as in cupy: the innermost context, whichever stream's it is

    @property
    def done(self) -> bool:
        """True if all work is done; False while it is not, and on any error."""
        try:
            return _interop.idle(self)
        except Exception:  # also one of the user's, from a checked function
            return False

    def add_callback(self, callback: Any, arg: Any, *, reads: Any = None, writes: Any = None) -> None:
        """Call ``callback(stream, 0, arg)`` in stream order; exceptions go to unraisablehook. No capture takes it."""
        self._check_not_captured("add_callback", NO_CALLBACK)
        self.call(callback, self, 0, arg, reads=reads, writes=writes)

    def launch_host_func(self, callback: Any, arg: Any, *, reads: Any = None, writes: Any = None) -> None:
        """Call ``callback(arg)`` in stream order; exceptions go to unraisablehook."""
        self.call(callback, arg, reads=reads, writes=writes)

    def begin_capture(self, mode: int | None = None) -> None:
        """Turn what is enqueued from now on into a graph; modes as in `runtime`, by default relaxed."""
        if self.ptr in (0, 1):
            raise RuntimeError("cannot capture on the default (legacy) stream")
        number = streamCaptureModeRelaxed if mode is None else c_int(mode)
        try:
            _native.raw("stream_begin_capture")(self._id, number, True)
        except RuntimeError as exc:
            raise self._fail(exc, "begin_capture") from None

    def end_capture(self) -> Graph:
        """End the capture that began on this stream, and return its graph."""
        try:
            return Graph._of(Owner(_native.raw("stream_end_capture")(self._id)))
        except RuntimeError as exc:
            raise self._fail(exc, "end_capture") from None

    def is_capturing(self) -> bool:
        """True while the stream takes part in a capture; RuntimeError if an error has invalidated it."""
        return valid_capture(self._capture_state("is_capturing"))

    @raising(ERRORS)
    def __cuda_stream__(self) -> tuple[int, int]:
        return _interop.cuda_stream(self)[0], self.ptr

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _BaseStream):
            return self.ptr == other.ptr
        return isinstance(other, core.Stream) and self._same(other)

    def __hash__(self) -> int:
        return hash(self.ptr)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.ptr} (device {self.device_id})>"

    def _here(self) -> int:
        """Return the current device, where the stream must be able to become current."""
        here = _current.current_device()
        if self.device_id not in (-1, here):
            raise WrongDeviceError(
                f"stream of device {self.device_id} cannot become current while the current device is {here}"
            )
        return here

    def _on(self, ordinal: int) -> core.Stream:
        return self if "_id" in vars(self) else Handle.find(self.ptr, ordinal)

    def _create(self, ordinal: int, priority: int, flags: int, context: int = 0) -> None:
        super()._create(ordinal, priority, flags, context)
        assert self._owner is not None
        self._keep(self._owner.ident, ordinal)

    def _attach(self, ident: int, ordinal: int, owner: Any = None) -> None:
        super()._attach(ident, ordinal, owner)
        self._keep(ident, ordinal)

    def _keep(self, ident: int, ordinal: int) -> None:
        """Hide the `Resolved` attributes of the class: this object knows its stream."""
        self._id, self._ordinal = ident, ordinal
        handle = self.handle
        self.ptr = ident if handle == ident else handle  # one number for both, as there may be many streams
        self.device_id = ordinal

    @classmethod
    def _current(cls, ordinal: int) -> Any:
        stream = _current.current_stream(ordinal)
        if stream is None:
            return Stream._initial
        return stream if isinstance(stream, _BaseStream) else Stream._wrap(stream)

    _makes_events = True

    def _new_event(self) -> Event:
        return Event()  # of the current device; a stream of another one refuses it

    def _adopt(self, operand: Any, expected: type) -> Any:
        return None if isinstance(operand, expected) else Event.find(operand.ptr)


class Stream(_BaseStream):
    """cupy.cuda.Stream (14.2.0); `null` and `ptds` mean the current device at each call."""

    null: ClassVar[Stream]
    ptds: ClassVar[Stream]
    _foreign_stream_ref: Any = None

    def __init__(
        self,
        null: bool = False,
        non_blocking: bool = False,
        ptds: bool = False,
        priority: int | None = None,
    ) -> None:
        if null or ptds:
            super().__init__(0 if null else 2, -1)
            return
        level = 0 if priority is None else c_int(priority)
        flags = core.NON_BLOCKING if non_blocking else 0
        self._create(_current.current_device(), level, flags)

    @classmethod
    def from_external(cls: type[S], obj: Any) -> S:
        """Wrap the stream of an object that implements the CUDA stream protocol; keep it alive."""
        new = cls.__new__(cls)
        # The protocol refuses the runtime's own streams where a CUDA driver could be asked.
        new.ptr = obj.handle if isinstance(obj, core.Stream) else foreign_handle(obj)
        new.device_id = -1
        vars(new)["_foreign_stream_ref"] = obj
        return new


class ExternalStream(_BaseStream):
    """cupy.cuda.ExternalStream (14.2.0); deprecated there in favour of `from_external`."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        warnings.warn(
            "ExternalStream is deprecated. Use Stream.from_external() instead to interoperate "
            "with external streams that implement the CUDA stream protocol.",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(ptr, device_id)


def get_current_stream(device_id: int = -1) -> Any:
    """cupy.cuda.get_current_stream (14.2.0); streams of other dialects come as `Stream`."""
    if device_id == -1:
        return _BaseStream._current(_current.current_device())
    number, count = c_int(device_id), getDeviceCount()
    if not -count <= number < count:
        raise IndexError("list index out of range")
    return _BaseStream._current(number % count)


Stream.null = Stream(null=True)
Stream.ptds = Stream(ptds=True)
# What is current where nothing was made current.
_BaseStream._initial = Stream.ptds if PER_THREAD_DEFAULT else Stream.null
_BaseStream._event_class = Event
Event._stream_class = Stream


__getattr__: Callable[[str], Any] = _not_built(__name__)
