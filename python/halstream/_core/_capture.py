"""Captures: what is enqueued on streams becomes a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _native
from .._errors import HalError, InvalidValueError
from .._runtime import Owner
from ._base import drain
from ._graph import Graph
from ._stream import Stream

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MODES", "capture"]

#: The modes of captures, in the order of CUDA's numbers.
MODES = ("global", "thread_local", "relaxed")

_begin = _native.raw("stream_begin_capture")
_end = _native.raw("stream_end_capture")

# CUDA's number of a call in a capture that an earlier one has invalidated.
_INVALIDATED = 901


class capture:
    """Capture what is enqueued on a stream: ``with capture(stream) as graph``.

    Nothing that is captured runs. The graph can be used after the block. If its
    body raises, the capture is ended, the graph can only say why it was not made, and the streams are usable.

    Parameters
    ----------
    stream : Stream
        Not a legacy default stream.
    mode : str
        ``'global'`` refuses unsafe calls, such as allocations, of every thread,
        ``'thread_local'`` those of this one, ``'relaxed'`` none.

    Raises
    ------
    InvalidValueError
        For another mode.
    CaptureError
        At the begin, if the stream captures already or cannot be captured. At the
        end, if a stream that was pulled in was not joined, or a call was made
        that a capture forbids: the text names it and its line.

    Notes
    -----
    Contract G1, G2, G3, G4. Source: CUDA driver API, cuStreamBeginCapture.
    """

    def __init__(self, stream: Stream, mode: str = "global") -> None:
        if not isinstance(stream, Stream):
            raise TypeError(f"capture() takes a halstream Stream, not {type(stream).__name__}")
        if mode not in MODES:
            raise InvalidValueError(f"there is no mode {mode!r} of captures; give one of {', '.join(MODES)}")
        self._stream = stream
        self._mode = MODES.index(mode)
        self._graph: Graph | None = None

    def __enter__(self) -> Graph:
        begin(self._stream, self._mode)
        self._graph = object.__new__(Graph)
        self._graph._owner = None
        return self._graph

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        graph = self._graph
        assert graph is not None
        try:
            made = end(self._stream)
        except BaseException as exc:
            # Of what was invalidated, the end gives the cause, which came before the body's own exception.
            graph._failed = _words(exc if value is None or getattr(exc, "code", None) == _INVALIDATED else value)
            if value is None or not isinstance(exc, HalError):
                raise
        else:
            if value is None:
                graph._owner = made
            else:
                graph._failed = _words(value)


def _words(exc: BaseException) -> str:
    """Return an exception in words, for a text that outlives it."""
    try:
        text = str(exc)
    except Exception:
        text = "(its text cannot be had)"
    return f"{type(exc).__qualname__}: {text}" if text else type(exc).__qualname__


def begin(stream: Stream, mode: int) -> None:
    """Begin a capture whose nodes keep the lines of the program; the number of its mode is CUDA's.

    Raises
    ------
    HalError
        As the core says.
    """
    drain()  # graphs that were collected may keep much memory
    try:
        _begin(stream._id, mode, True)
    except RuntimeError as exc:
        raise _native.error(exc) from None


def begin_own(stream: Stream, mode: int) -> None:
    """Begin a capture for a framework whose default stream is its own, for which the legacy default one stands."""
    drain()
    _native.stream_begin_own_capture(stream._id, mode)


def end(stream: Stream) -> Owner:
    """End a capture that `begin` began, and return the owner of its graph.

    Raises
    ------
    HalError
        As the core says.
    """
    try:
        return Owner(_end(stream._id))
    except RuntimeError as exc:
        raise _native.error(exc) from None
