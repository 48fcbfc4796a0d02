"""torch.cuda.nvtx (2.15): ranges and marks are shown in a trace when one is recorded, otherwise free."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..._traces import annotations as _annotations
from .._errors import not_built as _not_built

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


def range_push(msg: str) -> int:
    """torch.cuda.nvtx.range_push (2.15): the depth of the range that begins, from 0."""
    return _annotations.push(msg)


def range_pop() -> int:
    """torch.cuda.nvtx.range_pop (2.15): the depth of the range that ends."""
    return _annotations.pop()


def range_start(msg: str) -> int:
    """torch.cuda.nvtx.range_start (2.15): the number for `range_end`, on any thread."""
    return _annotations.start(msg)


def range_end(range_id: int) -> None:
    """torch.cuda.nvtx.range_end (2.15)."""
    _annotations.end(range_id)


def mark(msg: str) -> None:
    """torch.cuda.nvtx.mark (2.15)."""
    _annotations.mark(msg)


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """torch.cuda.nvtx.range (2.15): around a block or a function; arguments go to ``msg.format``."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()


__getattr__: Callable[[str], Any] = _not_built(__name__)
