"""paddle.framework of 3.3: the expected place."""

from typing import TYPE_CHECKING

from .._dialects._not_built import not_built
from ._names import expected_place as _current_expected_place

__all__ = ["_current_expected_place"]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
