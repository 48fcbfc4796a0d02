"""cupy.cuda.memory_hook (cupy 14.2.0)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..._memory._pools import thread
from ._errors import not_built as _not_built

__all__ = ["MemoryHook", "get_memory_hooks"]

H = TypeVar("H", bound="MemoryHook")


def get_memory_hooks() -> dict[str, Any]:
    """cupy.cuda.memory_hook.get_memory_hooks (14.2.0): those of the calling thread, by name."""
    return thread.hooks


class MemoryHook:
    """cupy.cuda.MemoryHook (14.2.0): its methods are called for what pools do on this thread, inside a ``with``."""

    name: ClassVar[str] = "MemoryHook"

    def __enter__(self: H) -> H:
        hooks = thread.hooks
        if self.name in hooks:
            raise KeyError(f"memory hook {self.name} already exists")
        hooks[self.name] = self
        self.added()
        return self

    def __exit__(self, *_: object) -> None:
        thread.hooks[self.name].deleted()
        del thread.hooks[self.name]

    def added(self) -> None:
        """Called when the context begins."""

    def deleted(self) -> None:
        """Called when the context ends."""

    def alloc_preprocess(self, **kwargs: Any) -> None:
        """Before a pool takes memory of the device."""

    def alloc_postprocess(self, **kwargs: Any) -> None:
        """After a pool took memory of the device."""

    def malloc_preprocess(self, **kwargs: Any) -> None:
        """Before memory is taken of a pool."""

    def malloc_postprocess(self, **kwargs: Any) -> None:
        """After memory was taken of a pool."""

    def free_preprocess(self, **kwargs: Any) -> None:
        """Before memory goes back to its pool."""

    def free_postprocess(self, **kwargs: Any) -> None:
        """After memory went back to its pool."""


def call_hooks(what: str, **kwargs: Any) -> None:
    """Call one function of every hook of this thread."""
    for hook in list(thread.hooks.values()):
        getattr(hook, what)(**kwargs)


__getattr__: Callable[[str], Any] = _not_built(__name__)
