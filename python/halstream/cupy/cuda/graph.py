"""cupy.cuda.graph (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import _core as core
from ... import _native
from ..._core import _current
from ..._core._base import Uncopied
from ..._core._graph import Graph as _CoreGraph
from ..._core._graph import GraphExec
from ..._runtime import Owner
from ._errors import ERRORS, c_int
from ._errors import not_built as _not_built

__all__ = ["Graph"]


class Graph(Uncopied):
    """cupy.cuda.Graph (14.2.0): an executable of what a stream has captured.

    Differences: `graph` and `graphExec` are numbers of this runtime; `host_funcargs` has the functions
    of every stream of the capture, for what keeps them is the graph.
    """

    __slots__ = ("_graph", "_owner", "_run")

    _graph: _CoreGraph
    _run: GraphExec
    _owner: Owner  #: of the executable

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via stream capture"
        )

    @classmethod
    def _of(cls, owner: Owner) -> Graph:
        new = object.__new__(cls)
        new._graph = object.__new__(_CoreGraph)
        new._graph._owner = owner
        new._run = new._graph.instantiate()
        new._owner = new._run._owner
        return new

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.graphExec}>"

    def launch(self, stream: Any = None) -> None:
        """Enqueue a run on a stream, by default on the current one."""
        try:
            _native.raw("executable_launch")(self._run._owner.ident, _id(stream))
        except RuntimeError as exc:
            raise _native.error(exc, ERRORS) from None

    def upload(self, stream: Any = None) -> None:
        """Prepare the next launch on a stream, by default the current one, which is not to capture."""
        try:
            _native.raw("executable_upload")(self._run._owner.ident, _id(stream))
        except RuntimeError as exc:
            raise _native.error(exc, ERRORS) from None

    def debug_dot_str(self, flags: int = 0) -> str:
        """Return the graph in the language of graphviz; every value of `flags` but 0 adds what the nodes work on."""
        return self._graph.dot(details=c_int(flags) != 0)

    @property
    def host_funcargs(self) -> list[tuple[Any, Any]]:
        """The functions of `launch_host_func` and their arguments, in the order of the calls; a new list each time."""
        return [(function, args[0]) for function, args in self._graph._calls() if len(args) == 1]

    @property
    def graph(self) -> int:
        """The number of the graph."""
        return self._graph._id

    @property
    def graphExec(self) -> int:
        """The number of the executable."""
        return self._run._owner.ident


def _id(stream: Any) -> int:
    return int((core.Stream._current(_current.current_device()) if stream is None else stream)._id)


__getattr__: Callable[[str], Any] = _not_built(__name__)
