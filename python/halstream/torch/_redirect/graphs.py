"""torch.cuda.CUDAGraph and torch.cuda.MemPool: torch's own source over base classes that only a CUDA build has."""

from __future__ import annotations

import contextlib
import functools
import itertools
import warnings
import weakref
from pathlib import Path
from typing import Any, NoReturn

from ... import _native
from ..._core import _capture, _graph
from ..._errors import HalError
from ..._runtime import collected
from .classes import executed, raising
from .errors import NotBuiltError
from .patches import Patches

__all__ = ["patch"]

_ALLOCATE = ("_cuda_beginAllocateToPool", "_cuda_beginAllocateCurrentThreadToPool")
_CONDITIONAL = "conditional nodes of CUDA graphs are not built in halstream: decide on the host which graph to replay"
_EMPTY = (
    "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or stream."
)
Pool = tuple[int, int]


def patch(torch: Any, module: Any, patches: Patches) -> None:
    """Replace the names of graphs and of pools in torch.cuda and torch._C."""
    native, cuda = torch._C, torch.cuda
    classes = _Classes(torch, module)
    names: dict[str, Any] = {
        "_CUDAGraph": classes.graph, "_acceleratorGraph": classes.accelerator, "_MemPool": classes.pool,
        "_graph_pool_handle": classes.handle,
        "_cuda_isCurrentStreamCapturing": lambda: module.current_capture() != 0,
        **dict.fromkeys(_ALLOCATE, module.pool_begin),
        "_cuda_endAllocateToPool": module.pool_end, "_cuda_releasePool": module.pool_release,
    }  # fmt: skip
    for name, value in names.items():
        patches.set(native, name, value)
        if name.startswith("_cuda_") and hasattr(cuda.memory, name):
            patches.set(cuda.memory, name, value)
    made = executed(torch, module, "torch.cuda.graphs")
    made.__dict__["_dump_graph_dot"] = lambda graph, path, verbose=True: graph._write_dot(path, verbose)
    for name in made.__all__:
        for owner in (cuda, cuda.graphs):
            if hasattr(owner, name):
                patches.set(owner, name, getattr(made, name))
    for owner in (cuda, cuda.memory):
        patches.set(owner, "MemPool", classes.pool)
    if hasattr(torch.accelerator, "Graph"):
        graph = executed(torch, module, "torch.accelerator.graphs").Graph
        for owner in (torch.accelerator, torch.accelerator.graphs):
            patches.set(owner, "Graph", graph)


class _Held:
    """What a graph holds until it is reset or collected: pools of memory, and the numbers of its capture."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.pools: list[tuple[int, Pool]] = []
        self.capture = 0
        self.stream = 0  # the runtime's number of the stream that captures

    def release(self) -> None:
        """Give all of it up."""
        pools, self.pools = self.pools, []
        capture, self.capture = self.capture, 0
        stream, self.stream = self.stream, 0
        if stream:  # nobody could end the capture any more
            collected.note(stream)
            self._module.capture_ended(capture)
        if capture:
            self._module.capture_forgotten(capture)
        for device, pool in pools:
            self._module.pool_release(device, pool)


class _Classes:
    """The base classes, and the numbers that they give to pools."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._handles = itertools.count(1)
        self.captures = itertools.count(1)
        self.graph = _graph_class(torch, module, self.captures)
        self.accelerator = _accelerator_class(self.graph)
        self.pool = _pool_class(torch._C, module, self)

    def handle(self) -> Pool:
        """Return the number of a pool that there was not before."""
        return 0, next(self._handles)


class _Capturing:
    """A stream of the runtime by its number, for functions that capture."""

    def __init__(self, number: int) -> None:
        self._id = number


def _graph_class(torch: Any, module: Any, captures: itertools.count[int]) -> type:
    """Return what stands for torch._C._CUDAGraph."""
    capturing: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    failing = functools.partial(raising, torch)

    class _CUDAGraph:
        """The work of one capture of the current stream, which replays enqueue."""

        __module__ = "torch._C"

        _generators: list[Any]
        _held: _Held

        def __new__(cls, keep_graph: bool = False) -> Any:
            new = super().__new__(cls)
            new._keeps = bool(keep_graph)
            new._generators = []
            new._held = _Held(module)
            weakref.finalize(new, new._held.release).atexit = False
            new._clear()
            return new

        def _clear(self) -> None:
            self._stream: int | None = None  # the runtime's number of the stream that captures
            self._made: Any = None
            self._run: Any = None
            self._pool: Pool | None = None
            self._device = 0
            self._complete = False

        def register_generator_state(self, generator: Any) -> None:
            """Let random operators of the capture draw from a generator."""
            self._generators.append(generator)

        def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "global") -> None:
            """Capture the current stream."""
            if self._complete or self._stream is not None:
                raise RuntimeError(
                    "This CUDAGraph instance already owns a captured graph. "
                    "To capture a new graph, create a new instance, or call reset() first."
                )
            if capture_error_mode not in _capture.MODES:
                raise RuntimeError(
                    "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got "
                    f"{capture_error_mode}"
                )
            if torch.cuda.current_stream().stream_id == 0:
                raise RuntimeError(
                    "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to "
                    "replay them on the default stream.)"
                )
            self._stream, self._device = module.runtime_stream(), module._cuda_getDevice()
            self._pool = (next(captures), 0) if pool is None else (pool[0], pool[1])
            mode = _capture.MODES.index(capture_error_mode)
            try:
                failing(lambda: _capture.begin(_Capturing(self._stream), mode))  # type: ignore[arg-type]
            except BaseException:
                self._clear()
                raise
            try:
                self._held.capture = module.capture_begun(self._generators, self._device, self._pool)
            except BaseException:
                _capture.end(_Capturing(self._stream))  # type: ignore[arg-type]
                self._clear()
                raise
            self._held.stream = self._stream
            self._held.pools.append((self._device, self._pool))
            capturing[self._held.capture] = self

        def capture_end(self) -> None:
            """End the capture; afterwards the graph can be replayed."""
            self.capture_end_pre()
            if not self._keeps:
                self.instantiate()
            self.capture_end_post()

        def capture_end_pre(self) -> None:
            """End the capture; the graph stays until capture_end_post."""
            if self._stream is None:
                raise RuntimeError("CUDA error: capture_end() was called, and no capture is underway on this graph")
            if module.runtime_stream() != self._stream:
                raise RuntimeError("Capture must end on the same stream it began on.")
            stream, self._stream = self._stream, None
            self._held.stream = 0
            capturing.pop(self._held.capture, None)
            module.capture_ended(self._held.capture)
            made = object.__new__(_graph.Graph)
            made._owner = failing(lambda: _capture.end(_Capturing(stream)))  # type: ignore[arg-type]
            self._made, self._complete = made, True
            if not made.nodes:
                warnings.warn(_EMPTY, UserWarning, stacklevel=2)

        def capture_end_post(self) -> None:
            """Give up the graph of which only the executable is used."""
            if not self._keeps:
                self._made = None

        @property
        def _has_graph_exec(self) -> bool:
            return self._run is not None

        def instantiate(self) -> None:
            """Make what replays run."""
            if not self._complete:
                raise RuntimeError("capture_end() must have been called before calling instantiate")
            if self._made is None:
                raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
            self._run = failing(self._made.instantiate)

        def replay(self) -> None:
            """Enqueue the captured work on the current stream."""
            if not self._complete:
                raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
            if self._run is None:
                self.instantiate()
            module.replay_draws(self._held.capture)
            failing(lambda: _native.executable_launch(self._run._owner.ident, module.runtime_stream()))

        def reset(self) -> None:
            """Give up what was captured; replays that were enqueued still run."""
            if self._stream is not None:
                module.capture_ended(self._held.capture)
                with contextlib.suppress(HalError):  # an invalid capture has no graph
                    _capture.end(_Capturing(self._stream))  # type: ignore[arg-type]
            self._clear()
            self._held.stream = 0
            self._held.release()

        def pool(self) -> Pool:
            """Return the number of the pool of memory."""
            if not self._complete or self._pool is None:
                raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
            return self._pool

        def pools(self) -> list[Pool]:
            """Return the numbers of all pools that the graph holds."""
            return [pool for _, pool in self._held.pools]

        def _retain_pool(self, pool: Pool) -> None:
            held = self._device, (pool[0], pool[1])
            if held not in self._held.pools:
                module.pool_add_user(*held)
                self._held.pools.append(held)

        def enable_debug_mode(self) -> None:
            """Keep the graph after the capture, for debug_dump."""
            self._keeps = True

        def _write_dot(self, path: Any, verbose: bool = True) -> None:
            self.raw_cuda_graph()
            Path(path).write_text(self._made.dot(details=verbose), encoding="utf-8")

        def debug_dump(self, path: Any) -> None:
            """Write the graph in the language of graphviz."""
            self._write_dot(path)

        def raw_cuda_graph(self) -> int:
            """Return the runtime's number of the graph."""
            if self._made is None:
                raise RuntimeError(
                    "You cannot access the raw cudaGraph_t instance "
                    + ("until capture_end() has been called" if self._keeps else
                       "unless CUDAGraph was initialized with keep_graph=true")
                )  # fmt: skip
            return int(self._made._id)

        def raw_cuda_graph_exec(self) -> int:
            """Return the runtime's number of the executable."""
            if self._run is None:
                raise RuntimeError(
                    "You cannot access the raw cudaGraphExec_t instance until instantiate() has been called"
                )
            return int(self._run._owner.ident)

        @staticmethod
        def get_currently_capturing_graph() -> Any:
            """Return the graph whose capture the current stream takes part in."""
            found = capturing.get(module.current_capture())
            if found is None:
                raise RuntimeError("the current stream takes part in no capture of a torch.cuda.CUDAGraph")
            return found

        def _conditional(self, *args: Any) -> NoReturn:
            raise NotBuiltError(_CONDITIONAL)

        begin_capture_to_if_node = begin_capture_to_while_node = _conditional
        end_capture_to_conditional_node = set_conditional_handle_for_current_node = _conditional

    return _CUDAGraph


def _accelerator_class(graph: type) -> type:
    """Return what stands for torch._C._acceleratorGraph."""

    class _acceleratorGraph(graph):  # type: ignore[misc]
        """A graph of torch.accelerator."""

        __module__ = "torch._C"

        def __init__(self, keep_graph: bool = False) -> None:
            pass  # __new__ has taken it

        def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "default") -> None:
            """Capture the current stream."""
            super().capture_begin(pool, "global" if capture_error_mode == "default" else capture_error_mode)

    return _acceleratorGraph


def _pool_class(native: Any, module: Any, classes: _Classes) -> type:
    """Return what stands for torch.cuda.MemPool."""

    class MemPool:
        """Device memory that only the allocations within `torch.cuda.use_mem_pool` get.

        Parameters
        ----------
        allocator : None
            Memory comes from halstream; another allocator cannot be given.
        use_on_oom, no_split : bool
            Accepted and without effect.
        """

        __module__ = "torch.cuda.memory"

        def __init__(self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False) -> None:
            if allocator is not None:
                raise NotBuiltError(
                    "MemPool takes no allocator in halstream: memory comes from halstream's pools; leave it out"
                )
            self._id = classes.handle()
            self._device = module._cuda_getDevice()
            module.pool_add_user(self._device, self._id)
            weakref.finalize(self, module.pool_release, self._device, self._id).atexit = False

        @property
        def id(self) -> Pool:
            """The number of the pool."""
            return self._id

        @property
        def allocator(self) -> None:
            """None: memory comes from halstream."""
            return

        def use_count(self) -> int:
            """Return how many users the pool has: this object, blocks of use_mem_pool, and graphs."""
            return int(module.pool_users(self._device, self._id))

        def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
            """Return the segments of the pool, as `torch.cuda.memory_snapshot` does; events are no part of them."""
            return list(native._cuda_memorySnapshot((*self._id, include_traces))["segments"])

    return MemPool
