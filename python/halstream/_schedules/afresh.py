"""What lets the runs of one program start alike, one after the other in a process."""

from __future__ import annotations

import gc
from types import TracebackType
from typing import Any

from .._core import _base
from .._memory import _pools
from .._runtime import runtime

__all__ = ["Afresh"]


class Afresh:
    """A context for several runs of a program; call `begin` and `end` around each.

    The choices of current streams and devices, and whose turn it is in the
    rings of pooled streams, are what they were when the context began, or at
    the last `keep`; pools of memory are empty. Within a run the garbage
    collector does not run by itself: what it closes would otherwise be closed
    at another place each time.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}
        self._frozen = False
        self._enabled = False

    def __enter__(self) -> Afresh:
        # A collection after each run shall look at what that run made only. A
        # program that froze its objects itself keeps them so.
        _empty_pools()
        self._frozen = gc.get_freeze_count() == 0
        if self._frozen:
            gc.freeze()
        self._enabled = gc.isenabled()
        self.keep()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._enabled:
            gc.enable()
        if self._frozen:
            gc.unfreeze()

    def keep(self) -> None:
        """Take what holds now as what later runs begin with."""
        self._kept = runtime.snapshot()

    def begin(self) -> None:
        """Put back what later runs begin with."""
        runtime.restore(self._kept)
        _base.drain()
        gc.disable()

    def end(self) -> None:
        """End a run: what it left in reference cycles is collected."""
        if self._enabled:
            gc.enable()
        gc.collect()
        _base.drain()
        _empty_pools()


def _empty_pools() -> None:
    # What a pool keeps of one run would be no allocation in the next.
    _pools.reset()
