"""What stands for the names of cupy and cupyx that are not built yet."""

from __future__ import annotations

from ..._dialects._unbuilt import Errors, Names
from .._names import NAMES
from ._errors import missing_name, unsupported

__all__ = ["names"]

names = Names(NAMES, Errors(unsupported, missing_name))
