"""cupy.cuda.nvtx (cupy 14.2.0): shown in a trace when one is recorded, otherwise free; colours are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._traces import annotations as _annotations
from ._errors import not_built as _not_built

__all__ = ["Mark", "MarkC", "RangeEnd", "RangePop", "RangePush", "RangePushC", "RangeStart"]

available = True


def Mark(message: str, id_color: int = -1) -> None:
    """cupy.cuda.nvtx.Mark (14.2.0)."""
    _annotations.mark(message)


def MarkC(message: str, color: int = 0) -> None:
    """cupy.cuda.nvtx.MarkC (14.2.0)."""
    _annotations.mark(message)


def RangePush(message: str, id_color: int = -1) -> None:
    """cupy.cuda.nvtx.RangePush (14.2.0)."""
    _annotations.push(message)


def RangePushC(message: str, color: int = 0) -> None:
    """cupy.cuda.nvtx.RangePushC (14.2.0)."""
    _annotations.push(message)


def RangePop() -> None:
    """cupy.cuda.nvtx.RangePop (14.2.0)."""
    _annotations.pop()


def RangeStart(message: str, color: int) -> int:
    """cupy.cuda.nvtx.RangeStart (14.2.0): the number for `RangeEnd`, on any thread."""
    return _annotations.start(message)


def RangeEnd(range_id: int) -> None:
    """cupy.cuda.nvtx.RangeEnd (14.2.0)."""
    _annotations.end(range_id)


__getattr__: Callable[[str], Any] = _not_built(__name__)
