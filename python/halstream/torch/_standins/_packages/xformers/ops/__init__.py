"""Stand-in for xformers.ops."""

from . import fmha
from .fmha import AttentionBias, LowerTriangularMask, memory_efficient_attention, memory_efficient_attention_forward

__all__ = [
    "AttentionBias",
    "LowerTriangularMask",
    "fmha",
    "memory_efficient_attention",
    "memory_efficient_attention_forward",
]
