"""cuda.core.typing (1.2.2): the protocol of streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..._dialects._not_built import not_built

__all__ = ["IsStreamType"]


class IsStreamType(Protocol):
    """cuda.core.typing.IsStreamType (1.2.2): what gives its stream to other libraries."""

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return the protocol's version, 0, and the handle."""


__getattr__: Callable[[str], Any] = not_built(__name__)
