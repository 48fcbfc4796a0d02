"""CUDARuntimeError, and the conversion of the core's failures to it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from ..._dialects import _not_built
from ..._dialects._adapt import family
from ..._dialects._cuda_status import STATUS_OF_KIND, STATUSES, UNKNOWN
from ..._errors import HalError
from ..._memory._pools import thread


def intptr(value: Any) -> int:
    """Return a handle or address as an int; anything else has the package's TypeError."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError("an integer is required") from None


def c_int(value: Any) -> int:
    """Return a number that fits a C int."""
    number = intptr(value)
    if not -(2**31) <= number < 2**31:
        raise OverflowError("value too large to convert to int")
    return number


def c_uint(value: Any) -> int:
    """Return a number that fits an unsigned C int."""
    number = intptr(value)
    if number < 0:
        raise OverflowError("can't convert negative value to unsigned int")
    if number >= 2**32:
        raise OverflowError("value too large to convert to unsigned int")
    return number


def size_t(value: Any) -> int:
    """Return a number of bytes; floats lose their fraction, as the package has it."""
    number = int(value) if isinstance(value, float) else intptr(value)
    if number < 0:
        raise OverflowError("can't convert negative value to size_t")
    return number


class CUDARuntimeError(HalError):
    """cupy.cuda.runtime.CUDARuntimeError (14.2.0).

    Differences: the core's own words follow in brackets and are in `detail`;
    what the core raises is also of its class of the kind (`NotReadyError` for
    status 600, ...).
    """

    detail = ""

    def __init__(self, status: int) -> None:
        self.status: int = c_int(status)
        name, text = STATUSES.get(self.status, UNKNOWN)
        super().__init__(f"{name}: {text}")

    def __reduce__(self) -> Any:
        if type(self) is CUDARuntimeError:
            return CUDARuntimeError, (self.status,)
        return _again, (self.kind, self.status, self.detail, self.code, self.operation)


CUDARuntimeError.__module__ = "halstream.cupy.cuda.runtime"

_CLASSES = family(CUDARuntimeError)


def _again(kind: str, status: int, detail: str, code: int, operation: str) -> CUDARuntimeError:
    made = _CLASSES[kind](status)  # type: ignore[arg-type]
    assert isinstance(made, CUDARuntimeError)
    made.code = code
    made.operation = operation
    return _filled(made, detail)


def _filled(made: CUDARuntimeError, detail: str) -> CUDARuntimeError:
    if detail:
        made.detail = detail
        made.args = (f"{made} ({detail})",)
    return made


def _maker(kind: str) -> Callable[..., CUDARuntimeError]:
    status = STATUS_OF_KIND.get(kind, 999)

    def make(text: str = "", *, code: int = 0, operation: str = "") -> CUDARuntimeError:
        # A CUDA driver's own number is the runtime's, too.
        number = code if code and code in STATUSES else status
        return _again(kind, number, text, code, operation)

    return make


#: What the core's classes are called with, by the kind of failure.
ERRORS = {kind: _maker(kind) for kind in _CLASSES}


def unsupported(what: str) -> CUDARuntimeError:
    """Return the error for a part of the package that is not built yet."""
    return ERRORS["not_supported"](what)


_MissingName: Any = type(
    CUDARuntimeError.__name__,
    (_CLASSES["not_supported"], AttributeError),
    {
        "__module__": CUDARuntimeError.__module__,
        "__doc__": "A name that is not built yet.",
        "_page": "unsupported-name",
    },
)


def missing_name(what: str) -> CUDARuntimeError:
    """Return the error for an attribute that is not built yet; it is an AttributeError, too."""
    return _filled(_MissingName(STATUS_OF_KIND["not_supported"]), what)


_NOT_BUILT = _not_built.Errors(unsupported, missing_name)
#: Makes the ``__getattr__`` of a module.
not_built = functools.partial(_not_built.not_built, errors=_NOT_BUILT)
#: Makes the error for an attribute that an object does not have.
attribute_error = functools.partial(_not_built.attribute_error, errors=_NOT_BUILT)


class DeviceSynchronized(RuntimeError):
    """cupyx.DeviceSynchronized (14.2.0): a wait inside ``allow_synchronize(False)``."""


DeviceSynchronized.__module__ = "halstream.cupyx"


def check_may_wait() -> None:
    """Raise if the thread disallowed waits for devices."""
    if not thread.may_wait:
        raise DeviceSynchronized("Device is being synchronized")


def valid_capture(state: int) -> bool:
    """Return whether a stream in this state of `Stream._capture_state` captures.

    Raises
    ------
    RuntimeError
        If an error has invalidated the capture.
    """
    if state == 2:
        raise RuntimeError("an error has invalidated the capture of this stream; end_capture() raises its cause")
    return bool(state)
