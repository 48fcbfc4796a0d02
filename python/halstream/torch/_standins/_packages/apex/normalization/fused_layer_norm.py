"""Stand-in for apex.normalization.fused_layer_norm."""

from __future__ import annotations

import numbers
from typing import Any

from halstream.torch._standins import _norms
from halstream.torch._standins._common import check

import torch

__all__ = ["FusedLayerNorm", "FusedRMSNorm", "MixedFusedLayerNorm", "MixedFusedRMSNorm"]


def _cast(*tensors: Any) -> Any:
    """Return the tensors in autocast's type where autocast is on."""
    if not torch.is_autocast_enabled("cuda"):
        return tensors
    kind = torch.get_autocast_dtype("cuda")
    return tuple(one if one is None else one.to(kind) for one in tensors)


def _same(input: Any, weight: Any) -> None:
    check(input.dtype == weight.dtype, f"expected scalar type {input.dtype} of the weight but found {weight.dtype}")


def fused_layer_norm_affine(
    input: Any, weight: Any, bias: Any, normalized_shape: Any, eps: float = 1e-6, memory_efficient: bool = False
) -> Any:
    """Return the layer norm in the input's type, which is that of weight and bias."""
    input, weight, bias = _cast(input, weight, bias)
    _same(input, weight)
    return _norms.layer_norm(input, weight, bias, eps, len(normalized_shape)).to(input.dtype)


def fused_layer_norm(input: Any, normalized_shape: Any, eps: float = 1e-6, memory_efficient: bool = False) -> Any:
    """Return the layer norm without weights."""
    (input,) = _cast(input)
    return _norms.layer_norm(input, None, None, eps, len(normalized_shape)).to(input.dtype)


def mixed_dtype_fused_layer_norm_affine(
    input: Any, weight: Any, bias: Any, normalized_shape: Any, eps: float = 1e-6, memory_efficient: bool = False
) -> Any:
    """Return the layer norm in the type of weight and bias."""
    input, weight, bias = _cast(input, weight, bias)
    return _norms.layer_norm(input, weight, bias, eps, len(normalized_shape)).to(weight.dtype)


def fused_rms_norm_affine(
    input: Any, weight: Any, normalized_shape: Any, eps: float = 1e-6, memory_efficient: bool = False
) -> Any:
    """Return the RMS norm in the input's type, which is that of the weight."""
    input, weight = _cast(input, weight)
    _same(input, weight)
    return _norms.rms_norm(input, weight, eps, len(normalized_shape)).to(input.dtype)


def fused_rms_norm(input: Any, normalized_shape: Any, eps: float = 1e-6, memory_efficient: bool = False) -> Any:
    """Return the RMS norm without a weight."""
    (input,) = _cast(input)
    return _norms.rms_norm(input, None, eps, len(normalized_shape)).to(input.dtype)


def mixed_dtype_fused_rms_norm_affine(
    input: Any, weight: Any, normalized_shape: Any, eps: float = 1e-6, memory_efficient: bool = False
) -> Any:
    """Return the RMS norm in the weight's type."""
    input, weight = _cast(input, weight)
    return _norms.rms_norm(input, weight, eps, len(normalized_shape)).to(weight.dtype)


class _Norm(torch.nn.Module):
    """What the modules have in common: a shape, weights or none, and how they print."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, memory_efficient: bool = False
    ) -> None:
        super().__init__()
        if isinstance(normalized_shape, numbers.Integral):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = torch.Size(normalized_shape)
        self.eps, self.elementwise_affine, self.memory_efficient = eps, elementwise_affine, memory_efficient
        for name in ("weight", "bias") if self._biased else ("weight",):
            value = torch.nn.Parameter(torch.empty(*self.normalized_shape)) if elementwise_affine else None
            self.register_parameter(name, value)
        self.reset_parameters()

    _biased = True

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0."""
        if self.elementwise_affine:
            torch.nn.init.ones_(self.weight)
            if self._biased:
                torch.nn.init.zeros_(self.bias)

    def extra_repr(self) -> str:
        """Return the shape and the options."""
        return f"{tuple(self.normalized_shape)}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class FusedLayerNorm(_Norm):
    """Layer norm over the last dimensions."""

    def forward(self, input: Any) -> Any:
        """Return the layer norm."""
        if not self.elementwise_affine:
            return fused_layer_norm(input, self.normalized_shape, self.eps)
        return fused_layer_norm_affine(input, self.weight, self.bias, self.normalized_shape, self.eps)


class FusedRMSNorm(_Norm):
    """RMS norm over the last dimensions."""

    _biased = False

    def forward(self, input: Any) -> Any:
        """Return the RMS norm."""
        if not self.elementwise_affine:
            return fused_rms_norm(input, self.normalized_shape, self.eps)
        return fused_rms_norm_affine(input, self.weight, self.normalized_shape, self.eps)


class MixedFusedLayerNorm(FusedLayerNorm):
    """Layer norm whose result has the type of its weights."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, *, memory_efficient: bool = False) -> None:
        super().__init__(normalized_shape, eps, True, memory_efficient)

    def forward(self, input: Any) -> Any:
        """Return the layer norm."""
        return mixed_dtype_fused_layer_norm_affine(input, self.weight, self.bias, self.normalized_shape, self.eps)


class MixedFusedRMSNorm(FusedRMSNorm):
    """RMS norm whose result has the type of its weight."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, *, memory_efficient: bool = False) -> None:
        super().__init__(normalized_shape, eps, True, memory_efficient)

    def forward(self, input: Any) -> Any:
        """Return the RMS norm."""
        return mixed_dtype_fused_rms_norm_affine(input, self.weight, self.normalized_shape, self.eps)
