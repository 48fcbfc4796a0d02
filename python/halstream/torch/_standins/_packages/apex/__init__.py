"""Stand-in for NVIDIA's apex: fused optimizers, normalizations and kernels over lists of tensors."""

from . import normalization, optimizers

__all__ = ["normalization", "optimizers"]
