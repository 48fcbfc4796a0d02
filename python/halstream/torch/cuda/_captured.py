"""What graphs of torch.cuda and of torch.accelerator have in common: one capture, and its replays."""

from __future__ import annotations

import contextlib
import itertools
import operator
import sys
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from ... import _native
from ..._core import _current
from ..._core._capture import MODES, begin, end
from ..._core._graph import Graph as CoreGraph
from ..._core._graph import GraphExec
from ..._errors import HalError
from ..._runtime import collected, runtime
from ..._sites import ROOT
from .._errors import dialect_errors, error
from . import _routes
from ._guards import current_stream
from .streams import Stream

__all__ = ["GRAPH_MODES", "CapturedGraph", "current_capture", "pool_handle"]

_EMPTY = (
    "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream."
)

#: Numbers of pools: those of graph_pool_handle count from 1, those of captures likewise.
_handles = runtime.keep("the numbers of torch's pools of graphs", itertools.count(1))
_captures = runtime.keep("the numbers of torch's captures", itertools.count(1))


#: The graphs whose captures are underway, by the numbers of the captures.
_underway: weakref.WeakValueDictionary[int, CapturedGraph] = runtime.keep(
    "the graphs that torch captures", weakref.WeakValueDictionary(), clear=True
)


def current_capture() -> CapturedGraph | None:
    """Return the graph whose capture the current stream takes part in, None if it was begun by nothing of torch.

    Raises
    ------
    RuntimeError
        If the stream does not capture.
    """
    number = _native.stream_capture_id(current_stream()._id)
    if number == 0:
        raise RuntimeError("The current stream is not capturing")
    return _underway.get(number)


def pool_handle() -> tuple[int, int]:
    """Return a fresh number of a pool."""
    return 0, next(_handles)


class _Kept:
    """The pools of the program's that a graph keeps, and the capture that allocates from one; it knows no graph."""

    def __init__(self) -> None:
        self.pools: list[_routes.PoolMemory] = []
        self.capture = 0

    def add(self, memory: _routes.PoolMemory) -> None:
        """Keep a pool."""
        if memory not in self.pools:
            memory.use()
            self.pools.append(memory)

    def capture_ended(self) -> None:
        """End the capture's allocations from a pool."""
        number, self.capture = self.capture, 0
        _routes.capture_ended(number)

    def release(self) -> None:
        """Give up all of it."""
        self.capture_ended()
        pools, self.pools = self.pools, []
        for memory in pools:
            memory.leave()


def _pool_id(pool: Any) -> tuple[int, int]:
    """Return the number of a pool, of which programs give the object or the number."""
    ident = getattr(pool, "id", pool)
    if isinstance(ident, Sequence) and len(ident) == 2:
        with contextlib.suppress(TypeError):
            first, second = map(operator.index, ident)
            if min(first, second) >= 0 and max(first, second) < 1 << 64:
                return first, second
    raise TypeError(
        f"capture_begin(): argument 'pool' is a pair of numbers, as of graph_pool_handle() or MemPool.id, not {pool!r}"
    )


class CapturedGraph:
    """The work of one capture of a stream, which replays enqueue.

    Parameters
    ----------
    keep_graph : bool
        Keep the graph after `capture_end`, to be instantiated on demand.
    """

    def __init__(self, keep_graph: bool = False) -> None:
        if not isinstance(keep_graph, bool):
            raise TypeError(f"keep_graph is a bool, not {type(keep_graph).__name__}")
        self._keep_graph = keep_graph
        self._stream: Stream | None = None  # that captures
        self._graph: CoreGraph | None = None
        self._run: GraphExec | None = None
        self._pool: tuple[int, int] | None = None
        self._kept = _Kept()
        weakref.finalize(self, self._kept.release).atexit = False
        self._ended = False

    def __del__(self) -> None:
        # Nobody could end the capture any more, which would keep default streams from being used.
        stream = getattr(self, "_stream", None)
        if stream is not None and collected is not None:
            collected.note(stream._id)

    def __repr__(self) -> str:
        state = "empty"
        if self._stream is not None:
            state = "capturing"
        elif self._ended:
            state = "captured" if self._run is None else "ready"
        return (
            f"<torch.{type(self).__module__.rpartition('torch.')[2].partition('.')[0]}.{type(self).__name__} {state}>"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object")

    def _begin(self, pool: Any, mode: str, modes: dict[str, int]) -> None:
        """Begin to capture the current stream."""
        if self._graph is not None or self._run is not None or self._stream is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. "
                "To capture a new graph, create a new instance, or call reset() first."
            )
        if mode not in modes:
            names = ", ".join(f"`{name}`" for name in modes)
            raise RuntimeError(f"Unknown capture error mode. Expected one of {names}, got {mode}")
        stream = current_stream()
        if stream.cuda_stream == 0:
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. "
                "(However, after capture, it's ok to replay them on the default stream.)"
            )
        pool_id = (next(_captures), 0) if pool is None else _pool_id(pool)
        _begun(stream, modes[mode])
        self._stream = stream
        number = self._kept.capture = _native.stream_capture_id(stream._id)
        _underway[number] = self
        self._pool = pool_id
        memory = _routes.pool_with_id(pool_id)
        if memory is not None:
            self._keep_pool(memory)
            _routes.capture_began(number, memory)

    def _keep_pool(self, memory: _routes.PoolMemory) -> None:
        """Keep a pool of the program's until the graph is reset or collected."""
        self._kept.add(memory)

    def _end(self) -> None:
        """End the capture; the graph is there then."""
        stream = self._stream
        if stream is None:
            raise error("capture", "capture_end() was called, and no capture is underway")
        if current_stream() != stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        self._stream = None
        self._kept.capture_ended()
        self._graph = _ended(stream)
        self._ended = True
        if not _native.graph_size(self._graph._id):
            warnings.warn(_EMPTY, UserWarning, stacklevel=_depth())

    def _finish(self) -> None:
        """Give up the graph of which only the executable is used."""
        if not self._keep_graph:
            self._graph = None

    def _instantiate(self) -> None:
        if not self._ended:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._graph is None:
            raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
        # As in torch: what the graph has allocated stays usable until the next replay, which uses it again.
        self._run = self._graph.instantiate(auto_free=True)

    def _replay(self) -> None:
        """Enqueue the captured work on the current stream."""
        if not self._ended:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if self._run is None:
            self._instantiate()
        assert self._run is not None
        device = _current.current_device()
        stream = _current.current_stream(device)
        if type(stream) is not Stream:
            stream = Stream._current(device)
        try:
            self._run.launch(stream)
        except HalError as exc:
            _raised(exc)

    def _reset(self) -> None:
        """Give up what was captured; replays that were enqueued still run."""
        if self._stream is not None:
            stream, self._stream = self._stream, None
            _ended(stream)
        self._graph = self._run = self._pool = None
        self._kept.release()
        self._ended = False

    def _pools_of(self) -> list[tuple[int, int]]:
        """Return the number of the pool of the capture and those of pools that were used in it."""
        first = self._pool_of()
        return [first, *(one.ident for one in self._kept.pools if one.ident != first)]

    def _pool_of(self) -> tuple[int, int]:
        if not self._ended or self._pool is None:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool

    def _raw(self) -> int:
        """Return the number of the graph."""
        if self._graph is None:
            if not self._keep_graph:
                raise RuntimeError(
                    "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with "
                    "keep_graph=true"
                )
            raise RuntimeError("You cannot access the raw cudaGraph_t instance until capture_end() has been called")
        return self._graph._id

    def _raw_exec(self) -> int:
        """Return the number of the executable."""
        if self._run is None:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance until instantiate() has been called")
        return self._run._owner.ident

    def _dump(self, path: Any, details: bool = False) -> None:
        """Write the graph in the language of graphviz; with `details` nodes have what they work on."""
        if self._graph is None:
            self._raw()
        assert self._graph is not None
        Path(path).write_text(self._graph.dot(details=details), encoding="utf-8")


def _depth() -> int:
    """Return how far out the first frame of the program is, for a warning of the function that calls this."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(ROOT):
        depth, frame = depth + 1, frame.f_back
    return depth


#: Numbers of the modes of captures.
GRAPH_MODES: dict[str, int] = {name: number for number, name in enumerate(MODES)}


@dialect_errors
def _begun(stream: Stream, mode: int) -> None:
    begin(stream, mode)


@dialect_errors
def _ended(stream: Stream) -> CoreGraph:
    graph = object.__new__(CoreGraph)
    graph._owner = end(stream)
    return graph


@dialect_errors
def _raised(exc: HalError) -> NoReturn:
    raise exc
