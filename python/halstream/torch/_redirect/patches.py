"""Names that are replaced and can be put back."""

from __future__ import annotations

from typing import Any

__all__ = ["Patches"]

_ABSENT: Any = object()


class Patches:
    """Replaced attributes of modules and classes, undone in reverse order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Give a module or class an attribute until `undo`."""
        self._before.append((owner, name, vars(owner).get(name, _ABSENT)))
        setattr(owner, name, value)

    def undo(self) -> None:
        """Put everything back."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
