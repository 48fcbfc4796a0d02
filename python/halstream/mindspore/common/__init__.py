"""`mindspore.common`: the part that stream programs reach for."""

from __future__ import annotations

from . import dtype
from .tensor import Tensor, tensor

__all__ = ["Tensor", "dtype", "tensor"]
