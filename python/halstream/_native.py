"""The only importer of the extension: error texts become exceptions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from . import _halstream as _ext
from ._errors import KINDS, HalError, InvalidValueError

_SEPARATOR = "\x1f"

#: Exceptions of checked functions by token, until a synchronize raises them.
checked: dict[int, BaseException] = {}


def __getattr__(name: str) -> Any:
    # Names the extension exports as pybuild_StreamQuery are stream_query here.
    camel = "pybuild_" + "".join(part.capitalize() for part in name.split("_"))
    try:
        function = getattr(_ext, camel)
    except AttributeError:
        raise AttributeError(f"the extension has no function {camel}") from None
    # Found without this detour from now on: it takes longer than most calls.
    globals()[name] = function
    return function


def error(
    exc: BaseException, kinds: Mapping[str, Callable[..., BaseException]] = KINDS
) -> BaseException:
    """Turn what the extension raised into the class that `kinds` names for it.

    Exceptions that the core did not write (a wrong argument type, for
    instance) come back unchanged.
    """
    parts = str(exc).split(_SEPARATOR)
    if len(parts) != 6:
        return exc
    _, kind, code, operation, token, text = parts
    original = checked.pop(int(token), None) if token != "0" else None
    if original is not None:
        return original
    return kinds.get(kind, KINDS.get(kind, HalError))(
        text, code=int(code), operation=operation
    )


def nanoseconds(timeout: float | None) -> int:
    """Return a time limit as the extension takes it: -1 for none.

    Parameters
    ----------
    timeout : float or None
        Seconds.

    Raises
    ------
    InvalidValueError
        If it is negative, infinite or not a number.
    TypeError
        If it is of another type.
    """
    if timeout is None:
        return -1
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout must be a number of seconds or None, not {timeout!r}")
    if not (timeout >= 0 and math.isfinite(timeout)):
        raise InvalidValueError(
            f"timeout must be a finite number of seconds >= 0, not {timeout!r}; "
            "use None to wait for ever"
        )
    return min(int(timeout * 1e9), 2**62)


def wait(function: Callable[[int, int], int], ident: int, timeout: float | None) -> bool:
    """Call a waiting function of the extension; False when the limit came first."""
    return function(ident, nanoseconds(timeout)) == 1
