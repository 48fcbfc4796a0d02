"""Programs by shape: each is one function, with a wait, a declaration or a range that is right or wrong."""

from __future__ import annotations

from . import _shapes_functions, _shapes_memory, _shapes_order, _shapes_pipelines, _shapes_ranges, _shapes_threads
from ._shapes_help import Shape

__all__ = ["SHAPES", "Shape"]

SHAPES: tuple[Shape, ...] = (
    *_shapes_functions.SHAPES,
    *_shapes_ranges.SHAPES,
    *_shapes_memory.SHAPES,
    *_shapes_order.SHAPES,
    *_shapes_pipelines.SHAPES,
    *_shapes_threads.SHAPES,
)
