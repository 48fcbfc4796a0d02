"""What a report is only decorated with: names of memory, of objects and of modules.

It comes from objects of the program, whose code may do anything when it is asked. A report without a name is
still a report, and one that ends in an exception is lost, so whoever looks for a name does it through `found_by`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from .._core._handlers import raise_of_handler

__all__ = ["found_by"]

T = TypeVar("T")

_log = logging.getLogger("halstream")


def found_by(find: Callable[..., list[T]], *args: Any) -> list[T]:
    """Return the list that a function returns, an empty one if it raises."""
    try:
        return find(*args)
    except Exception as error:
        raise_of_handler(error)
        _log.debug("a name in a report could not be found", exc_info=True)
        return []
