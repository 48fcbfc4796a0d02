"""Stand-in for vllm._moe_C: the operators of torch.ops._moe_C, for mixtures of experts."""

from __future__ import annotations

from halstream.torch._standins import _operators, _serving

__all__: list[str] = []

_operators.register(
    "vllm",
    "_moe_C",
    {
        "topk_softmax(Tensor! topk_weights, Tensor! topk_indices, Tensor! token_expert_indices, Tensor gating_output, "
        "bool renormalize=False, Tensor? bias=None, Tensor? is_padding=None) -> ()": _serving.topk_softmax,
        "moe_sum(Tensor input, Tensor! output) -> ()": _serving.moe_sum,
        "moe_align_block_size(Tensor topk_ids, int num_experts, int block_size, Tensor! sorted_token_ids, "
        "Tensor! experts_ids, Tensor! num_tokens_post_pad, Tensor? maybe_expert_map=None) -> ()": (
            _serving.moe_align_block_size
        ),
    },
)
