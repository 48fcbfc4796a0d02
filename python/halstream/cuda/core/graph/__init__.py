"""cuda.core.graph (1.2.2): graphs that are captured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dialects._not_built import not_built
from ._graph_builder import Graph, GraphBuilder, GraphCompleteOptions, GraphDebugPrintOptions

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphDebugPrintOptions"]

__getattr__: Callable[[str], Any] = not_built(__name__)
