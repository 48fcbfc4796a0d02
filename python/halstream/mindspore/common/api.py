"""`mindspore.common.api`: the private full drain that programs and tests call."""

from __future__ import annotations

from ... import _core as core


class _PyNativeExecutor:
    """What stands behind `_pynative_executor`."""

    def sync(self) -> None:
        """Block until all work enqueued on the current device is done."""
        core.synchronize()


_pynative_executor = _PyNativeExecutor()
