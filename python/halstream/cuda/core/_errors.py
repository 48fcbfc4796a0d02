"""CUDAError and NVRTCError, and the conversion of the core's failures to them."""

from __future__ import annotations

from collections.abc import Callable

from ..._dialects._adapt import family
from ..._dialects._cuda_status import STATUS_OF_KIND, STATUSES, driver_name
from ..._errors import ClosedError, CompileError, HalError

__all__ = ["ERRORS", "CUDAError", "NVRTCError", "closed", "failure"]

_INVALID_VALUE = 1


class CUDAError(HalError):
    """cuda.core._utils.cuda_utils.CUDAError (1.2.2).

    Differences: it is a RuntimeError, and what the core raises is also of its class of the kind
    (`OutOfMemoryError`, ...); behind the driver's name stand the core's own words.
    """


class NVRTCError(CUDAError, CompileError):
    """cuda.core._utils.cuda_utils.NVRTCError (1.2.2); `log` is what the compiler wrote."""


for _class in (CUDAError, NVRTCError):
    _class.__module__ = "halstream.cuda.core._utils.cuda_utils"

_CLASSES = family(CUDAError)


def _maker(kind: str) -> Callable[..., HalError]:
    status = _INVALID_VALUE if kind == "kernel_argument" else STATUS_OF_KIND.get(kind, 0)

    def make(text: str = "", *, code: int = 0, operation: str = "") -> HalError:
        number = code if code in STATUSES and code else status
        # What only this runtime reports, such as a wait that can never end, has no name of the driver's.
        said = f"{driver_name(number)}: {text}" if number else text
        return _CLASSES[kind](said, code=number, operation=operation)

    return make


#: What the core's classes are called with, by the kind of failure.
ERRORS = {kind: _maker(kind) for kind in _CLASSES}


def failure(status: int, text: str) -> HalError:
    """Return the error of a status of the driver."""
    return CUDAError(f"{driver_name(status)}: {text}", code=status)


def closed(what: str) -> ClosedError:
    """Return the error for the use of an object that was closed; `what` is its class in the package."""
    return ClosedError(f"{what} has been closed")
