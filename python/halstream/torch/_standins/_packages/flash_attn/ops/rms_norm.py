"""Stand-in for flash_attn.ops.rms_norm: dropout, a residual and an RMS norm in one call."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _norms

import torch

from .layer_norm import normed

__all__ = ["DropoutAddRMSNorm", "RMSNorm", "dropout_add_rms_norm", "rms_norm"]


def rms_norm(x: Any, weight: Any, epsilon: float) -> Any:
    """Return the RMS norm of x."""
    return _norms.rms_norm(x, weight, epsilon).to(x.dtype)


def dropout_add_rms_norm(
    x0: Any, residual: Any, weight: Any, bias: Any, dropout_p: float, epsilon: float, rowscale: Any = None,
    layerscale: Any = None, prenorm: bool = False, residual_in_fp32: bool = False, return_dropout_mask: bool = False,
) -> Any:  # fmt: skip
    """Return the RMS norm of ``dropout(x0) + residual``, and that sum with `prenorm`."""
    return normed(
        x0, residual, weight, bias, dropout_p, epsilon, rowscale, layerscale, prenorm, residual_in_fp32,
        return_dropout_mask, rms=True,
    )  # fmt: skip


class RMSNorm(torch.nn.Module):
    """The module of `rms_norm`."""

    def __init__(self, hidden_size: int, eps: float = 1e-5, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias", None)

    def forward(self, x: Any) -> Any:
        """Return the norm."""
        return rms_norm(x, self.weight, self.eps)


class DropoutAddRMSNorm(torch.nn.Module):
    """The module of `dropout_add_rms_norm`."""

    def __init__(
        self, hidden_size: int, prenorm: bool = False, p: float = 0.0, eps: float = 1e-5,
        residual_in_fp32: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.prenorm, self.p, self.eps, self.residual_in_fp32 = prenorm, p, eps, residual_in_fp32
        self.weight = torch.nn.Parameter(torch.ones(hidden_size, device=device, dtype=dtype))
        self.register_parameter("bias", None)

    def forward(self, x0: Any, residual: Any = None) -> Any:
        """Return the norm, and the sum with `prenorm`."""
        return dropout_add_rms_norm(
            x0, residual, self.weight, None, self.p if self.training else 0.0, self.eps,
            prenorm=self.prenorm, residual_in_fp32=self.residual_in_fp32,
        )  # fmt: skip
