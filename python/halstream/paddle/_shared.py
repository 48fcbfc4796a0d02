"""One object of a class for each native stream, for dialects that compare them by identity."""

from __future__ import annotations

import threading
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from .._core._stream import Stream
from .._runtime import runtime

S = TypeVar("S", bound=Stream)

# Ids are never reused, so a removed entry is never needed again.
_objects: WeakValueDictionary[tuple[type, int], Any] = runtime.keep("paddle's base objects", WeakValueDictionary())
# A reentrant lock, as a signal handler may call `shared`, too.
_lock = threading.RLock()


def shared(cls: type[S], stream: Stream) -> S:
    """Return the one living object of `cls` for a native stream.

    The first object stays the shared one while it is referenced; if there is none and
    `stream` is of the class, it becomes the shared one.
    """
    key = cls, stream._id
    with _lock:
        found: S | None = _objects.get(key)
        if found is None:
            if isinstance(stream, cls):
                found = stream
            else:
                found = object.__new__(cls)
                found._attach(stream._id, stream._ordinal, stream._owner)
            _objects[key] = found
    return found
