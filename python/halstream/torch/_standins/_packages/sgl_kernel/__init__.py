"""Stand-in for sgl_kernel: norms, gated activations, rotations and the choice of experts."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _operators, _serving
from halstream.torch._standins._common import refuse

import torch

__all__ = [
    "apply_rope_with_cos_sin_cache_inplace",
    "fused_add_rmsnorm",
    "gelu_and_mul",
    "gelu_tanh_and_mul",
    "gemma_fused_add_rmsnorm",
    "gemma_rmsnorm",
    "moe_align_block_size",
    "rmsnorm",
    "silu_and_mul",
    "topk_softmax",
]

__version__ = "0.3.16"


def rmsnorm(input: Any, weight: Any, eps: float = 1e-6, out: Any = None, enable_pdl: bool | None = None) -> Any:
    """Return the RMS norm of the input, or write it into `out`."""
    out = torch.empty_like(input) if out is None else out
    _serving.rms_norm(out, input, weight, eps)
    return out


def gemma_rmsnorm(input: Any, weight: Any, eps: float = 1e-6, out: Any = None, enable_pdl: bool | None = None) -> Any:
    """Do the same with a weight that 1 is added to."""
    return rmsnorm(input, weight + 1, eps, out)


def fused_add_rmsnorm(
    input: Any, residual: Any, weight: Any, eps: float = 1e-6, enable_pdl: bool | None = None
) -> None:
    """Add the input to the residual, and write the norm of that into the input."""
    _serving.fused_add_rms_norm(input, residual, weight, eps)


def gemma_fused_add_rmsnorm(
    input: Any, residual: Any, weight: Any, eps: float = 1e-6, enable_pdl: bool | None = None
) -> None:
    """Do the same with a weight that 1 is added to."""
    _serving.fused_add_rms_norm(input, residual, weight + 1, eps)


def _gated(name: str, input: Any, out: Any) -> Any:
    if input.shape[-1] * input.dtype.itemsize % 16:
        raise ValueError("The pointers must be multiple of 16 bytes.")
    out = input.new_empty(*input.shape[:-1], input.shape[-1] // 2) if out is None else out
    _serving.GATED[name](out, input)
    return out


def silu_and_mul(input: Any, out: Any = None) -> Any:
    """Return SiLU of the first half of the last dimension, times the other half."""
    return _gated("silu_and_mul", input, out)


def gelu_and_mul(input: Any, out: Any = None) -> Any:
    """Return GELU of the first half of the last dimension, times the other half."""
    return _gated("gelu_and_mul", input, out)


def gelu_tanh_and_mul(input: Any, out: Any = None) -> Any:
    """Return the approximate GELU of the first half of the last dimension, times the other half."""
    return _gated("gelu_tanh_and_mul", input, out)


def apply_rope_with_cos_sin_cache_inplace(
    positions: Any,
    query: Any,
    key: Any,
    head_size: int,
    cos_sin_cache: Any,
    is_neox: bool = True,
    fused_set_kv_buffer_arg: Any = None,
    enable_pdl: bool | None = None,
) -> None:
    """Rotate the heads of queries and keys in place, each token for its position."""
    if fused_set_kv_buffer_arg is not None:
        refuse(
            "apply_rope_with_cos_sin_cache_inplace(fused_set_kv_buffer_arg=...)",
            "write keys and values by a call of its own",
        )
    if cos_sin_cache.dtype != torch.float32:
        raise ValueError("cos_sin_cache should be float32")
    _serving.rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox)


def topk_softmax(
    topk_weights: Any,
    topk_ids: Any,
    gating_output: Any,
    renormalize: bool = False,
    moe_softcapping: float = 0.0,
    correction_bias: Any = None,
) -> None:
    """Write weights and numbers of the best experts of each token."""
    if moe_softcapping:
        gating_output = moe_softcapping * torch.tanh(gating_output.float() / moe_softcapping)
    _serving.topk_softmax(topk_weights, topk_ids, None, gating_output, renormalize, correction_bias)


def moe_align_block_size(
    topk_ids: Any,
    num_experts: int,
    block_size: int,
    sorted_token_ids: Any,
    experts_ids: Any,
    num_tokens_post_pad: Any,
    cumsum_buffer: Any = None,
    pad_sorted_token_ids: bool = True,
) -> None:
    """Write the tokens in the order of their experts, each expert's padded to whole blocks, and each block's expert.

    `num_experts` counts expert -1 as well, whose tokens come first. What stands in `experts_ids` behind the
    last block stays.
    """
    found = torch.empty_like(experts_ids)
    _serving.moe_align_block_size(topk_ids + 1, num_experts, block_size, sorted_token_ids, found, num_tokens_post_pad)
    used = torch.arange(found.numel(), device=found.device) < num_tokens_post_pad // block_size
    experts_ids.copy_(torch.where(used.view(found.shape), found - 1, experts_ids))


def _reordered(out: Any, input: Any, weight: Any, eps: float, enable_pdl: bool = False) -> None:
    rmsnorm(input, weight, eps, out)


_operators.register(
    "sgl_kernel",
    "sgl_kernel",
    {
        "rmsnorm(Tensor! output, Tensor input, Tensor weight, float eps, bool enable_pdl=False) -> ()": _reordered,
        "fused_add_rmsnorm(Tensor! input, Tensor! residual, Tensor weight, float eps, bool enable_pdl=False) -> ()": (
            fused_add_rmsnorm
        ),
        "topk_softmax(Tensor! topk_weights, Tensor! topk_indices, Tensor gating_output, bool renormalize, "
        "float moe_softcapping=0.0, Tensor? correction_bias=None) -> ()": topk_softmax,
        **{
            f"{name}(Tensor! out, Tensor input) -> ()": _serving.GATED[name]
            for name in ("silu_and_mul", "gelu_and_mul", "gelu_tanh_and_mul")
        },
    },
)
