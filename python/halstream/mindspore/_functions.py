"""`StreamCtx` and the functions on streams of mindspore.hal and mindspore.runtime 2.10."""

from __future__ import annotations

from types import TracebackType

from .. import _core as core
from .._core import _current
from .._dialects import _numbered
from . import _target
from ._stream import Stream, check_stream


class StreamCtx:
    """`mindspore.hal.StreamCtx` of 2.10.

    Differences: it makes the stream current for the calling task only (in strict
    mode for the process, as mindspore's does); after entering one object twice,
    each exit restores what was current before its enter.
    """

    ctx_attr = True

    def __init__(self, ctx_stream: core.Stream | None) -> None:
        if ctx_stream is not None:
            check_stream("StreamCtx", "ctx_stream", ctx_stream)
        self.stream = ctx_stream
        self._before: core.Stream | None = None
        self._entered = False
        self._inside = 0
        self._scope = _current.GuardScope()

    @property
    def prev_stream(self) -> Stream | None:
        """What was current when the context was entered last, None before that."""
        if self.stream is None or not self._entered:
            return None
        if self._before is None:
            return Stream._default(self.stream._ordinal)
        return Stream._wrap(self._before)

    def __enter__(self) -> None:
        stream = self.stream
        if stream is not None:
            self._before = _current.current_stream(stream._ordinal)
            self._entered = True
            self._scope.enter(stream)
            self._inside += 1

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        if self._inside and self.stream is not None:
            self._inside -= 1
            self._scope.leave(self.stream)


def current_stream() -> Stream:
    """`mindspore.hal.current_stream` of 2.10; the same object if this dialect set it."""
    return Stream._current(_current.current_device())


def default_stream() -> Stream:
    """`mindspore.hal.default_stream` of 2.10."""
    return Stream._default(_current.current_device())


def communication_stream() -> Stream:
    """`mindspore.hal.communication_stream` of 2.10: its own on Ascend, else the default one."""
    if _target.target() == "Ascend":
        return _numbered.communication(Stream, _current.current_device())
    return default_stream()


def set_cur_stream(stream: core.Stream | None) -> None:
    """`mindspore.hal.set_cur_stream` of 2.10; inside a `StreamCtx` it ends with that."""
    if stream is not None:
        check_stream("set_cur_stream", "stream", stream)
        _current.set_stream(stream, False, process=True)


def synchronize() -> None:
    """`mindspore.hal.synchronize` of 2.10."""
    core.synchronize()
