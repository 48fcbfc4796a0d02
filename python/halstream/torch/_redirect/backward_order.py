"""The order between a backward pass and the thread that asked for it, while a sanitizer is on.

Autograd runs the nodes of each device on a thread of its own. What the thread that called
``backward`` had done or waited for before comes before all of the pass. Where a thread of the
pass waits for a stream or an event, as a hook or `torch.autograd.Function` may, the caller comes
behind that wait as well, since it waits for the whole pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._checks.orderobjects import Number, report_order
from ..._native._constants import ORDER_ACQUIRE, ORDER_RELEASE
from .patches import Patches

__all__ = ["BackwardOrder"]


class BackwardOrder:
    """Reports that order to the checker, while it is switched on."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch, self._module = torch, module
        self._patches = Patches()
        self._on = False
        # One each for all passes: those that overlap share autograd's threads.
        self._called, self._waited = Number(), Number()

    def switch(self, on: bool) -> None:
        """Begin or end reporting it."""
        if on == self._on:
            return
        self._on = on
        if not on:
            self._module.observe_backward(None, None)
            self._patches.undo()
            return
        self._module.observe_backward(
            lambda: report_order(ORDER_ACQUIRE, self._called.value),
            lambda: report_order(ORDER_RELEASE, self._waited.value),
        )
        autograd = self._torch.autograd
        run = self._running(autograd.graph._engine_run_backward)
        for module in (autograd.graph, autograd):
            self._patches.set(module, "_engine_run_backward", run)

    def _running(self, run: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(run)
        def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
            report_order(ORDER_RELEASE, self._called.value)
            done = run(*args, **kwargs)
            report_order(ORDER_ACQUIRE, self._waited.value)
            return done

        return _engine_run_backward
