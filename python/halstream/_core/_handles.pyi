"""The base classes of events and of owners of memory, written in C; `_handles.c` says why."""

from collections.abc import Callable
from typing import Any, TypeVar

E = TypeVar("E", bound=EventBase)

class EventBase:
    """The half of an event that is written in C; see `Event`."""

    _id: int
    _owned: bool

class MemoryBase:
    """The half of an owner of memory that is written in C; see `Memory`."""

    _id: int
    ptr: int
    nbytes: int

def event_of(cls: type[E], id: int, /) -> E: ...
def leave_to(ids: list[int], /) -> None: ...
def seen_by_functions(seen: dict[int, Any], dropped: Callable[[int], None], /) -> None: ...
