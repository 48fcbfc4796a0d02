"""Kernels of servers of language models on torch's operators: activations, norms, rotations, experts.

They write their results into the tensors that are given for them, and never wait for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import _norms
from ._common import accumulated, check, refuse

__all__ = [
    "ACTIVATIONS",
    "GATED",
    "fused_add_rms_norm",
    "moe_align_block_size",
    "moe_sum",
    "rms_norm",
    "rotary_embedding",
    "topk_softmax",
]

_functional = torch.nn.functional


def _gelu_tanh(x: Any) -> Any:
    return _functional.gelu(x, approximate="tanh")


def _gated(activation: Callable[[Any], Any], first: bool = True) -> Callable[[Any, Any], None]:
    """Return a kernel that multiplies an activation of one half of the input with the other half."""

    def kernel(out: Any, input: Any) -> None:
        gate, up = input.chunk(2, -1) if first else reversed(input.chunk(2, -1))
        out.copy_(activation(accumulated(gate)).to(input.dtype) * up)

    return kernel


#: Kernels that write ``activation(gate) * up`` for the two halves of the last dimension.
GATED = {
    "silu_and_mul": _gated(_functional.silu),
    "mul_and_silu": _gated(_functional.silu, first=False),
    "gelu_and_mul": _gated(_functional.gelu),
    "gelu_tanh_and_mul": _gated(_gelu_tanh),
}


def _plain(activation: Callable[[Any], Any]) -> Callable[[Any, Any], None]:
    def kernel(out: Any, input: Any) -> None:
        out.copy_(activation(accumulated(input)))

    return kernel


#: Kernels that write an activation of the input.
ACTIVATIONS = {
    "gelu_new": _plain(_gelu_tanh),
    "gelu_fast": _plain(_gelu_tanh),
    "gelu_quick": _plain(lambda x: x * torch.sigmoid(1.702 * x)),
}


def rms_norm(out: Any, input: Any, weight: Any, epsilon: float) -> None:
    """Write the RMS norm of the input."""
    out.copy_(_norms.rms_norm(input, weight, epsilon))


def fused_add_rms_norm(input: Any, residual: Any, weight: Any, epsilon: float) -> None:
    """Add the input to the residual, and write the norm of that into the input."""
    residual.copy_(accumulated(residual) + accumulated(input))
    input.copy_(_norms.rms_norm(residual, weight, epsilon))


def rotary_embedding(
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool,
    rope_dim_offset: int = 0,
    inverse: bool = False,
) -> None:
    """Rotate the heads of queries and keys in place, each token for its position."""
    tokens = positions.numel()
    angles = cos_sin_cache[positions.flatten().long()].view(tokens, 1, -1)
    cos, sin = (accumulated(one) for one in angles.chunk(2, -1))
    if inverse:
        sin = -sin
    for one in (query, key):
        if one is None:
            continue
        heads = (one if one.shape[-1] == head_size else one.unflatten(-1, (-1, head_size))).view(tokens, -1, head_size)
        part = heads[..., rope_dim_offset : rope_dim_offset + angles.shape[-1]]
        first, second = part.chunk(2, -1) if is_neox else (part[..., ::2], part[..., 1::2])
        x, y = accumulated(first), accumulated(second)
        turned = (x * cos - y * sin, y * cos + x * sin)
        first.copy_(turned[0])
        second.copy_(turned[1])


# -- mixtures of experts ------------------------------------------------------------


def topk_softmax(
    topk_weights: Any,
    topk_indices: Any,
    token_expert_indices: Any,
    gating_output: Any,
    renormalize: bool = False,
    bias: Any = None,
    is_padding: Any = None,
) -> None:
    """Write weights and numbers of the best experts of each token; among equal ones the first."""
    if is_padding is not None:
        refuse("topk_softmax(is_padding=...)", "leave padded tokens out of gating_output")
    weights = accumulated(gating_output).softmax(-1)
    tokens, count = topk_weights.shape
    order = (weights if bias is None else weights + bias).argsort(dim=-1, descending=True, stable=True)[:, :count]
    best = weights.gather(-1, order)
    topk_weights.copy_(best / best.sum(-1, keepdim=True) if renormalize else best)
    topk_indices.copy_(order)
    if token_expert_indices is not None:
        steps = torch.arange(count, device=order.device) * tokens
        token_expert_indices.copy_(steps + torch.arange(tokens, device=order.device).unsqueeze(1))


def moe_sum(input: Any, output: Any) -> None:
    """Write the sum over the experts of each token: input is (tokens, experts, width)."""
    output.copy_(accumulated(input).sum(1))


def moe_align_block_size(
    topk_ids: Any,
    num_experts: int,
    block_size: int,
    sorted_token_ids: Any,
    experts_ids: Any,
    num_tokens_post_pad: Any,
    maybe_expert_map: Any = None,
) -> None:
    """Write the tokens in the order of their experts, each one's padded to whole blocks, and the expert of each block.

    Tokens of no expert are left out. Padding is the number of tokens.
    """
    if maybe_expert_map is not None:
        refuse("moe_align_block_size(maybe_expert_map=...)", "map topk_ids to local experts first")
    check(sorted_token_ids.dtype == torch.int32, "sorted_token_ids must be int32")
    ids, device = topk_ids.flatten().long(), topk_ids.device
    ids = torch.where((ids >= 0) & (ids < num_experts), ids, num_experts)
    counts = torch.zeros(num_experts + 1, dtype=torch.long, device=device).scatter_add_(0, ids, torch.ones_like(ids))
    blocks = (counts[:num_experts] + block_size - 1) // block_size
    ends = blocks.cumsum(0)
    # Tokens of no expert get the place behind all.
    capacity = sorted_token_ids.numel()
    starts = torch.cat(((ends - blocks) * block_size, ends.new_full((1,), capacity)))
    order = ids.argsort(stable=True)
    expert = ids[order]
    rank = torch.arange(ids.numel(), device=device) - (counts.cumsum(0) - counts)[expert]
    places = torch.where(expert < num_experts, starts[expert] + rank, capacity)
    found = torch.full((capacity + 1,), ids.numel(), dtype=torch.int32, device=device)
    found = found.index_put((places,), order.to(torch.int32))
    sorted_token_ids.copy_(found[:capacity].view(sorted_token_ids.shape))
    block = torch.arange(experts_ids.numel(), device=device)
    of_block = torch.searchsorted(ends, block, right=True)
    experts_ids.copy_(torch.where(of_block < num_experts, of_block, 0).view(experts_ids.shape))
    num_tokens_post_pad.copy_((ends[-1:] * block_size).view(num_tokens_post_pad.shape))
