"""The package's state in one place: what a change of backend resets, what runs of a program restore.

A component that keeps state beyond a call puts it into a subclass of `State` and
registers one object of it with `runtime.add`; nothing else may keep a container at
module level (tools/lint.py checks it). Containers are changed in place and never
replaced, so that modules may bind them to names of their own for speed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

__all__ = ["Owner", "Runtime", "State", "collected", "runtime"]


class Owner:
    """Closes a native stream when the last wrapper of it is gone.

    With `external` the stream is another library's, which it is left to.
    """

    __slots__ = ("__weakref__", "external", "hash", "ident")

    def __init__(self, ident: int, external: bool = False) -> None:
        self.ident = ident
        self.external = external
        self.hash: int | None = None  # of all wrappers; kept for when the stream is closed

    def __del__(self) -> None:
        # The collector may run anywhere, so a finalizer only appends.
        if collected is not None:
            collected.ids.append(self.ident)
            collected.note(self.ident)


class State:
    """What one component keeps beyond a call; a subclass overrides what applies to it."""

    def reset(self) -> None:
        """Forget what belongs to the backend that was in use; another one is used from now on."""

    def snapshot(self) -> Any:
        """Return what `restore` needs to bring back what holds now for later runs of a program."""
        return None

    def restore(self, saved: Any) -> None:
        """Bring back what held when `snapshot` returned `saved`."""

    def begin(self) -> None:
        """Bring back what held when the component was imported, after the snapshot that is restored."""

    def kept(self) -> Iterable[Owner]:
        """Return the owners of streams that are kept for later use, each in one container."""
        return ()


class Collected(State):
    """What the garbage collector took and ordinary calls have not closed yet; see `drain`."""

    def __init__(self) -> None:
        self.ids: list[int] = []  # of streams, events, gates, queues and blocks of memory
        # What is kept for other libraries until they give it back, by token: the owner
        # of memory that they use, or a function that gives memory of theirs back.
        self.lent: dict[int, Any] = {}
        #: Is given each id as well. It ends the part of a stream in a capture before the stream is closed.
        self.note: Callable[[int], object] = id


T = TypeVar("T", bound=State)
C = TypeVar("C")


class _Container(State):
    """One container of a component."""

    def __init__(self, container: Any, clear: bool) -> None:
        self.container = container
        self.clear = clear

    def reset(self) -> None:
        if self.clear:
            self.container.clear()


class Runtime:
    """All components' state, by name."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}

    def add(self, name: str, state: T) -> T:
        """Register a component's state and return it; a module that is imported anew replaces its own."""
        self._states[name] = state
        return state

    def keep(self, name: str, container: C, *, clear: bool = False) -> C:
        """Register a container and return it; with `clear` a change of backend empties it."""
        self._states[name] = _Container(container, clear)
        return container

    def __getitem__(self, name: str) -> State:
        return self._states[name]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._states))

    def reset(self) -> None:
        """Forget what belongs to the backend that was in use."""
        for state in list(self._states.values()):
            state.reset()

    def snapshot(self) -> dict[str, Any]:
        """Return what `restore` brings back: all that makes two runs of a program differ."""
        return {name: state.snapshot() for name, state in list(self._states.items())}

    def restore(self, saved: dict[str, Any]) -> None:
        """Bring back what held at a snapshot; a component that came later begins anew."""
        for name, state in list(self._states.items()):
            if name in saved:
                state.restore(saved[name])
            else:
                state.begin()

    def kept_ids(self) -> list[int]:
        """Return the ids of the streams that only the package itself keeps, for later use.

        Those are the ones whose owner is referred to as often as an object that stands
        in one container and in the list that is looked at.
        """
        container = {0: object()}
        objects: list[Any] = [container[0]]
        for state in list(self._states.values()):
            objects.extend(state.kept())
        counts = [sys.getrefcount(found) for found in objects]
        return [owner.ident for owner, count in zip(objects[1:], counts[1:], strict=True) if count <= counts[0]]


runtime = Runtime()
collected = runtime.add("collected", Collected())
