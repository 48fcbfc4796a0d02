"""Names that are replaced and can be put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Patches"]

_ABSENT: Any = object()


class Patches:
    """Replaced attributes of modules and classes, undone in reverse order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any] | Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Give a module or class an attribute until `undo`."""
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def on_undo(self, action: Callable[[], None]) -> None:
        """Call a function in `undo`, after what was replaced later is back."""
        self._before.append(action)

    def undo(self) -> None:
        """Put everything back."""
        while self._before:
            last = self._before.pop()
            if callable(last):
                last()
                continue
            owner, name, value = last
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
