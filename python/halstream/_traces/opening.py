"""Actions that run when the runtime is opened.

A program chooses its backend by its environment until the first use of the
runtime, or by `use_backend`. A tool that observes a program must not make that choice for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _native
from .._runtime import runtime

__all__ = ["at_opening"]


_actions: list[Callable[[], object]] = runtime.keep("actions before the runtime opens", [])
_installed = False


def at_opening(action: Callable[[], object]) -> Callable[[], None]:
    """Call `action` when the runtime is opened, and again when its backend was changed.

    It is called on the thread that uses the runtime first, before that use; at
    once if the runtime is open.

    Returns
    -------
    callable
        Removes the action.
    """
    _install()
    _actions.append(action)
    if _native.loaded():
        action()
    return lambda: _actions.remove(action)


def _install() -> None:
    """Wrap the two functions that open a runtime."""
    global _installed
    if _installed:
        return
    _installed = True
    native: Any = _native
    load, choose = native._load, native.__dict__.get("use_backend")
    choosing = False

    def opening() -> Any:
        extension = load()
        # Loading may call the runtime itself, and so come here again.
        if not choosing and native._load is opening:
            native._load = load
            _act()
        return extension

    def changing(name: str, kept: str, dry: int) -> Any:
        nonlocal choosing
        choosing = True
        try:
            result = (choose or native.__getattr__("use_backend"))(name, kept, dry)
        finally:
            choosing = False
            native._load = load
            native.use_backend = changing  # the lookup has stored the unwrapped one there
        if not dry:
            _act()
        return result

    native.use_backend = changing
    if not _native.loaded():
        native._load = opening


def _act() -> None:
    for action in list(_actions):
        action()
