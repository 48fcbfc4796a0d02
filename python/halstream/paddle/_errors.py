"""Errors of the paddle dialect."""

from __future__ import annotations

from .._dialects._adapt import family
from .._errors import HalError

__all__ = ["ERRORS", "EnforceNotMet", "VisibleDeprecationWarning", "incompatible"]


class EnforceNotMet(HalError):
    """paddle.base.core.EnforceNotMet (3.3); here also a RuntimeError, as every HalError is."""


class VisibleDeprecationWarning(UserWarning):
    """What paddle 3.3 warns with where a function of paddle.device.cuda has a successor."""


# What a driver reports is an OSError in paddle; its own checks are the built-in classes.
_DRIVER = (
    "capture",
    "closed",
    "device_lost",
    "host_function",
    "in_host_function",
    "invalid_handle",
    "not_ready",
    "timing_disabled",
    "unrecorded",
    "wrong_context",
    "wrong_device",
)

ERRORS = family(
    EnforceNotMet,
    {
        **dict.fromkeys(_DRIVER, OSError),
        "not_supported": NotImplementedError,
        "out_of_memory": MemoryError,
    },
)


class WrongOperand(AttributeError, TypeError):
    """An operand that is no stream or event: AttributeError in 3.3, a TypeError by nature."""


def incompatible(call: str, forms: str, *given: object) -> TypeError:
    """Return the error for arguments that fit none of the forms of a call."""
    lines = "".join(f"\n    {i}. {form}" for i, form in enumerate(forms.split("; "), 1))
    kind = "constructor" if call == "__init__" else "function"
    return TypeError(
        f"{call}(): incompatible {kind} arguments. The following argument types are supported:"
        f"{lines}\n\nInvoked with: {', '.join(map(repr, given))}"
    )
