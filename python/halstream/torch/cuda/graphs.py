"""torch.cuda.graphs (2.15): work that is captured once, and replayed."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ..._runtime import runtime
from .._errors import error
from .._errors import not_built as _not_built
from . import memory
from ._captured import GRAPH_MODES, CapturedGraph, current_capture, pool_handle
from ._devices import is_current_stream_capturing, synchronize
from ._guards import current_stream, stream
from .streams import Stream

__all__ = ["CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"]

_numbers = runtime.keep("the numbers of torch's hooks of graphs", itertools.count())


def graph_pool_handle() -> tuple[int, int]:
    """torch.cuda.graph_pool_handle (2.15): a fresh number. Graphs share the memory of a `MemPool` only."""
    return pool_handle()


class _RemovableHandle:
    """torch.utils.hooks.RemovableHandle (2.15): removes what was registered."""

    __module__ = "halstream.torch.utils.hooks"

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        self.id = next(_numbers)

    def remove(self) -> None:
        """Remove it; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> _RemovableHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


class _Retained:
    """What one capture of a graph keeps and calls when it ends; it does not know the graph."""

    def __init__(self) -> None:
        self.callbacks: dict[int, Callable[[], object]] = {}
        self.objects: dict[int, object] = {}
        self.streams: set[Stream] = set()  # of replays, where they are to be waited for
        self.waits = False
        self._released = False

    def release(self) -> None:
        """Call the callbacks and drop the objects, once."""
        if self._released:
            return
        self._released = True
        if self.waits:
            for one in self.streams:
                with contextlib.suppress(Exception):
                    one.synchronize()
        for callback in list(self.callbacks.values()):
            with contextlib.suppress(Exception):  # one that fails must not keep the others from running
                callback()
        self.callbacks.clear()
        self.objects.clear()


def _refusal(name: str) -> BaseException:
    """Return the error of what is not built: conditional nodes, generators and node data of graphs."""
    return error("not_supported", f"torch.cuda.CUDAGraph.{name} is not built yet")


class CUDAGraph(CapturedGraph):
    """torch.cuda.CUDAGraph (2.15): the work of one capture, which `replay` enqueues.

    Differences: the raw graphs are numbers of this runtime; `check_input_liveness` watches nothing, for there are no
    tensors; memory that is allocated in a capture is that graph's own, also where graphs have one pool, unless that
    is a `MemPool`.
    """

    def __new__(cls, keep_graph: bool = False) -> CUDAGraph:
        return object.__new__(cls)

    def __init__(self, keep_graph: bool = False) -> None:
        super().__init__(keep_graph)
        self._start_hooks: dict[int, Callable[[CUDAGraph], object]] = {}
        self._end_hooks: dict[int, Callable[[CUDAGraph], object]] = {}
        self._instantiate_hooks: dict[int, Callable[[CUDAGraph], object]] = {}
        self._replay_start_hooks: dict[int, Callable[[CUDAGraph], object]] = {}
        self._replay_end_hooks: dict[int, Callable[[CUDAGraph], object]] = {}
        self._retain()

    def _retain(self) -> None:
        self._retained = _Retained()
        self._finalizer = weakref.finalize(self, self._retained.release)

    def capture_begin(
        self, pool: Any = None, capture_error_mode: str = "global", check_input_liveness: bool = False
    ) -> None:
        """Begin to capture the current stream, which is not to be a default stream."""
        self._begin(pool, capture_error_mode, GRAPH_MODES)
        self._call(self._start_hooks)

    def capture_end_pre(self) -> None:
        """End the capture; the graph can be looked at until `capture_end_post`."""
        self._end()

    def capture_end_post(self) -> None:
        """Give up the graph, unless it is to be kept."""
        self._finish()

    def capture_end(self) -> None:
        """End the capture, and instantiate the graph unless it is to be kept."""
        self.capture_end_pre()
        self._call(self._end_hooks)
        if not self._keep_graph:
            self.instantiate()
        self.capture_end_post()

    def instantiate(self) -> None:
        """Make an executable of the graph as it is now."""
        self._instantiate()
        self._call(self._instantiate_hooks)

    def replay(self) -> None:
        """Enqueue the captured work on the current stream."""
        if self._retained.waits:
            self._retained.streams.add(current_stream())
        if self._ended and self._run is None:
            self.instantiate()
        if not self._replay_start_hooks and not self._replay_end_hooks:  # as nearly always
            self._replay()
            return
        self._call(self._replay_start_hooks)
        try:
            self._replay()
        finally:
            self._call(self._replay_end_hooks)

    def reset(self) -> None:
        """Give up what was captured, so that this object can capture again."""
        self._retained.release()
        self._finalizer.detach()
        self._retain()
        self._reset()

    def pool(self) -> tuple[int, int]:
        """Return the number of the pool that the capture was given, or one of its own."""
        return self._pool_of()

    def pools(self) -> list[tuple[int, int]]:
        """Return the numbers of all pools: that of `pool`, and those of `use_mem_pool` in the capture."""
        return self._pools_of()

    def enable_debug_mode(self) -> None:
        """Keep the graph after the end of its capture."""
        self._keep_graph = True

    def debug_dump(self, debug_path: Any, *, verbose: bool = True) -> None:
        """Write the graph in the language of graphviz; what is verbose has what the nodes work on."""
        self._dump(debug_path, verbose)

    def raw_cuda_graph(self) -> int:
        """Return the number of the graph, which is to be kept."""
        return self._raw()

    def raw_cuda_graph_exec(self) -> int:
        """Return the number of the executable."""
        return self._raw_exec()

    def register_capture_start_hook(self, hook: Callable[[CUDAGraph], object]) -> _RemovableHandle:
        """Have ``hook(graph)`` called when a capture has begun."""
        return _register(self._start_hooks, hook)

    def register_capture_end_hook(self, hook: Callable[[CUDAGraph], object]) -> _RemovableHandle:
        """Have ``hook(graph)`` called when a capture has ended, while its graph is there."""
        return _register(self._end_hooks, hook)

    def register_post_instantiate_hook(self, hook: Callable[[CUDAGraph], object]) -> _RemovableHandle:
        """Have ``hook(graph)`` called after each instantiation."""
        return _register(self._instantiate_hooks, hook)

    def register_replay_start_hook(self, hook: Callable[[CUDAGraph], object]) -> _RemovableHandle:
        """Have ``hook(graph)`` called before each replay is enqueued; one that raises ends the replay."""
        return _register(self._replay_start_hooks, hook)

    def register_replay_end_hook(self, hook: Callable[[CUDAGraph], object]) -> _RemovableHandle:
        """Have ``hook(graph)`` called after each replay was enqueued, also if that failed."""
        return _register(self._replay_end_hooks, hook)

    def register_destroy_callback(
        self, cb: Callable[[], object], *, synchronize_before_release: bool = False
    ) -> _RemovableHandle:
        """Have ``cb()`` called once, at `reset` or when this object is collected; its exceptions are ignored."""
        self._retained.waits |= synchronize_before_release
        return _register(self._retained.callbacks, cb)

    def retain_object(self, obj: object, *, synchronize_before_release: bool = False) -> _RemovableHandle:
        """Keep an object until `reset`, or until this object is collected."""
        self._retained.waits |= synchronize_before_release
        return _register(self._retained.objects, obj)

    @staticmethod
    def get_currently_capturing_graph() -> CUDAGraph:
        """Return the graph whose capture the current stream takes part in."""
        found = current_capture()
        if not isinstance(found, CUDAGraph):
            raise RuntimeError("The capture of the current stream was not begun by capture_begin() of a CUDAGraph")
        return found

    def begin_capture_to_if_node(self, scalar_cuda_pred_tensor: Any) -> None:
        """Raise: there are no tensors, whose element would be the condition. See `halstream.Graph.add_if`."""
        raise _refusal("begin_capture_to_if_node")

    def begin_capture_to_while_node(self, scalar_cuda_pred_tensor: Any) -> None:
        """Raise: there are no tensors, whose element would be the condition. See `halstream.Graph.add_while`."""
        raise _refusal("begin_capture_to_while_node")

    def end_capture_to_conditional_node(self) -> None:
        """Raise: conditional nodes are not built."""
        raise _refusal("end_capture_to_conditional_node")

    def set_conditional_handle_for_current_node(self, scalar_cuda_pred_tensor: Any) -> None:
        """Raise: conditional nodes are not built."""
        raise _refusal("set_conditional_handle_for_current_node")

    def get_graph_data(self) -> dict[str, Any]:
        """Raise: data of nodes are not built. See `halstream.Graph.nodes`."""
        raise _refusal("get_graph_data")

    def register_generator_state(self, Generator: Any) -> None:
        """Raise: there are no generators, whose random numbers a graph would draw."""
        raise _refusal("register_generator_state")

    def _call(self, hooks: dict[int, Callable[[CUDAGraph], object]]) -> None:
        for hook in list(hooks.values()):
            hook(self)


def _register(hooks: dict[int, Any], value: Any) -> _RemovableHandle:
    handle = _RemovableHandle(hooks)
    hooks[handle.id] = value
    return handle


class graph:
    """torch.cuda.graph (2.15): captures what its block enqueues on the current stream into a `CUDAGraph`.

    The device is synchronized and its cache emptied first, as in torch.
    """

    default_capture_stream: Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        annotation_config: dict[str, Any] | None = None,
        check_input_liveness: bool = False,
    ) -> None:
        if enable_annotations:
            raise NotImplementedError("annotations of captured kernels are not built in halstream: leave them out")
        if stream is None:
            own = type(self).default_capture_stream
            if own is None or own.closed:
                type(self).default_capture_stream = own = Stream()
            stream = own
        self.pool: tuple[()] | tuple[Any] = () if pool is None else (pool,)
        self.capture_stream = stream
        self.cuda_graph = cuda_graph
        self.capture_error_mode = capture_error_mode
        self.check_input_liveness = check_input_liveness
        self.stream_ctx = _stream(stream)

    def __enter__(self) -> None:
        synchronize()
        memory.empty_cache()
        self.stream_ctx.__enter__()
        # If this raises, the stream stays current, as in torch.
        self.cuda_graph.capture_begin(
            self.pool[0] if self.pool else None, self.capture_error_mode, self.check_input_liveness
        )

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.cuda_graph.capture_end()
        finally:
            self.stream_ctx.__exit__(kind, value, trace)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
    capture_error_mode: str = "global",
    enable_annotations: bool = False,
) -> Any:
    """torch.cuda.make_graphed_callables (2.15): functions whose work each call replays.

    A function is called with its samples, some times to warm up and once in a capture. What is returned for it copies
    its arguments into the samples, where they are other arrays, replays the graph on the current stream, and returns
    what the function returned in the capture: the same arrays in each call, with new contents.

    Differences: arguments and results are arrays of halstream, as there are no tensors. Those have no gradients, so
    that nothing is captured for a backward pass, and `allow_unused_input`, which is about gradients, has no effect.

    Parameters
    ----------
    callables : callable or tuple of callables
        Functions that enqueue their work on the current stream. The graphs of a tuple are captured in its order.
    sample_args : tuple, or tuple of tuples
        Arguments for each: arrays, also in tuples, lists and dicts.
    num_warmup_iters : int
        How often each is called before the capture.
    allow_unused_input : bool
    pool : MemPool, tuple of two int, or None
        What the captures allocate from; None is a pool for them.
    capture_error_mode : str
    enable_annotations : bool
        True is refused.

    Raises
    ------
    AssertionError
        If a sample is no array.
    TypeError
        If a function returned something else than arrays.
    """
    from ._graphed import check_samples, graphed

    just_one = not isinstance(callables, tuple)
    functions, samples = ((callables,), (sample_args,)) if just_one else (callables, sample_args)
    for args in samples[: len(functions)]:
        check_samples(args)
    handle = graph_pool_handle() if pool is None else pool
    synchronize()
    side = Stream()
    with _stream(side):
        for function, args in zip(functions, samples, strict=False):  # as in torch
            for _ in range(num_warmup_iters):
                function(*args)
    synchronize()
    made = []
    for function, args in zip(functions, samples, strict=False):  # as in torch
        captured = CUDAGraph()
        with graph(
            captured,
            pool=handle,
            stream=side,
            capture_error_mode=capture_error_mode,
            enable_annotations=enable_annotations,
        ):
            outputs = function(*args)
        made.append(graphed(captured.replay, args, outputs))
    return made[0] if just_one else tuple(made)


#: The name is that of a parameter above.
_stream = stream

__getattr__: Callable[[str], Any] = _not_built(__name__)
