"""Stand-in for flash_attn.ops.layer_norm: dropout, a residual and a layer norm in one call."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _norms
from halstream.torch._standins._common import accumulated

import torch

__all__ = ["DropoutAddLayerNorm", "dropout_add_layer_norm", "layer_norm"]


def normed(
    x0: Any, residual: Any, weight: Any, bias: Any, dropout_p: float, epsilon: float, rowscale: Any, layerscale: Any,
    prenorm: bool, residual_in_fp32: bool, return_dropout_mask: bool, rms: bool,
) -> Any:  # fmt: skip
    """Return the norm of ``dropout(x0 * scales) + residual``, with that sum itself and the mask if asked for."""
    wide = accumulated(x0)
    if rowscale is not None:
        wide = wide * rowscale.unsqueeze(-1)
    if layerscale is not None:
        wide = wide * layerscale
    mask = torch.ones_like(x0, dtype=torch.uint8)
    if dropout_p > 0:
        kept = torch.rand_like(wide) >= dropout_p
        wide, mask = wide.masked_fill(~kept, 0) / (1 - dropout_p), kept.to(torch.uint8)
    dtype = torch.float32 if residual_in_fp32 else x0.dtype
    if residual is not None:
        wide, dtype = wide + residual, residual.dtype
    norm = _norms.rms_norm(wide, weight, epsilon) if rms else _norms.layer_norm(wide, weight, bias, epsilon)
    if rms and bias is not None:
        norm = norm + bias
    results = [norm.to(x0.dtype)]
    if prenorm:
        results.append(wide.to(dtype))
    if return_dropout_mask:
        results.append(mask)
    return tuple(results) if len(results) > 1 else results[0]


def layer_norm(x: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    """Return the layer norm of x."""
    return _norms.layer_norm(x, weight, bias, epsilon).to(x.dtype)


def dropout_add_layer_norm(
    x0: Any, residual: Any, weight: Any, bias: Any, dropout_p: float, epsilon: float, rowscale: Any = None,
    layerscale: Any = None, prenorm: bool = False, residual_in_fp32: bool = False, return_dropout_mask: bool = False,
) -> Any:  # fmt: skip
    """Return the layer norm of ``dropout(x0) + residual``, and that sum with `prenorm`."""
    return normed(
        x0, residual, weight, bias, dropout_p, epsilon, rowscale, layerscale, prenorm, residual_in_fp32,
        return_dropout_mask, rms=False,
    )  # fmt: skip


class DropoutAddLayerNorm(torch.nn.Module):
    """The module of `dropout_add_layer_norm`."""

    def __init__(
        self, hidden_size: int, prenorm: bool = False, p: float = 0.0, eps: float = 1e-5,
        residual_in_fp32: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.prenorm, self.p, self.eps, self.residual_in_fp32 = prenorm, p, eps, residual_in_fp32
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.bias = torch.nn.Parameter(torch.zeros(hidden_size, device=device, dtype=dtype))

    def forward(self, x0: Any, residual: Any = None) -> Any:
        """Return the norm, and the sum with `prenorm`."""
        return dropout_add_layer_norm(
            x0, residual, self.weight, self.bias, self.p if self.training else 0.0, self.eps,
            prenorm=self.prenorm, residual_in_fp32=self.residual_in_fp32,
        )  # fmt: skip
