"""cupy.cuda.runtime: captures and graphs by their numbers, which stay until they are destroyed."""

from __future__ import annotations

import os

from ... import _native
from ..._core._graph import dot_text
from ..._dialects._adapt import raising
from . import _constants as constants
from ._errors import ERRORS, CUDARuntimeError, c_int, intptr, valid_capture
from ._handles import Handle

__all__ = [
    "graphDebugDotPrint",
    "graphDestroy",
    "graphExecDestroy",
    "graphInstantiate",
    "graphLaunch",
    "graphUpload",
    "streamBeginCapture",
    "streamEndCapture",
    "streamIsCapturing",
]

#: cudaErrorOperatingSystem.
_NO_FILE = 304


@raising(ERRORS)
def streamBeginCapture(stream: int, mode: int = constants.streamCaptureModeRelaxed) -> None:
    """cupy.cuda.runtime.streamBeginCapture (14.2.0)."""
    handle, number = intptr(stream), c_int(mode)
    _native.stream_begin_capture(Handle.find(handle)._id, number, True)


@raising(ERRORS)
def streamEndCapture(stream: int) -> int:
    """cupy.cuda.runtime.streamEndCapture (14.2.0): the graph lives until `graphDestroy`."""
    return int(_native.stream_end_capture(Handle.find(stream)._id))


@raising(ERRORS)
def streamIsCapturing(stream: int) -> bool:
    """cupy.cuda.runtime.streamIsCapturing (14.2.0)."""
    return valid_capture(_native.stream_capture_state(Handle.find(stream)._id))


@raising(ERRORS)
def graphInstantiate(graph: int) -> int:
    """cupy.cuda.runtime.graphInstantiate (14.2.0): it lives until `graphExecDestroy`."""
    return int(_native.graph_instantiate(intptr(graph)))


@raising(ERRORS)
def graphDestroy(graph: int) -> None:
    """cupy.cuda.runtime.graphDestroy (14.2.0); executables of the graph go on."""
    _native.graph_destroy(intptr(graph))


@raising(ERRORS)
def graphExecDestroy(graphExec: int) -> None:
    """cupy.cuda.runtime.graphExecDestroy (14.2.0); launches that were enqueued still run."""
    _native.executable_destroy(intptr(graphExec))


@raising(ERRORS)
def graphLaunch(graphExec: int, stream: int) -> None:
    """cupy.cuda.runtime.graphLaunch (14.2.0)."""
    number, handle = intptr(graphExec), intptr(stream)
    _native.executable_launch(number, Handle.find(handle)._id)


@raising(ERRORS)
def graphUpload(graphExec: int, stream: int) -> None:
    """cupy.cuda.runtime.graphUpload (14.2.0): prepare the next launch; the stream must not capture."""
    number, handle = intptr(graphExec), intptr(stream)
    _native.executable_upload(number, Handle.find(handle)._id)


@raising(ERRORS)
def graphDebugDotPrint(graph: int, path: str, flags: int) -> None:
    """cupy.cuda.runtime.graphDebugDotPrint (14.2.0); every value of `flags` but 0 adds what the nodes work on."""
    number = intptr(graph)
    text = dot_text(number, c_int(flags) != 0)
    try:
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as exc:
        raise CUDARuntimeError(_NO_FILE) from exc
