"""cupyx (14.2.0): its profiler and pinned arrays, over the streams of `halstream.cupy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core as _core  # first: it waits for a thread that is importing the package
from ..cupy.cuda._errors import DeviceSynchronized, not_built
from . import profiler

if TYPE_CHECKING:
    from ._memory import (
        allow_synchronize,
        empty_like_pinned,
        empty_pinned,
        zeros_like_pinned,
        zeros_pinned,
    )
    from ._runtime import get_runtime_info

__all__ = [
    "DeviceSynchronized",
    "allow_synchronize",
    "empty_like_pinned",
    "empty_pinned",
    "get_runtime_info",
    "profiler",
    "zeros_like_pinned",
    "zeros_pinned",
]


_not_built = not_built(__name__)


def __getattr__(name: str) -> Any:
    if name in __all__:
        from . import _memory, _runtime  # load NumPy

        found = getattr(_runtime if name == "get_runtime_info" else _memory, name)
        globals()[name] = found
        return found
    return _not_built(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
