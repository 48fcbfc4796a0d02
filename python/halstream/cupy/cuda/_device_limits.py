"""cupy.cuda.runtime: limits of what kernels of a device may use."""

from __future__ import annotations

from ..._core import _current, _interop
from ..._runtime import State, runtime
from . import _constants as constants
from ._errors import ERRORS, c_int, size_t, unsupported

__all__ = ["deviceGetLimit", "deviceSetLimit"]

# What a device of CUDA starts with.
_DEFAULTS = {
    constants.cudaLimitStackSize: 1 << 10,
    constants.cudaLimitPrintfFifoSize: 1 << 20,
    constants.cudaLimitMallocHeapSize: 8 << 20,
    constants.cudaLimitDevRuntimeSyncDepth: 2,
    constants.cudaLimitDevRuntimePendingLaunchCount: 2048,
    constants.cudaLimitMaxL2FetchGranularity: 64,
}


class _Chosen(State):
    """What the program set, by device and limit."""

    def __init__(self) -> None:
        self.values: dict[tuple[int, int], int] = {}

    def reset(self) -> None:
        self.values.clear()

    begin = reset

    def snapshot(self) -> dict[tuple[int, int], int]:
        return dict(self.values)

    def restore(self, saved: dict[tuple[int, int], int]) -> None:
        self.values.clear()
        self.values.update(saved)


_chosen = runtime.add("cupy limits of devices", _Chosen())


def _check(limit: int) -> int:
    number = c_int(limit)
    if number not in _DEFAULTS:
        raise ERRORS["invalid_value"](f"no limit of a device has the number {limit}")
    if _interop.backend_name() != "host":
        raise unsupported("limits of a vendor's device are not built yet")
    return number


def deviceGetLimit(limit: int) -> int:
    """cupy.cuda.runtime.deviceGetLimit (14.2.0), of the current device.

    Differences: a host device keeps the number and limits nothing; not built on CUDA.
    """
    number = _check(limit)
    return _chosen.values.get((_current.current_device(), number), _DEFAULTS[number])


def deviceSetLimit(limit: int, value: int) -> None:
    """cupy.cuda.runtime.deviceSetLimit (14.2.0), of the current device.

    Differences: a host device keeps the number and limits nothing; not built on CUDA.
    """
    number, wanted = _check(limit), size_t(value)
    _chosen.values[_current.current_device(), number] = wanted
