"""paddle.device.cuda.graphs of 3.3: work that is captured once, and replayed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import halstream

from .... import _core as core
from ...._core._capture import MODES, begin_own, end
from ...._core._graph import Graph, GraphExec
from ...._dialects._adapt import raising
from ...._dialects._not_built import not_built
from ...._errors import HalError
from ...._runtime import collected
from ..._errors import ERRORS, EnforceNotMet
from ..._places import CUDAPlace
from ...base._capture import capturing
from ...base._streams import CUDAStream

__all__ = ["CUDAGraph", "is_cuda_graph_supported"]

ALL_MODES = list(MODES)


def is_cuda_graph_supported() -> bool:
    """`paddle.device.cuda.graphs.is_cuda_graph_supported` of 3.3: whether the backend in use has graphs."""
    return halstream.backend() in ("host", "cuda")


class CUDAGraph:
    """paddle.device.cuda.graphs.CUDAGraph of 3.3: the work of one capture, which `replay` enqueues.

    Parameters
    ----------
    place : CUDAPlace, optional
        The device whose current stream is captured; by default the one that ``FLAGS_selected_gpus`` names, or 0.
    mode : str
        Which calls of other threads a capture forbids: ``global``, ``thread_local`` or ``relaxed``.
    pool_id : int, optional
        Accepted and ignored: graphs share no memory.

    Notes
    -----
    As in paddle, the default stream is one of its own, which can be captured: for its device the legacy default
    stream of CUDA, which no other capture takes, stands for it. Streams of `halstream` that are ordered with that one
    do not wait for what is captured, and while one of them captures, the default stream cannot.

    Differences: a replay or a reset before the end of a capture is an `AttributeError` that says so;
    `print_to_dot_files` writes one file, whose nodes have the lines of the program, takes no notice of ``flags``, and
    uses all of a `pathlib.Path`.
    """

    def __init__(self, place: Any = None, mode: str = "thread_local", pool_id: int | None = None) -> None:
        if place is None:
            place = CUDAPlace(int(os.environ.get("FLAGS_selected_gpus", "0").split(",")[0]))  # noqa: SIM112
        if not isinstance(place, CUDAPlace):
            raise TypeError(f"a CUDAGraph captures work of a CUDAPlace, not of {place!r}")
        assert mode in ALL_MODES, f"the mode {mode!r} is none of {', '.join(ALL_MODES)}"
        self._place = place
        self._mode = ALL_MODES.index(mode)
        self._pool_id = pool_id
        self._stream: core.Stream | None = None  # that was captured
        self._graph: Graph | None = None
        self._run: GraphExec | None = None
        self._was_reset = False
        self._begun: tuple[core.Stream, int] | None = None  # the capture that this object began last

    def __del__(self) -> None:
        """End a capture that nobody can end any more, so that its stream and other graphs are usable."""
        begun = getattr(self, "_begun", None)  # the constructor may have failed
        if begun is not None and begun in capturing:
            capturing.remove(begun)
            if collected is not None:  # at the exit of the interpreter
                # Whichever thread collects it, the next call of any thread ends the capture.
                collected.note(begun[0]._id)

    @raising(ERRORS)
    def capture_begin(self) -> None:
        """Begin to capture the current stream of the device."""
        ordinal = self._place.get_device_id()
        if capturing:
            raise ERRORS["capture"]("another CUDAGraph captures; call its capture_end() first")
        stream = CUDAStream._current(ordinal)
        begin_own(stream, self._mode)
        self._begun = (stream, ordinal)
        capturing.append(self._begun)

    @raising(ERRORS)
    def capture_end(self) -> None:
        """End the capture that is underway; this object has its work then."""
        if not capturing:
            raise ERRORS["capture"]("no capture is underway; call capture_begin() first")
        underway = capturing[-1]
        stream = underway[0]
        graph = object.__new__(Graph)
        try:
            graph._owner = end(stream)
        finally:
            if not _captures(stream) and underway in capturing:  # else the end was refused: another call can end it
                capturing.remove(underway)
        # As in paddle: what the capture has allocated stays usable until the next replay, which uses it again.
        self._was_reset = False
        self._stream, self._graph, self._run = stream, graph, graph.instantiate(auto_free=True)

    @raising(ERRORS)
    def replay(self) -> None:
        """Enqueue the captured work on the stream that was captured."""
        if self._was_reset:
            raise EnforceNotMet("(PermissionDenied) reset() has given up what was captured; capture it anew")
        if self._run is None or self._stream is None:
            raise AttributeError("there is nothing to replay; call capture_begin() and capture_end() first")
        self._run.launch(self._stream)

    def reset(self) -> None:
        """Give up what was captured; replays that were enqueued still run. A second call does nothing."""
        if self._was_reset:
            return
        if self._graph is None:
            raise AttributeError("there is nothing to reset; call capture_begin() and capture_end() first")
        self._was_reset = True
        self._stream = self._graph = self._run = None

    def print_to_dot_files(self, dirname: Any, flags: int | None = None) -> None:
        """Write the graph in the language of graphviz into a file of a folder, which is made if it is missing."""
        if self._graph is None:
            raise AttributeError("there is nothing to print; call capture_begin() and capture_end() first")
        if not isinstance(dirname, (str, bytes, os.PathLike)):
            dirname = dirname.name  # of a tempfile.TemporaryDirectory
        folder = Path(os.fsdecode(dirname))
        folder.mkdir(parents=True, exist_ok=True)
        text = self._graph.dot(details=bool(flags) or flags is None)
        (folder / "block_0_segment_0.dot").write_text(text, encoding="utf-8")


def _captures(stream: core.Stream) -> bool:
    try:
        return stream.capturing
    except HalError:  # a stream that is closed
        return False


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
