"""torch.accelerator.graphs (2.15): captures of the current stream."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from .._errors import not_built as _not_built
from ..cuda import synchronize
from ..cuda._captured import GRAPH_MODES, CapturedGraph
from .memory import empty_cache, empty_host_cache

__all__ = ["Graph"]

_MODES = {"default": GRAPH_MODES["global"], **GRAPH_MODES}


class Graph(CapturedGraph):
    """torch.accelerator.Graph (2.15): the work that its block enqueues on the current stream, to be replayed.

    Differences: memory that is allocated in a capture is that graph's own, also where graphs have one pool.
    """

    def __new__(
        cls, keep_graph: bool = False, *, pool: tuple[int, int] | None = None, capture_error_mode: str = "default"
    ) -> Graph:
        return object.__new__(cls)

    def __init__(
        self, keep_graph: bool = False, *, pool: tuple[int, int] | None = None, capture_error_mode: str = "default"
    ) -> None:
        super().__init__(keep_graph)
        self.graph_pool = pool
        self.capture_error_mode = capture_error_mode

    def capture_begin(self) -> None:
        """Begin to capture the current stream, which is not to be a default stream."""
        self._begin(self.graph_pool, self.capture_error_mode, _MODES)

    def capture_end(self) -> None:
        """End the capture, and instantiate the graph unless it is to be kept."""
        self._end()
        if not self._keep_graph:
            self._instantiate()
        self._finish()

    def instantiate(self) -> None:
        """Make an executable of the graph as it is now."""
        self._instantiate()

    def replay(self) -> None:
        """Enqueue the captured work on the current stream."""
        self._replay()

    def reset(self) -> None:
        """Give up what was captured, so that this object can capture again."""
        self._reset()

    def pool(self) -> tuple[int, int]:
        """Return the number of the pool that the capture was given, or one of its own."""
        return self._pool_of()

    def enable_debug_mode(self) -> None:
        """Keep the graph after the end of its capture."""
        self._keep_graph = True

    def debug_dump(self, path: Any) -> None:
        """Write the graph in the language of graphviz, with the lines of the program that made the nodes."""
        self._dump(path)

    def __enter__(self) -> None:
        synchronize()
        empty_cache()
        empty_host_cache()
        self.capture_begin()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.capture_end()


__getattr__: Callable[[str], Any] = _not_built(__name__)
