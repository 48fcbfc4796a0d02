"""The error classes of the torch dialect, with the texts that programs match on."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from .._dialects import _not_built
from .._dialects._adapt import again, family, raising
from .._errors import HalError
from .._errors import OutOfMemoryError as CoreOutOfMemoryError

__all__ = [
    "ERRORS",
    "AcceleratorError",
    "OutOfMemoryError",
    "again",
    "dialect_errors",
    "error",
]


class AcceleratorError(HalError):
    """torch.AcceleratorError (2.15): every failure of the runtime; a RuntimeError there too."""

    __module__ = "halstream.torch"

    @property
    def error_code(self) -> int:
        """The driver's number; 0 for failures that the runtime found itself."""
        return self.code


class OutOfMemoryError(CoreOutOfMemoryError):
    """torch.OutOfMemoryError (2.15): a RuntimeError."""

    __module__ = "halstream.torch"


def _worded(make: Callable[..., BaseException], words: str, number: int = 0) -> Callable[..., BaseException]:
    """Return a function that words a kind of failure as torch does; ``{}`` stands for the core's text."""

    def worded(text: str = "", *, code: int = 0, operation: str = "") -> BaseException:
        return make(words.format(text), code=code or number, operation=operation)

    return worded


_FAMILY = family(
    AcceleratorError,
    {
        "timing_disabled": ValueError,
        "unrecorded": ValueError,
        "not_supported": NotImplementedError,
    },
)

#: From each kind to what makes torch's exception of it.
ERRORS: Mapping[str, Callable[..., BaseException]] = {
    **_FAMILY,
    "out_of_memory": OutOfMemoryError,
    "timing_disabled": _worded(
        _FAMILY["timing_disabled"],
        "Both events must be created with argument 'enable_timing=True'.",
    ),
    "unrecorded": _worded(_FAMILY["unrecorded"], "Both events must be recorded before calculating elapsed time."),
    # Only elapsed_time reports it.
    "not_ready": _worded(_FAMILY["not_ready"], "Both events must be completed before calculating elapsed time."),
    "invalid_device": _worded(_FAMILY["invalid_device"], "CUDA error: invalid device ordinal ({})", 101),
    "forked": _worded(
        _FAMILY["forked"],
        "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
        "you must use the 'spawn' start method",
    ),
}

#: Decorator of module functions.
dialect_errors = raising(ERRORS)


def error(kind: str, text: str, **details: Any) -> HalError:
    """Return an exception of a kind with exactly this text."""
    return _FAMILY[kind](text, **details)


_MissingName: Any = type(
    AcceleratorError.__name__,
    (_FAMILY["not_supported"], AttributeError),
    {
        "__module__": AcceleratorError.__module__,
        "__doc__": "A name that is not built yet.",
        "_page": "unsupported-name",
    },
)


def unsupported(text: str) -> HalError:
    """Return the error for a part of the package that is not built yet."""
    return error("not_supported", text)


def missing_name(text: str) -> HalError:
    """Return the error for an attribute that is not built yet; it is an AttributeError, too."""
    made: HalError = _MissingName(text)
    return made


#: Makes the ``__getattr__`` of a module.
not_built = functools.partial(_not_built.not_built, errors=_not_built.Errors(unsupported, missing_name))
