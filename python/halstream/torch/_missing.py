"""What stands for the names of torch that are not built yet."""

from __future__ import annotations

from .._dialects._unbuilt import Errors, Names
from ._errors import missing_name, unsupported
from ._names import NAMES

__all__ = ["names"]

names = Names(NAMES, Errors(unsupported, missing_name))
