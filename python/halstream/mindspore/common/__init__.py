"""`mindspore.common`: the part that stream programs reach for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..._dialects._not_built import refuse_unbuilt
from . import dtype
from .tensor import Tensor, tensor

__all__ = ["Tensor", "dtype", "tensor"]

if not TYPE_CHECKING:
    __getattr__ = refuse_unbuilt(__name__)
