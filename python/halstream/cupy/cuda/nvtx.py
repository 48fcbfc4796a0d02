"""cupy.cuda.nvtx (cupy 14.2.0): the library is not used, `available` says so."""

from __future__ import annotations

from typing import NoReturn

from ._errors import unsupported
from ._missing import names as _names

__all__ = ["Mark", "MarkC", "RangeEnd", "RangePop", "RangePush", "RangePushC", "RangeStart"]

available = False

_WHAT = "NVTX is not used here"


def Mark(message: str, id_color: int = -1) -> NoReturn:
    """cupy.cuda.nvtx.Mark (14.2.0)."""
    raise unsupported(_WHAT)


def MarkC(message: str, color: int = 0) -> NoReturn:
    """cupy.cuda.nvtx.MarkC (14.2.0)."""
    raise unsupported(_WHAT)


def RangePush(message: str, id_color: int = -1) -> NoReturn:
    """cupy.cuda.nvtx.RangePush (14.2.0)."""
    raise unsupported(_WHAT)


def RangePushC(message: str, color: int = 0) -> NoReturn:
    """cupy.cuda.nvtx.RangePushC (14.2.0)."""
    raise unsupported(_WHAT)


def RangePop() -> NoReturn:
    """cupy.cuda.nvtx.RangePop (14.2.0)."""
    raise unsupported(_WHAT)


def RangeStart(message: str, color: int) -> NoReturn:
    """cupy.cuda.nvtx.RangeStart (14.2.0)."""
    raise unsupported(_WHAT)


def RangeEnd(range_id: int) -> NoReturn:
    """cupy.cuda.nvtx.RangeEnd (14.2.0)."""
    raise unsupported(_WHAT)


__getattr__ = _names.getter(__name__)
