"""Stand-in for flash_attn.layers.rotary: rotary position embeddings."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._attention import padded, unpadded
from halstream.torch._standins._rotary import rotated

import torch

__all__ = ["RotaryEmbedding", "apply_rotary_emb", "apply_rotary_emb_kv_", "apply_rotary_emb_qkv_"]


def apply_rotary_emb(
    x: Any,
    cos: Any,
    sin: Any,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: Any = 0,
    cu_seqlens: Any = None,
    max_seqlen: int | None = None,
) -> Any:
    """Rotate the first dimensions of x (batch, length, heads, width), or (total, heads, width) with `cu_seqlens`."""
    if cu_seqlens is None:
        found = rotated(x, cos, sin, interleaved, seqlen_offsets)
    else:
        batch = padded(x, cu_seqlens, max_seqlen or 0)
        found = unpadded(rotated(batch, cos, sin, interleaved, seqlen_offsets), cu_seqlens, x.shape[0])
    return x.copy_(found) if inplace else found


apply_rotary_emb_func = apply_rotary_emb


def apply_rotary_emb_qkv_(
    qkv: Any,
    cos: Any,
    sin: Any,
    cos_k: Any = None,
    sin_k: Any = None,
    interleaved: bool = False,
    seqlen_offsets: Any = 0,
    num_heads_q: int | None = None,
) -> Any:
    """Rotate queries and keys in place: qkv is (batch, length, 3, heads, width), or has all heads in one dimension."""
    if qkv.dim() == 5:
        q, k = qkv[:, :, 0], qkv[:, :, 1]
    else:
        heads = num_heads_q or 0
        of_keys = (qkv.shape[2] - heads) // 2
        q, k = qkv[:, :, :heads], qkv[:, :, heads : heads + of_keys]
    q.copy_(rotated(q, cos, sin, interleaved, seqlen_offsets))
    k.copy_(rotated(k, cos if cos_k is None else cos_k, sin if sin_k is None else sin_k, interleaved, seqlen_offsets))
    return qkv


def apply_rotary_emb_kv_(kv: Any, cos: Any, sin: Any, interleaved: bool = False, seqlen_offsets: Any = 0) -> Any:
    """Rotate the keys of kv (batch, length, 2, heads, width) in place."""
    k = kv[:, :, 0]
    k.copy_(rotated(k, cos, sin, interleaved, seqlen_offsets))
    return kv


class RotaryEmbedding(torch.nn.Module):
    """Rotary embeddings with their tables of angles; with `scale_base` those of XPos."""

    def __init__(
        self, dim: int, base: float = 10000.0, interleaved: bool = False, scale_base: float | None = None,
        device: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.dim, self.base, self.interleaved, self.scale_base = dim, float(base), interleaved, scale_base
        steps = torch.arange(0, dim, 2, device=device, dtype=torch.float32)
        self.register_buffer("inv_freq", 1.0 / self.base ** (steps / dim), persistent=False)
        scale = None if scale_base is None else (steps + 0.4 * dim) / (1.4 * dim)
        self.register_buffer("scale", scale, persistent=False)

    def _angles(self, length: int, dtype: Any) -> tuple[Any, Any, Any, Any]:
        """Return cosines and sines for queries and for keys."""
        steps = torch.arange(length, device=self.inv_freq.device, dtype=torch.float32)
        angles = torch.outer(steps, self.inv_freq.float())
        cos, sin = angles.cos(), angles.sin()
        if self.scale is None:
            cos, sin = cos.to(dtype), sin.to(dtype)
            return cos, sin, cos, sin
        scale = self.scale ** ((steps - length // 2) / self.scale_base)[:, None]
        return (cos * scale).to(dtype), (sin * scale).to(dtype), (cos / scale).to(dtype), (sin / scale).to(dtype)

    def forward(
        self, qkv: Any, kv: Any = None, seqlen_offset: Any = 0, max_seqlen: int | None = None,
        num_heads_q: int | None = None,
    ) -> Any:  # fmt: skip
        """Rotate qkv, or q and kv, in place, for positions from `seqlen_offset` on."""
        length = max_seqlen
        if length is None:
            if isinstance(seqlen_offset, torch.Tensor):
                raise ValueError("RotaryEmbedding needs max_seqlen where seqlen_offset is a tensor")
            length = qkv.shape[1] + seqlen_offset
        cos, sin, cos_k, sin_k = self._angles(length, qkv.dtype)
        if kv is None:
            return apply_rotary_emb_qkv_(qkv, cos, sin, cos_k, sin_k, self.interleaved, seqlen_offset, num_heads_q)
        q = apply_rotary_emb(qkv, cos, sin, self.interleaved, True, seqlen_offset)
        return q, apply_rotary_emb_kv_(kv, cos_k, sin_k, self.interleaved, seqlen_offset)
