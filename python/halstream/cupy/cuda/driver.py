"""cupy.cuda.driver (cupy 14.2.0): its exception and version; contexts and functions of kernels are not built yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._dialects._cuda_status import STATUS_OF_KIND, STATUSES, driver_name
from ..._errors import HalError
from ._errors import c_int
from ._errors import not_built as _not_built

__all__ = ["CUDADriverError", "check_status", "get_build_version"]


class CUDADriverError(RuntimeError):
    """cupy.cuda.driver.CUDADriverError (14.2.0).

    Difference: the core's own words follow in brackets and are in `detail`.
    """

    detail = ""

    def __init__(self, status: int) -> None:
        self.status: int = c_int(status)
        known = self.status in STATUSES
        text = STATUSES[self.status][1] if known else "unrecognized error code"
        super().__init__(f"{driver_name(self.status) if known else text}: {text}")

    def __reduce__(self) -> Any:
        return _driver_error_again, (self.status, self.detail)


def _driver_error_again(status: int, detail: str) -> CUDADriverError:
    return driver_error(status, detail) if detail else CUDADriverError(status)


def driver_error(failed: HalError | int, detail: str = "") -> CUDADriverError:
    """Return the driver's error for a failure of the core, whose words follow in brackets, or for a status."""
    if isinstance(failed, HalError):
        kind = 1 if failed.kind == "kernel_argument" else STATUS_OF_KIND.get(failed.kind, 999)
        made = CUDADriverError(failed.code if failed.code and failed.code in STATUSES else kind)
        detail = str(failed)
    else:
        made = CUDADriverError(failed)
    made.detail = detail
    made.args = (f"{made} ({detail})",)
    return made


def get_build_version() -> int:
    """cupy.cuda.driver.get_build_version (14.2.0): the CUDA whose behaviour this follows."""
    return 12090


def _is_cuda_python() -> bool:
    """cupy.cuda.driver._is_cuda_python (14.2.0)."""
    return False


def check_status(status: int) -> None:
    """cupy.cuda.driver.check_status (14.2.0)."""
    if c_int(status):
        raise CUDADriverError(status)


__getattr__: Callable[[str], Any] = _not_built(__name__)
