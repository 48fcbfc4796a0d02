"""The class of the argument of `sys.unraisablehook`."""

from __future__ import annotations

import functools
import sys
from typing import Any

__all__ = ["hook_args"]


@functools.cache
def hook_args() -> Any:
    """Return the class of the argument of `sys.unraisablehook`, which has no public name.

    One is caught by letting a finalizer fail, as that is what the hook is for.
    """
    caught: list[type] = []
    hook = sys.unraisablehook

    class Probe:
        def __del__(self) -> None:
            raise LookupError(caught)

    def catch(args: Any) -> None:
        if isinstance(args.exc_value, LookupError) and args.exc_value.args == (caught,):
            caught.append(type(args))
        else:
            hook(args)

    sys.unraisablehook = catch
    try:
        Probe()
    finally:
        sys.unraisablehook = hook
    return caught[0]
