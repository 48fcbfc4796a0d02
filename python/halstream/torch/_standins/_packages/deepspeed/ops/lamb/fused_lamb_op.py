"""Stand-in for DeepSpeed's operator ``fused_lamb``."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _multi_tensor
from halstream.torch._standins._common import accumulated

import torch

__all__ = ["lamb"]


@torch.no_grad()
def lamb(
    p: Any, p_copy: Any, m: Any, v: Any, g: Any, lr: float, beta1: float, beta2: float, max_coeff: float,
    min_coeff: float, eps: float, grad_scale: float, step: int, mode: int, bias_correction: int, decay: float,
) -> Any:  # fmt: skip
    """Step a tensor, and return the ratio of the norms of parameter and update, within its limits."""
    wide, grad = accumulated(p), accumulated(g) / grad_scale
    first = beta1 * accumulated(m) + (1 - beta1) * grad
    second = beta2 * accumulated(v) + (1 - beta2) * grad * grad
    update = first / ((second + eps).sqrt() if mode == 0 else second.sqrt() + eps) + decay * wide
    of_p, of_update = torch.linalg.vector_norm(wide), torch.linalg.vector_norm(update)
    ratio = torch.where((of_p != 0) & (of_update != 0), (of_p / of_update).clamp(min_coeff, max_coeff), 1.0)
    divisors = _multi_tensor.corrections(bias_correction, beta1, beta2, step)
    m.copy_(first)
    v.copy_(second)
    p.copy_(wide - lr * divisors[1] ** 0.5 / divisors[0] * ratio * update)
    if p_copy.numel():
        p_copy.copy_(p)
    return ratio.view(1)
