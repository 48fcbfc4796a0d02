"""Graphs: work that is captured once, and launched any number of times."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import HalError, InvalidValueError
from .._records import NodeRecord, decode
from .._runtime import Owner
from .._sites import ROOT
from . import _hostfunc
from ._base import drain
from ._device import Device, ordinal
from ._node import Node, nodes_of
from ._picture import dot_text, draw
from ._stream import Stream

if TYPE_CHECKING:
    from types import TracebackType

    from .._memory._condition import Condition

__all__ = ["MODES", "Graph", "GraphExec", "Node", "capture"]

#: The modes of captures, in the order of CUDA's numbers.
MODES = ("global", "thread_local", "relaxed")


class Graph:
    """Operations with edges that order them.

    Made by `capture`, or without nodes and filled by `add`, `add_graph` and
    `add_edge`. It keeps the functions, arguments and memory that its nodes use.

    Raises
    ------
    NotSupportedError
        If the backend has no graphs.

    Notes
    -----
    Contract G5, G6, G12, G13.

    Examples
    --------
    >>> import halstream as hs
    >>> s, out = hs.Stream(), []
    >>> with hs.capture(s) as graph:
    ...     s.call(out.append, 1)
    >>> out
    []
    >>> run = graph.instantiate()
    >>> for _ in range(3):
    ...     run.launch(s)
    >>> s.synchronize()
    >>> out
    [1, 1, 1]
    """

    __slots__ = ("__weakref__", "_owner")

    def __init__(self) -> None:
        drain()  # graphs that were collected may keep much memory
        self._owner: Owner | None = Owner(_native.graph_new())

    @property
    def _id(self) -> int:
        if self._owner is None:
            raise HalError("the capture has not ended, so that there is no graph yet; use it after the with block")
        return self._owner.ident

    def _records(self) -> list[NodeRecord]:
        records: list[NodeRecord] = decode(_native.graph_nodes(self._id))
        return records

    @property
    def nodes(self) -> list[Node]:
        """The nodes, in the order in which they were captured or added."""
        return nodes_of(self._records())

    @property
    def edges(self) -> list[tuple[int, int]]:
        """Pairs of the indices of two nodes, of which the second one comes after the first one."""
        return [(dep, i) for i, r in enumerate(self._records()) for dep in r["after"]]

    def _calls(self) -> list[tuple[Any, tuple[Any, ...]]]:
        """Return the functions of its calls and their arguments, in the order of the nodes."""
        c = _hostfunc._c  # None while nothing was ever enqueued
        return (
            []
            if c is None
            else [(c.function_of(r["token"]), c.arguments_of(r["token"])) for r in self._records() if r["token"]]
        )

    def _repr_html_(self) -> str:
        from .._notebook.graph import svg

        return svg(self)

    def dot(self, *, details: bool = False) -> str:
        """Return the graph in the language of graphviz, with names and the lines of the program that made the nodes.

        Parameters
        ----------
        details : bool
            Whether nodes also have their device, their stream, and what they read and write.
        """
        return dot_text(self._id, details)

    def svg(self) -> str:
        """Return the graph as an SVG picture, which graphviz draws.

        Raises
        ------
        NotSupportedError
            If graphviz is not installed: its program ``dot`` draws the text of `dot`.
        """
        return draw(self.dot())

    def add(
        self,
        enqueue: Callable[[Stream], object],
        *,
        after: Iterable[int] = (),
        device: Device | int | str | None = None,
    ) -> int:
        """Add a node and return its index.

        Parameters
        ----------
        enqueue : callable
            Is given a stream and enqueues one operation on it, which becomes the node.
        after : iterable of int
            Indices of nodes that it comes after.
        device : Device, int, str or None
            Where it runs; None is the current device.

        Raises
        ------
        InvalidValueError
            If `enqueue` makes no node or more than one, or there is no such node.
        """
        stream = object.__new__(Stream)
        where = ordinal(device)
        stream._attach(_native.graph_builder(self._id, where, str(list(after))), where)
        try:
            enqueue(stream)
        except BaseException:
            with contextlib.suppress(HalError):
                _native.graph_built(stream._id)
            raise
        return int(_native.graph_built(stream._id))

    def add_graph(self, graph: Graph, *, after: Iterable[int] = ()) -> int:
        """Add a graph, as it is now, as one node and return its index.

        Raises
        ------
        InvalidValueError
            If there is no such node.
        """
        return int(_native.graph_child(self._id, _checked(graph, "add_graph")._id, str(list(after))))

    def add_if(self, condition: Condition, body: Graph, *, after: Iterable[int] = ()) -> int:
        """Add a node that runs a graph if the condition is not 0 when the node begins; return its index.

        The node has `body` as it is now. Its nodes cannot allocate or free memory,
        and cannot record or wait for external events.

        Raises
        ------
        NotSupportedError
            If the body has such nodes. On CUDA, at the instantiation.
        InvalidValueError
            If there is no such node.
        """
        return self._add_condition("add_if", condition, body, after, again=False)

    def add_while(self, condition: Condition, body: Graph, *, after: Iterable[int] = ()) -> int:
        """Add a node that runs a graph again and again, each time if the condition is not 0; return its index.

        Raises
        ------
        InvalidValueError
            If nothing in the body can change the condition, or there is no such node.
        NotSupportedError
            As for `add_if`.
        """
        return self._add_condition("add_while", condition, body, after, again=True)

    def _add_condition(
        self, operation: str, condition: Condition, body: Graph, after: Iterable[int], *, again: bool
    ) -> int:
        if not hasattr(condition, "initial"):
            raise TypeError(f"{operation}() takes a halstream Condition, not {type(condition).__name__}")
        initial, word, inner = condition.initial, condition.ptr, _checked(body, operation)._id
        args = str(list(after)), word, initial or 0, initial is not None, again
        return int(_native.graph_condition(self._id, inner, *args))

    def add_edge(self, before: int, after: int) -> None:
        """Make one node come after another one.

        Raises
        ------
        InvalidValueError
            If there is no such node, or the edge exists or would close a cycle.
        """
        _native.graph_edge(self._id, before, after)

    def clone(self) -> Graph:
        """Return a copy of the graph, which keeps the same objects alive; not of one that allocates or frees memory."""
        new = object.__new__(Graph)
        new._owner = Owner(_native.graph_clone(self._id))
        return new

    def instantiate(self, *, auto_free: bool = False) -> GraphExec:
        """Return an executable of the graph as it is now.

        Parameters
        ----------
        auto_free : bool
            Whether a launch frees memory that the graph has allocated, and that
            nothing has freed since the launch before, instead of failing.

        Raises
        ------
        NotSupportedError
            If the graph allocates or frees memory and has an executable already;
            if it has nodes of a kind that the backend does not have.
        """
        new = object.__new__(GraphExec)
        new._owner = Owner(_native.graph_instantiate_with(self._id, auto_free))
        return new

    def close(self) -> None:
        """Give the graph up; executables of it and their launches go on. Closing again does nothing."""
        if self._owner is not None:
            _native.close(self._owner.ident)


class GraphExec:
    """An executable graph; made by `Graph.instantiate`.

    Its launches run one at a time, in the order of the calls, whichever streams
    they are on.

    Notes
    -----
    Contract G6, G8, G9, G10, G11, G12.
    """

    __slots__ = ("__weakref__", "_owner")

    _owner: Owner

    def __init__(self) -> None:
        raise TypeError("a GraphExec is made by Graph.instantiate()")

    def launch(self, stream: Stream) -> None:
        """Enqueue a run of all nodes, as one operation of the stream.

        On a stream that captures, the graph becomes a node of that capture.

        Raises
        ------
        InvalidValueError
            If memory that a node works on was freed, or what the graph allocates is
            allocated since an earlier launch; nothing runs then.
        ClosedError
            If the stream or this object is closed.
        """
        if not isinstance(stream, Stream):
            raise TypeError(f"launch() takes a halstream Stream, not {type(stream).__name__}")
        _native.executable_launch(self._owner.ident, stream._id)

    def upload(self, stream: Stream) -> None:
        """Prepare the next launch on a stream, so that it takes no longer than later ones. Nothing runs.

        Raises
        ------
        TypeError
            For anything but a stream of halstream.
        """
        if not isinstance(stream, Stream):
            raise TypeError(f"upload() takes a halstream Stream, not {type(stream).__name__}")
        _native.executable_upload(self._owner.ident, stream._id)

    def update(self, graph: Graph) -> None:
        """Make later launches run a graph with the same kinds of nodes and the same edges.

        Raises
        ------
        CaptureError
            If it differs in more; the text says in what. Nothing changes then.
        """
        _native.executable_update(self._owner.ident, _checked(graph, "update")._id)

    def update_node(self, index: int, enqueue: Callable[[Stream], object]) -> None:
        """Make later launches do something else at one node.

        Parameters
        ----------
        index : int
            The node's, in the graph that was instantiated.
        enqueue : callable
            Is given a stream and enqueues one operation on it, of the node's kind.

        Raises
        ------
        CaptureError
            If the operation is of another kind, or on another device.
        InvalidValueError
            If there is no such node, or not exactly one operation was enqueued.
        """
        where = int(_native.executable_node_device(self._owner.ident, index))
        stream = object.__new__(Stream)
        stream._attach(_native.executable_node_builder(self._owner.ident, index), where)
        try:
            enqueue(stream)
        except BaseException:
            with contextlib.suppress(HalError):
                _native.graph_built(stream._id)
            raise
        _native.executable_node_built(self._owner.ident, stream._id, index)

    def close(self) -> None:
        """Give it up; launches that were enqueued still run. Closing again does nothing."""
        _native.close(self._owner.ident)


def _checked(graph: Graph, operation: str) -> Graph:
    if not isinstance(graph, Graph):
        raise TypeError(f"{operation}() takes a halstream Graph, not {type(graph).__name__}")
    return graph


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
