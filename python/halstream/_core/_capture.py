"""Captures: what is enqueued on streams becomes a graph."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from .. import _native
from .._errors import HalError, InvalidValueError
from .._runtime import Owner
from .._sites import ROOT
from ._base import drain
from ._graph import Graph
from ._stream import Stream

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["MODES", "capture"]

#: The modes of captures, in the order of CUDA's numbers.
MODES = ("global", "thread_local", "relaxed")


class capture:
    """Capture what is enqueued on a stream: ``with capture(stream) as graph``.

    Nothing that is captured runs. The graph can be used after the block. If its
    body raises, the capture is ended, there is no graph, and the streams are usable.

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
        if kind is None:
            graph._owner = end(self._stream)
            return
        with contextlib.suppress(HalError):  # the body's own exception is the cause
            end(self._stream)


def begin(stream: Stream, mode: int) -> None:
    """Begin a capture whose nodes keep the lines of the program; the number of its mode is CUDA's."""
    drain()  # graphs that were collected may keep much memory
    _native.stream_begin_capture(stream._id, mode, ROOT, True)


def end(stream: Stream) -> Owner:
    """End a capture that `begin` began, and return the owner of its graph."""
    return Owner(_native.stream_end_capture(stream._id))
