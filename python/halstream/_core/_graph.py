"""Graphs, and their executables, which are launched any number of times."""

from __future__ import annotations

import contextlib
import json
import operator
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _native
from .._errors import ClosedError, HalError, InvalidValueError, NotSupportedError
from .._records import NodeRecord, decode
from .._runtime import Owner
from .._sites import site_line
from . import _hostfunc
from ._base import Uncopied, drain, repr_after_fork
from ._device import Device, ordinal
from ._stream import Stream

if TYPE_CHECKING:
    from .._memory._condition import Condition

__all__ = ["Graph", "GraphExec", "Node", "dot_text", "name_of"]

#: Seconds that graphviz may take for one picture.
DRAWING = 60


def dot_text(graph: int, details: bool = False) -> str:
    """Return the graph of a number in the language of graphviz, with the names of its functions."""
    c = _hostfunc._c  # None while nothing was ever enqueued
    tokens = () if c is None else set(decode(_native.graph_tokens(graph)))
    names = {str(token): name_of(_hostfunc.function_of(token), c.arguments_of(token)) for token in tokens if c}
    return str(_native.graph_dot(graph, json.dumps(names), details))


def draw(text: str) -> str:
    """Return a text for graphviz as an SVG picture.

    Raises
    ------
    NotSupportedError
        If graphviz is not installed.
    HalError
        If its program fails.
    """
    program = shutil.which("dot")
    if program is None:
        raise NotSupportedError(
            "svg() draws with graphviz, and its program dot is not on the PATH; install graphviz "
            "(apt install graphviz, dnf install graphviz, brew install graphviz), or draw the text of dot() elsewhere"
        )
    done = subprocess.run([program, "-Tsvg"], input=text, capture_output=True, text=True, timeout=DRAWING, check=False)
    if done.returncode:
        raise HalError(f"graphviz cannot draw the graph: {done.stderr.strip()}")
    return done.stdout


@dataclass(frozen=True)
class Node:
    """An operation of a graph.

    Attributes
    ----------
    index : int
        Its number in the graph, from 0.
    kind : str
        ``'empty'``, ``'call'``, ``'native'``, ``'copy'``, ``'fill'``, ``'delay'``, ``'record'``, ``'wait'``,
        ``'kernel'``, ``'if'``, ``'while'``, ``'switch'``, ``'graph'``, ``'allocate'`` or ``'free'``.
    name : str
        Of the function, the native function or the kernel; ``''`` for others.
    function : callable or None
        Of a call.
    where : str
        The line of the program that made it, ``''`` if that is not known.
    """

    index: int
    kind: str
    name: str
    function: Any
    where: str


def name_of(function: Any, arguments: tuple[Any, ...] = ()) -> str:
    """Return what a program calls a function: for a partial its function's name, for other callables their type's.

    A function of this package that runs another one has an attribute that gives the
    name for the arguments of a call.
    """
    named = getattr(function, "_halstream_name", None)
    if named is not None and arguments:
        return str(named(*arguments))
    function = getattr(function, "func", function)
    return str(getattr(function, "__qualname__", None) or type(function).__name__)


def nodes_of(records: Iterable[NodeRecord]) -> list[Node]:
    """Return the nodes of records."""
    found = []
    for i, r in enumerate(records):
        function, name, c = None, r["name"], _hostfunc._c
        if r["token"] and c is not None:
            function = c.function_of(r["token"])
            name = name_of(function, c.arguments_of(r["token"]))
        found.append(Node(i, r["kind"], name, function, site_line(r["site"])))
    return found


def indices_of(after: Iterable[int]) -> str:
    """Return the indices of nodes as the extension reads them.

    Raises
    ------
    TypeError
        For what is no iterable of integers.
    InvalidValueError
        For an index that is there twice, or that no graph has.
    """
    if isinstance(after, (str, bytes)) or not isinstance(after, Iterable):
        raise TypeError(f"after takes indices of nodes, such as [0, 2], not {after!r}")
    numbers = [index_of(number) for number in after]
    for number in numbers:
        if numbers.count(number) > 1:
            raise InvalidValueError(f"after names node {number} twice")
    return str(numbers)


def index_of(number: int) -> int:
    """Return the index of a node as the extension can read it, which refuses those of no node.

    Raises
    ------
    TypeError
        For anything but an integer.
    InvalidValueError
        For one that no graph has.
    """
    if isinstance(number, bool):
        raise TypeError(f"{number} is not the index of a node; nodes are counted from 0")
    index = operator.index(number)
    if not -(1 << 31) <= index < 1 << 31:
        raise InvalidValueError(f"no graph has a node {index}; nodes are counted from 0")
    return index


class Graph(Uncopied):
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
    >>> run = graph.instantiate()
    >>> for _ in range(3):
    ...     run.launch(s)
    >>> s.synchronize()
    >>> out
    [1, 1, 1]
    """

    __slots__ = ("__weakref__", "_failed", "_owner")

    _failed: str  #: why a capture made no graph; missing where that is not so

    def __init__(self) -> None:
        drain()  # graphs that were collected may keep much memory
        self._owner: Owner | None = Owner(_native.graph_new())

    @repr_after_fork
    def __repr__(self) -> str:
        if self._owner is None:
            return f"<halstream.Graph, {'not captured' if hasattr(self, '_failed') else 'under capture'}>"
        count = len(self._records())
        return f"<halstream.Graph of {count} node{'' if count == 1 else 's'}>"

    @property
    def _id(self) -> int:
        if self._owner is None:
            if why := getattr(self, "_failed", ""):
                raise HalError(f"the capture failed, so that there is no graph: {why}")
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
        TypeError
            If `enqueue` cannot be called.
        InvalidValueError
            If `enqueue` makes no node or more than one, or there is no such node.
        """
        if not callable(enqueue):
            raise TypeError(f"add() takes a function that enqueues one operation, not {type(enqueue).__name__}")
        stream = object.__new__(Stream)
        where = ordinal(device)
        stream._attach(_native.graph_builder(self._id, where, indices_of(after)), where)
        try:
            enqueue(stream)
        except BaseException:
            with contextlib.suppress(HalError):
                _native.graph_unbuilt(stream._id)
            raise
        return int(_native.graph_built(stream._id))

    def add_graph(self, graph: Graph, *, after: Iterable[int] = ()) -> int:
        """Add a graph, as it is now, as one node and return its index.

        Raises
        ------
        InvalidValueError
            If there is no such node.
        """
        return int(_native.graph_child(self._id, _checked(graph, Graph, "add_graph")._id, indices_of(after)))

    def add_if(
        self, condition: Condition, body: Graph, *, otherwise: Graph | None = None, after: Iterable[int] = ()
    ) -> int:
        """Add a node that runs a graph if the condition is not 0 when the node begins; return its index.

        The node has `body` as it is now. Its nodes cannot allocate or free memory,
        and cannot record or wait for external events.

        Parameters
        ----------
        condition : Condition
            What the node looks at.
        body : Graph
            Runs if it is not 0.
        otherwise : Graph or None
            Runs if it is 0.
        after : iterable of int
            Indices of nodes that it comes after.

        Raises
        ------
        NotSupportedError
            If the body has such nodes. On CUDA, at the instantiation, if it has functions of the program.
        InvalidValueError
            If there is no such node.
        """
        return self._add_condition("if", condition, [body] if otherwise is None else [body, otherwise], after)

    def add_while(self, condition: Condition, body: Graph, *, after: Iterable[int] = ()) -> int:
        """Add a node that runs a graph again and again, each time if the condition is not 0; return its index.

        Raises
        ------
        InvalidValueError
            If nothing in the body can change the condition, or there is no such node.
        NotSupportedError
            As for `add_if`.
        """
        return self._add_condition("while", condition, [body], after)

    def add_switch(self, condition: Condition, bodies: Iterable[Graph], *, after: Iterable[int] = ()) -> int:
        """Add a node that runs the graph whose number the condition is when the node begins; return its index.

        Parameters
        ----------
        condition : Condition
            What the node looks at. If there is no graph of its number, nothing runs.
        bodies : iterable of Graph
            The graphs, counted from 0; as those of `add_if`.
        after : iterable of int
            Indices of nodes that it comes after.

        Raises
        ------
        InvalidValueError
            If there are no graphs, or there is no such node.
        NotSupportedError
            As for `add_if`.
        """
        return self._add_condition("switch", condition, bodies, after)

    def _add_condition(self, kind: str, condition: Condition, bodies: Iterable[Graph], after: Iterable[int]) -> int:
        if not hasattr(condition, "initial"):
            raise TypeError(f"add_{kind}() takes a halstream Condition, not {type(condition).__name__}")
        inner = [_checked(body, Graph, f"add_{kind}")._id for body in bodies]
        initial, word = condition.initial, condition.ptr
        args = str(inner), indices_of(after), word, initial or 0, initial is not None
        return int(_native.graph_condition(self._id, kind, *args))

    def add_edge(self, before: int, after: int) -> None:
        """Make one node come after another one.

        Raises
        ------
        InvalidValueError
            If there is no such node, or the edge exists or would close a cycle.
        """
        _native.graph_edge(self._id, index_of(before), index_of(after))

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
        """Give the graph up; executables of it and their launches go on. Closing again does nothing.

        Raises
        ------
        HalError
            If the capture of the graph has not ended.
        """
        if not hasattr(self, "_failed"):
            _native.close(self._id)


class GraphExec(Uncopied):
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

    @repr_after_fork
    def __repr__(self) -> str:
        try:
            count = int(_native.executable_nodes(self._owner.ident))
        except ClosedError:
            return "<halstream.GraphExec, closed>"
        return f"<halstream.GraphExec of {count} node{'' if count == 1 else 's'}>"

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
        _checked(stream, Stream, "launch")
        try:
            _native.executable_launch(self._owner.ident, stream._id)
        except InvalidValueError:
            drain()  # memory of the graph whose array was collected
            _native.executable_launch(self._owner.ident, stream._id)

    def upload(self, stream: Stream) -> None:
        """Prepare the next launch on a stream, so that it takes no longer than later ones. Nothing runs.

        Raises
        ------
        TypeError
            For anything but a stream of halstream.
        """
        _checked(stream, Stream, "upload")
        _native.executable_upload(self._owner.ident, stream._id)

    def update(self, graph: Graph) -> None:
        """Make later launches run a graph with the same kinds of nodes and the same edges.

        Raises
        ------
        CaptureError
            If it differs in more; the text says in what. Nothing changes then.
        """
        _native.executable_update(self._owner.ident, _checked(graph, Graph, "update")._id)

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
        where = int(_native.executable_node_device(self._owner.ident, index_of(index)))
        stream = object.__new__(Stream)
        stream._attach(_native.executable_node_builder(self._owner.ident, index), where)
        try:
            enqueue(stream)
        except BaseException:
            with contextlib.suppress(HalError):
                _native.graph_unbuilt(stream._id)
            raise
        _native.executable_node_built(self._owner.ident, stream._id, index)

    def close(self) -> None:
        """Give it up; launches that were enqueued still run. Closing again does nothing."""
        _native.close(self._owner.ident)


def _checked(value: Any, kind: type, operation: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{operation}() takes a halstream {kind.__name__}, not {type(value).__name__}")
    return value
