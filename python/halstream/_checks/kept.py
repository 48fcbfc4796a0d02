"""Memory that the runtime does not know, kept while a sanitizer is on.

NumPy's memory comes from the C library, which gives an address out again at
once, and the runtime cannot see that it was freed between. So the owners of what
functions work on are kept for a while. When they are released, the checker drops
the recorded accesses to their memory.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from .. import _native
from .._core._hostaccess import extent
from .._errors import HalError
from .._runtime import runtime

__all__ = ["forget", "keep"]

_lock = threading.Lock()
_kept: dict[int, tuple[Any, int, int]] = runtime.keep("memory that checks keep", {})
_KEPT_LEAST = 1024
_BYTES_LEAST = 64 << 20


class _Limits:
    """How much is kept, and from how much on unused memory is released."""

    nbytes = 0
    kept_most = _KEPT_LEAST
    bytes_most = _BYTES_LEAST


_limits = _Limits()


def keep(buffer: Any) -> None:
    """Keep what owns the memory of a buffer that a function on a stream works on."""
    owner = view = buffer
    while (base := getattr(owner, "base", None)) is not None:
        owner, view = base, owner if hasattr(owner, "strides") else view
    owner = getattr(owner, "obj", owner)  # of a memoryview
    if hasattr(owner, "ptr") or hasattr(owner, "owner"):
        return  # memory of the runtime, which says when it is given back
    if id(owner) in _kept:
        return
    try:
        start, nbytes = extent(owner if hasattr(owner, "strides") else view)
    except (TypeError, HalError):
        return
    with _lock:
        _kept[id(owner)] = owner, start, nbytes
        _limits.nbytes += nbytes
        if len(_kept) > _limits.kept_most or _limits.nbytes > _limits.bytes_most:
            _release_unused()


def _release_unused() -> None:
    """Release the owners that nothing else refers to."""
    for key in list(_kept):
        # The table's tuple is one, the argument the other.
        if sys.getrefcount(_kept[key][0]) <= 2:
            _, start, nbytes = _kept[key]
            _native.check_forget(start, nbytes)
            del _kept[key]
    # What stays is in use: looking again is worth its time when there is twice as much.
    _limits.nbytes = sum(entry[2] for entry in _kept.values())
    _limits.kept_most = max(_KEPT_LEAST, 2 * len(_kept))
    _limits.bytes_most = max(_BYTES_LEAST, 2 * _limits.nbytes)


def forget() -> None:
    """Release everything, as the last sanitizer has ended."""
    with _lock:
        _kept.clear()
        _limits.nbytes = 0
        _limits.kept_most, _limits.bytes_most = _KEPT_LEAST, _BYTES_LEAST
