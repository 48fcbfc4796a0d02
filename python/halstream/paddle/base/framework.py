"""paddle.base.framework of 3.3: the expected place."""

from .._names import expected_place as _current_expected_place

__all__ = ["_current_expected_place"]
