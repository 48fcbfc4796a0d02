"""Isolation of runs: every run of a program in one process starts from the same state."""

from __future__ import annotations

import gc
from typing import Any

from .._core import _base
from .._memory import _pools
from .._runtime import runtime

__all__ = ["RunIsolation"]

#: A program that has frozen its objects has more than this frozen: NumPy alone makes thousands. CPython 3.12
#: has a few hundred frozen from its start.
_FROZEN_AT_START = 1000


class RunIsolation:
    """A context for several runs of a program; call `begin` and `end` around each.

    Each run starts with the current streams and devices, and the positions in the
    rings of pooled streams, that held when the context began, or at the last
    `keep`; pools of memory are empty. Automatic garbage collection is off within
    a run: objects would otherwise be closed at another point of each run.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}
        self._frozen = False
        self._enabled = False

    def __enter__(self) -> RunIsolation:
        # Frozen, the objects of before are not searched by the collection after each
        # run. A program that froze its objects itself keeps them frozen.
        _empty_pools()
        self._frozen = gc.get_freeze_count() < _FROZEN_AT_START
        if self._frozen:
            gc.freeze()
        self._enabled = gc.isenabled()
        self.keep()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._enabled:
            gc.enable()
        if self._frozen:
            gc.unfreeze()

    def keep(self) -> None:
        """Save the present state as the one that later runs start from."""
        self._kept = runtime.snapshot()

    def begin(self) -> None:
        """Restore the saved state before a run."""
        runtime.restore(self._kept)
        _base.drain()
        gc.disable()

    def end(self) -> None:
        """End a run: collect the reference cycles it left and empty the pools."""
        if self._enabled:
            gc.enable()
        gc.collect()
        _base.drain()
        _empty_pools()


def _empty_pools() -> None:
    # A block that a pool cached in one run would save the next run an allocation.
    _pools.reset()
