"""cupyx (14.2.0): its profiler and pinned arrays, over the streams of `halstream.cupy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..cupy.cuda._errors import DeviceSynchronized
from . import profiler

if TYPE_CHECKING:
    from ._memory import (
        allow_synchronize,
        empty_like_pinned,
        empty_pinned,
        zeros_like_pinned,
        zeros_pinned,
    )

__all__ = [
    "DeviceSynchronized",
    "allow_synchronize",
    "empty_like_pinned",
    "empty_pinned",
    "profiler",
    "zeros_like_pinned",
    "zeros_pinned",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import _memory  # loads NumPy

        found = getattr(_memory, name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
