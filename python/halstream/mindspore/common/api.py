"""`mindspore.common.api`: the private device synchronization that programs and tests call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import _core as core
from ..._dialects._not_built import not_built


class _PyNativeExecutor:
    """The class of `_pynative_executor`."""

    def sync(self) -> None:
        """Block until all work enqueued on the current device is done."""
        core.synchronize()


_pynative_executor = _PyNativeExecutor()

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
