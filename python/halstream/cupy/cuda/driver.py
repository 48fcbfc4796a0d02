"""cupy.cuda.driver (cupy 14.2.0): its exception and version; contexts and functions of kernels are not built yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._errors import HalError
from ._errors import c_int
from ._errors import not_built as _not_built
from ._status import STATUS_OF_KIND, STATUSES

__all__ = ["CUDADriverError", "check_status", "get_build_version"]

# Where the driver's name is not the runtime's, spelt in the driver's way.
_OWN_NAMES = {
    0: "SUCCESS",
    2: "ERROR_OUT_OF_MEMORY",
    3: "ERROR_NOT_INITIALIZED",
    4: "ERROR_DEINITIALIZED",
    46: "ERROR_DEVICE_UNAVAILABLE",
    200: "ERROR_INVALID_IMAGE",
    201: "ERROR_INVALID_CONTEXT",
    205: "ERROR_MAP_FAILED",
    206: "ERROR_UNMAP_FAILED",
    209: "ERROR_NO_BINARY_FOR_GPU",
    214: "ERROR_ECC_UNCORRECTABLE",
    216: "ERROR_CONTEXT_ALREADY_IN_USE",
    400: "ERROR_INVALID_HANDLE",
    500: "ERROR_NOT_FOUND",
    708: "ERROR_PRIMARY_CONTEXT_ACTIVE",
    719: "ERROR_LAUNCH_FAILED",
}


def _name(status: int) -> str:
    if status in _OWN_NAMES:
        return "CUDA_" + _OWN_NAMES[status]
    words = ""
    for letter, after in zip(name := STATUSES[status][0].removeprefix("cuda"), name[1:] + "_", strict=True):
        words += letter.upper() + ("_" if letter.islower() and after.isupper() else "")
    return "CUDA_" + words


class CUDADriverError(RuntimeError):
    """cupy.cuda.driver.CUDADriverError (14.2.0).

    Difference: the core's own words follow in brackets and are in `detail`.
    """

    detail = ""

    def __init__(self, status: int) -> None:
        self.status: int = c_int(status)
        known = self.status in STATUSES
        text = STATUSES[self.status][1] if known else "unrecognized error code"
        super().__init__(f"{_name(self.status) if known else text}: {text}")

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
