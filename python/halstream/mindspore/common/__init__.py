"""`mindspore.common`: the part that stream programs use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import not_built
from . import dtype
from .tensor import Tensor, tensor

__all__ = ["Tensor", "dtype", "tensor"]

if not TYPE_CHECKING:
    __getattr__ = not_built(__name__)
