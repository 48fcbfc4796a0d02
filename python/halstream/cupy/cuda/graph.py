"""cupy.cuda.graph (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._errors import not_built as _not_built

__all__ = ["Graph"]


class Graph:
    """cupy.cuda.Graph (14.2.0): only capture makes one, and capture is not built yet."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "currently this class cannot be initiated by the user and must be created via stream capture"
        )


__getattr__: Callable[[str], Any] = _not_built(__name__)
