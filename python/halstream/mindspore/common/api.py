"""`mindspore.common.api` of 2.10: `jit`, and the private device synchronization that programs and tests call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ... import _core as core
from ..._dialects._not_built import not_built


def jit(function: Callable[..., Any] | None = None, **settings: Any) -> Any:
    """`mindspore.jit` of 2.10: nothing is compiled, the function stays what it is."""
    return function if function is not None else lambda decorated: decorated


class _PyNativeExecutor:
    """The class of `_pynative_executor`."""

    def sync(self) -> None:
        """Block until all work enqueued on the current device is done."""
        core.synchronize()


_pynative_executor = _PyNativeExecutor()

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
