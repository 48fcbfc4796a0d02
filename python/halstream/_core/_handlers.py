"""What handlers of signals raise: Python runs them between any two steps of the main thread, in code of ours, too."""

from __future__ import annotations

import functools
import signal
from types import CodeType, FunctionType, MethodType
from typing import Any

__all__ = ["raise_of_handler"]


def raise_of_handler(error: BaseException) -> None:
    """Raise an exception again if a handler of a signal raised it, which has been lost otherwise.

    For code that goes on where a step of its own fails.

    Parameters
    ----------
    error : BaseException
        It was caught where it is given to this.

    Raises
    ------
    BaseException
        The one given, if a handler of a signal raised it.
    """
    codes = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code in codes:
            raise error
        place = place.tb_next


def _code(handler: Any) -> CodeType | None:
    """Return the code that a handler runs, None for one that is not written in Python."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not isinstance(handler, (FunctionType, MethodType)) and callable(handler):
        handler = type(handler).__call__
    code = getattr(handler, "__code__", None)  # a method has its function's
    return code if isinstance(code, CodeType) else None
