"""Devices that a test loses to the error of an operator: the test says so, and the next one finds them working."""

from __future__ import annotations

import threading
import time

from .. import _native
from .._core import _lost
from .._errors import HalError, NotSupportedError
from .._sites import real_torch

__all__ = ["recovered"]

#: Seconds that operators may take after the end of a phase, so that their errors are those of this test.
_MOMENT = 0.05
_wait = threading.Event()


def recovered(phase: str) -> str:
    """Let lost devices work again; return what was wrong with them that the phase of the test did not look at."""
    try:
        if real_torch.dialect:
            _let_operators_end()
        lost = _lost.recover()
    except NotSupportedError:  # of a vendor: the process has to be restarted, and every test says so
        return ""
    return "\n".join(
        f"an error of {text}\nThe {phase} of the test did not look at it: nothing synchronized, and no value was read, "
        "after the operator. The device works again in the next test."
        for text in lost
    )


def _let_operators_end() -> None:
    """Give pending operators a moment, without a wait that the sanitizer would count."""
    end = time.monotonic() + _MOMENT
    try:
        if _native.schedule_get() != "parallel":
            return  # nothing moves by itself
        while _native.pending() and time.monotonic() < end:
            _wait.wait(0.001)
    except HalError:
        return
