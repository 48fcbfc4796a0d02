"""Names that are replaced and can be put back, at once or when a module is imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["Patches", "when_imported"]

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


def when_imported(patches: Patches, actions: dict[str, Callable[[ModuleType], None]]) -> None:
    """Call each function with the module of its name once that is imported; at once if it is."""
    whens = _WhenImported(actions)
    sys.meta_path.insert(0, whens)
    patches.set(whens, "active", True)


class _WhenImported:
    """What `when_imported` adds to the finders of modules."""

    active = False

    def __init__(self, actions: dict[str, Callable[[ModuleType], None]]) -> None:
        self._actions = dict(actions)
        for name in list(actions):
            if name in sys.modules:
                self._actions.pop(name)(sys.modules[name])

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not self.active or name not in self._actions:
            return None
        action = self._actions.pop(name)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executing(module: ModuleType) -> None:
                execute(module)
                action(module)

            spec.loader.exec_module = executing  # type: ignore[method-assign]
        return spec
