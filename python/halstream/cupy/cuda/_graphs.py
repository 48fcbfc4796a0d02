"""cupy.cuda.runtime: graphs, which are not built yet."""

from __future__ import annotations

from typing import NoReturn

from ._errors import c_int, intptr, unsupported

__all__ = [
    "graphDebugDotPrint",
    "graphDestroy",
    "graphExecDestroy",
    "graphInstantiate",
    "graphLaunch",
    "graphUpload",
]

_WHAT = "graphs are not built yet"


def graphInstantiate(graph: int) -> NoReturn:
    """cupy.cuda.runtime.graphInstantiate (14.2.0): not built yet."""
    intptr(graph)
    raise unsupported(_WHAT)


def graphDestroy(graph: int) -> NoReturn:
    """cupy.cuda.runtime.graphDestroy (14.2.0): not built yet."""
    intptr(graph)
    raise unsupported(_WHAT)


def graphExecDestroy(graphExec: int) -> NoReturn:
    """cupy.cuda.runtime.graphExecDestroy (14.2.0): not built yet."""
    intptr(graphExec)
    raise unsupported(_WHAT)


def graphLaunch(graphExec: int, stream: int) -> NoReturn:
    """cupy.cuda.runtime.graphLaunch (14.2.0): not built yet."""
    intptr(graphExec), intptr(stream)
    raise unsupported(_WHAT)


def graphUpload(graphExec: int, stream: int) -> NoReturn:
    """cupy.cuda.runtime.graphUpload (14.2.0): not built yet."""
    intptr(graphExec), intptr(stream)
    raise unsupported(_WHAT)


def graphDebugDotPrint(graph: int, path: str, flags: int) -> NoReturn:
    """cupy.cuda.runtime.graphDebugDotPrint (14.2.0): not built yet."""
    intptr(graph), c_int(flags)
    raise unsupported(_WHAT)
