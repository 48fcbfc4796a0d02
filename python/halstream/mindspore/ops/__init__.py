"""`mindspore.ops` of 2.10: the functions that stream programs use; each is enqueued."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from . import operations
from ._functions import *  # noqa: F403
from ._functions import __all__ as _functions
from .operations import Abs, Add, MatMul, Mul, Sin, Sub

__all__ = [*_functions, "Abs", "Add", "MatMul", "Mul", "Sin", "Sub", "operations"]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
