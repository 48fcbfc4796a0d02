"""GraphBuilder, which captures a graph, and Graph, which is launched."""

from __future__ import annotations

import contextlib
import ctypes
import os
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ...._core import _capture, _graph
from ...._core._base import Uncopied
from ...._core._strict import strict
from ...._dialects._adapt import raising
from ...._errors import HalError, NotSupportedError
from .._arguments import checked, missing_method, missing_property
from .._errors import ERRORS, closed, failure
from .._stream import Recorder, Stream, checked_stream

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphDebugPrintOptions"]

_OPERATING_SYSTEM = 304
_UNFINISHED = "Graph has not finished building."

_begin, _end = raising(ERRORS)(_capture.begin), raising(ERRORS)(_capture.end)


@dataclass
class GraphCompleteOptions:
    """cuda.core.graph.GraphCompleteOptions (1.2.2).

    Differences: nodes have no priorities of their own, and `device_launch` is not built.
    """

    auto_free_on_launch: bool = False
    upload_stream: Stream | None = None
    device_launch: bool = False
    use_node_priority: bool = False


@dataclass
class GraphDebugPrintOptions:
    """cuda.core.graph.GraphDebugPrintOptions (1.2.2); each of them adds all that there is to say of the nodes."""

    verbose: bool = False
    runtime_types: bool = False
    kernel_node_params: bool = False
    memcpy_node_params: bool = False
    memset_node_params: bool = False
    host_node_params: bool = False
    event_node_params: bool = False
    ext_semas_signal_node_params: bool = False
    ext_semas_wait_node_params: bool = False
    kernel_node_attributes: bool = False
    handles: bool = False
    mem_alloc_node_params: bool = False
    mem_free_node_params: bool = False
    batch_mem_op_node_params: bool = False
    extra_topo_info: bool = False
    conditional_node_params: bool = False


class _OfOpenBuilders:
    """`stream`: an ordinary attribute of a builder that is open, and the error of one that was closed."""

    def __get__(self, builder: Any, owner: type) -> Any:
        if builder is None:
            return self
        raise closed("GraphBuilder")


class GraphBuilder(Recorder, Uncopied):
    """cuda.core.graph.GraphBuilder (1.2.2): what is enqueued on it becomes a graph.

    Differences: the graph keeps the memory of its buffers. Conditions and `graph_definition` are not built.
    """

    def __init__(self) -> None:
        raise NotImplementedError(
            "directly creating a GraphBuilder object can be ambiguous. Please either call "
            "Device.create_graph_builder() or stream.create_graph_builder()"
        )

    if not TYPE_CHECKING:
        stream = _OfOpenBuilders()
    _primary: GraphBuilder | None  # that a builder of `split` belongs to
    _building: bool
    _built: _graph.Graph | None  # once the building has ended
    _given_up: bool

    @classmethod
    def _on(cls, stream: Stream, primary: GraphBuilder | None = None) -> GraphBuilder:
        new = object.__new__(cls)
        new.stream, new._primary, new._built = stream, primary, None
        new._building, new._given_up = primary is not None, False
        return new

    def _open(self) -> None:
        if self._given_up:
            raise closed("GraphBuilder")

    def _finished(self, error: type[Exception] = RuntimeError, text: str = _UNFINISHED) -> _graph.Graph:
        """Return the graph that was built."""
        self._open()
        if self._built is None:
            raise error(text)
        return self._built

    @property
    def is_join_required(self) -> bool:
        """True for a builder of `split`, whose work has to be joined before the end."""
        self._open()
        return self._primary is not None

    @property
    def is_closed(self) -> bool:
        """True after `close`, and of a builder that was joined."""
        return self._given_up

    @property
    def is_building(self) -> bool:
        """True between begin and end; RuntimeError if an error has invalidated the capture."""
        self._open()
        if not self._building:
            return False
        if self.stream._capture_state("is_building") == 2:
            raise RuntimeError(
                "Build process encountered an error and has been invalidated. Build process must now be ended."
            )
        return True

    def __cuda_stream__(self) -> tuple[int, int]:
        return self.stream.__cuda_stream__()

    # -- building -------------------------------------------------------------

    def begin_building(self, mode: str | None = "relaxed") -> GraphBuilder:
        """Capture from now on what is enqueued on the builder."""
        self._open()
        if self._building:
            raise RuntimeError("Graph builder is already building.")
        if self._built is not None:
            raise RuntimeError("Cannot resume building after building has ended.")
        if mode not in _capture.MODES:
            raise ValueError(f"Unsupported build mode: {mode}")
        _begin(self.stream, _capture.MODES.index(mode))
        self._building = True
        return self

    def end_building(self) -> GraphBuilder:
        """End the capture."""
        self._open()
        if not self._building:
            raise RuntimeError("Graph builder is not building.")
        if self._primary is not None:
            raise RuntimeError("a builder of split() cannot end the building: join() it with the first one")
        self._building = False
        graph = object.__new__(_graph.Graph)
        graph._owner = _end(self.stream)
        self._built = graph
        return self

    def split(self, count: int) -> tuple[GraphBuilder, ...]:
        """Return builders for branches, this one first; what they capture comes after what it has captured so far."""
        self._open()
        wanted = checked(count, int, "count")
        if wanted < 2:
            raise ValueError(f"Invalid split count: expecting >= 2, got {wanted}")
        if not self._building:
            raise RuntimeError("Graph builder must be building before it can be split.")
        event = self.stream.record()
        found = [self]
        for _ in range(wanted - 1):
            stream = Stream._new(self.stream._ordinal, None)
            stream.wait(event)
            found.append(GraphBuilder._on(stream, self._primary or self))
        return tuple(found)

    @staticmethod
    def join(*graph_builders: GraphBuilder) -> GraphBuilder:
        """Return one of the builders, the first one if it is there: what it captures comes after all of them."""
        if not all(isinstance(builder, GraphBuilder) for builder in graph_builders):
            raise TypeError("All arguments must be GraphBuilder instances")
        if len(graph_builders) < 2:
            raise ValueError("Must join with at least two graph builders")
        for builder in graph_builders:
            builder._open()
        root = next((one for one in graph_builders if one._primary is None), graph_builders[0])
        for builder in graph_builders:
            if builder is not root:
                root.stream.wait(builder.stream)
                builder._building = False
                builder.close()
        return root

    def callback(self, fn: Any, *, user_data: Any = None) -> None:
        """Have the graph call a function without arguments, or a C function with data."""
        self._open()
        if not self._building:
            raise RuntimeError("Cannot add callback when graph is not being built")
        if not callable(fn):
            raise TypeError(f"callback must be callable, got {type(fn).__name__}")
        if isinstance(fn, ctypes._CFuncPtr):  # type: ignore[attr-defined]
            _check_prototype(fn)
            self.stream.call_native(fn, _data(user_data))
        elif user_data is not None:
            raise ValueError("user_data is only supported with ctypes function pointers")
        else:
            self.stream.call(fn)

    def embed(self, child: GraphBuilder) -> None:
        """Make the graph of another builder, as it is now, a node."""
        self._open()
        graph = checked(child, GraphBuilder, "child")._finished(ValueError, "Child graph has not finished building.")
        if not self._building:
            raise RuntimeError("Graph builder is not building.")
        _launched(_instantiated(graph), self.stream)

    create_condition = missing_method("cuda.core.graph.GraphBuilder.create_condition")
    if_then = missing_method("cuda.core.graph.GraphBuilder.if_then")
    if_else = missing_method("cuda.core.graph.GraphBuilder.if_else")
    switch = missing_method("cuda.core.graph.GraphBuilder.switch")
    while_loop = missing_method("cuda.core.graph.GraphBuilder.while_loop")
    graph_definition = missing_property("cuda.core.graph.GraphBuilder.graph_definition")

    # -- the graph --------------------------------------------------------------

    def complete(self, options: GraphCompleteOptions | None = None) -> Graph:
        """Return an executable of the graph."""
        graph = self._finished()
        chosen = GraphCompleteOptions() if options is None else options
        if chosen.device_launch:
            raise NotSupportedError("graphs that kernels launch are not built yet", operation="instantiate")
        made = Graph._of(_instantiated(graph, auto_free=chosen.auto_free_on_launch))
        if chosen.upload_stream is not None:
            made.upload(chosen.upload_stream)
        return made

    def debug_dot_print(self, path: str, options: GraphDebugPrintOptions | None = None) -> None:
        """Write the graph in the language of graphviz to a file."""
        graph = self._finished()
        details = options is not None and any(getattr(options, field.name) for field in fields(options))
        text = graph.dot(details=details)
        try:
            with open(os.fspath(path), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as exc:
            raise failure(_OPERATING_SYSTEM, str(exc)) from exc

    def close(self) -> None:
        """Give the builder up; a capture that goes on is ended, and its executables stay."""
        if self._given_up:
            return
        if self._building and self._primary is None:
            self._building = False
            with contextlib.suppress(HalError):  # nobody asks for this graph any more
                _capture.end(self.stream)
        self._given_up, self._built = True, None
        del self.stream

    def __del__(self) -> None:
        # The capture of a builder that is dropped would go on until its stream is.
        if getattr(self, "_building", False) and self._primary is None:
            self.close()


class Graph(Uncopied):
    """cuda.core.graph.Graph (1.2.2): an executable; made by `GraphBuilder.complete`.

    Differences: `handle` and changes of single nodes are not built; launches of it that overlap wait for one another.
    """

    def __init__(self) -> None:
        raise RuntimeError("directly constructing a Graph instance is not supported")

    _run: _graph.GraphExec | None

    @classmethod
    def _of(cls, run: _graph.GraphExec) -> Graph:
        new = object.__new__(cls)
        new._run = run
        return new

    def _open(self) -> _graph.GraphExec:
        if self._run is None:
            raise closed("Graph")
        return self._run

    handle = missing_property("cuda.core.graph.Graph.handle")

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._run is None

    def launch(self, stream: Stream) -> None:
        """Enqueue a run of the graph."""
        where = checked_stream(stream)
        _launched(self._open(), where)

    def upload(self, stream: Stream) -> None:
        """Prepare the next launch on a stream."""
        where = checked_stream(stream)
        _uploaded(self._open(), where)

    def update(self, source: GraphBuilder) -> None:
        """Make later launches run the graph of another builder, which has the same kinds of nodes and edges."""
        if not isinstance(source, GraphBuilder):
            raise TypeError(f"expected GraphBuilder or GraphDefinition, got {type(source).__name__}")
        graph = source._finished(ValueError)
        _updated(self._open(), graph)

    def close(self) -> None:
        """Give it up; launches that were enqueued still run."""
        if self._run is not None:
            self._run.close()
            self._run = None


_instantiated = raising(ERRORS)(_graph.Graph.instantiate)
_launched, _uploaded = raising(ERRORS)(_graph.GraphExec.launch), raising(ERRORS)(_graph.GraphExec.upload)
_updated = raising(ERRORS)(_graph.GraphExec.update)


def _check_prototype(function: Any) -> None:
    """Refuse a function of ctypes that is no ``void f(void *)``.

    Raises
    ------
    TypeError
        With its prototype, and what to do.
    """
    returns, takes = function.restype, tuple(function.argtypes or ())
    if returns is not None or takes != (ctypes.c_void_p,):
        raise TypeError(
            f"host callback has prototype restype={returns}, argtypes={takes}; CUDA requires a callback matching "
            "CUhostFn (void (*)(void*)), declared as ctypes.CFUNCTYPE(None, ctypes.c_void_p). Alternatively, pass a "
            "Python callable."
        )


def _data(given: Any) -> Any:
    """Return what a C function is given: a number as it is, or a copy of bytes."""
    if given is None or isinstance(given, int):
        return given
    whole = bytes(given)
    return ctypes.create_string_buffer(whole, len(whole))


for _class in (Graph, GraphBuilder, GraphCompleteOptions, GraphDebugPrintOptions):
    _class.__module__ = "halstream.cuda.core.graph"
    strict.add(_class)
Stream._builder_class = GraphBuilder
