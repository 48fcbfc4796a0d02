"""Normalizations on torch's operators, in the accumulating type, as the stand-ins of several packages need them."""

from __future__ import annotations

from typing import Any

import torch

from ._common import accumulated, without_autocast

__all__ = ["layer_norm", "rms_norm"]


@without_autocast
def rms_norm(x: Any, weight: Any, eps: float, width: int = 1) -> Any:
    """Return x over the root of its mean square in the last dimensions, times the weight (None for none)."""
    wide = accumulated(x)
    found = wide * torch.rsqrt(wide.square().mean(tuple(range(-width, 0)), keepdim=True) + eps)
    return found if weight is None else found * accumulated(weight)


@without_autocast
def layer_norm(x: Any, weight: Any, bias: Any, eps: float, width: int = 1) -> Any:
    """Return x normalized in the last dimensions, times the weight, plus the bias (None for none)."""
    wide = accumulated(x)
    weight, bias = (one if one is None else accumulated(one) for one in (weight, bias))
    return torch.nn.functional.layer_norm(wide, wide.shape[-width:], weight, bias, eps)
