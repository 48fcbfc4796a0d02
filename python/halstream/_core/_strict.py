"""Whether strict mode is on: dialects then show only what the packages have that they mirror."""

from __future__ import annotations

import os
from collections.abc import Callable
from weakref import WeakSet

from .._runtime import State, runtime

__all__ = ["strict"]


class _Strict(State):
    """What HALSTREAM_STRICT or `halstream.strict` chose, and the classes and modules that it applies to."""

    def __init__(self) -> None:
        self.enabled = os.environ.get("HALSTREAM_STRICT", "") not in ("", "0")
        self.classes: WeakSet[type] = WeakSet()
        self.hide: Callable[[type], None] | None = None  # set by `_dialects._strict`
        self.modules: set[str] = set()  # names of the dialects' public modules
        self.hide_module: Callable[[str], None] | None = None  # set by `_dialects._strict`

    def add(self, cls: type) -> None:
        """Register a class that may belong to a dialect."""
        if cls.__module__.startswith("halstream."):
            self.classes.add(cls)
            if self.hide is not None:
                self.hide(cls)

    def add_module(self, name: str) -> None:
        """Register a public module of a dialect."""
        self.modules.add(name)
        if self.hide_module is not None:
            self.hide_module(name)


strict = runtime.add("strict mode", _Strict())
