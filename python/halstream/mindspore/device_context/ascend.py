"""`mindspore.device_context.ascend` of 2.10."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from .._queries import count_of
from .._queries import is_available as _is_available

__all__ = ["device_count", "is_available"]


def device_count() -> int:
    """`mindspore.device_context.ascend.device_count` of 2.10."""
    return count_of("Ascend")


def is_available() -> bool:
    """`mindspore.device_context.ascend.is_available` of 2.10."""
    return _is_available("Ascend")


if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
