"""Stand-in for xformers.ops.fmha."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._attention import Rule, attend
from halstream.torch._standins._common import check, need_cuda, refuse

import torch

from . import attn_bias as attn_bias
from .attn_bias import (
    AttentionBias,
    BlockDiagonalCausalMask,
    BlockDiagonalMask,
    LowerTriangularMask,
)

__all__ = [
    "AttentionBias",
    "BlockDiagonalCausalMask",
    "BlockDiagonalMask",
    "LowerTriangularMask",
    "memory_efficient_attention",
    "memory_efficient_attention_forward",
]


def memory_efficient_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_bias: Any = None,
    p: float = 0.0,
    scale: float | None = None,
    *,
    op: Any = None,
    output_dtype: Any = None,
) -> Any:
    """Attention of (batch, length, heads, width), without heads or with groups of them; `op` changes no result."""
    need_cuda("xformers", query=query, key=key, value=value)
    check(query.dtype == key.dtype == value.dtype, "Query/Key/Value should all have the same dtype")
    if isinstance(attn_bias, torch.Tensor):
        bias, added = AttentionBias(), attn_bias
    elif attn_bias is None:
        bias, added = AttentionBias(), None
    elif isinstance(attn_bias, AttentionBias):
        bias, added = attn_bias, attn_bias.added
    else:
        refuse(f"memory_efficient_attention(attn_bias={attn_bias!r})", "give a tensor or a mask of xformers.ops.fmha")
    dims = query.dim()
    q, k, v = (
        one.unsqueeze(2) if dims == 3 else one.flatten(2, 3) if dims == 5 else one for one in (query, key, value)
    )
    check(q.shape[2] == k.shape[2] == v.shape[2], "Query/Key/Value should have as many heads; expand those of the keys")
    if added is not None and dims == 3 and added.dim() == 3:
        added = added.unsqueeze(1)
    if added is not None and added.dim() == 5:
        added = added.flatten(1, 2)
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    out = torch.zeros(*q.shape[:3], v.shape[-1], dtype=q.dtype, device=q.device)
    parts, rows = [], 0
    for own, seen in bias.blocks(q.shape[1], k.shape[1]):
        part_q, part_k, part_v = q[:, own], k[:, seen], v[:, seen]
        rule = Rule(scale=scale, mask=bias.seen(part_q.shape[1], part_k.shape[1], q.device))
        if added is not None:
            rule.bias = added[..., own, seen]
        parts.append(attend(part_q, part_k, part_v, rule, p)[0])
        rows = own.stop
    found = torch.cat([*parts, out[:, rows:]], 1)
    found = found if output_dtype is None else found.to(output_dtype)
    return found.view(*query.shape[:-1], value.shape[-1])


def memory_efficient_attention_forward(
    query: Any, key: Any, value: Any, attn_bias: Any = None, p: float = 0.0, scale: float | None = None, *,
    op: Any = None, output_dtype: Any = None,
) -> Any:  # fmt: skip
    """Do the same without derivatives."""
    with torch.no_grad():
        return memory_efficient_attention(query, key, value, attn_bias, p, scale, output_dtype=output_dtype)
