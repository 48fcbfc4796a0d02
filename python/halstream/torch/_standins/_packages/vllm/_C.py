"""Stand-in for vllm._C: the operators of torch.ops._C and torch.ops._C_cache_ops."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins import _attention, _operators, _serving
from halstream.torch._standins._common import accumulated, refuse

import torch

__all__: list[str] = []

_FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
_SAME = ("auto", "float16", "bfloat16")


def _kind(operator: str, kv_cache_dtype: str) -> Any:
    """Return the 8-bit type that a cache holds, None if it holds the type of the keys."""
    if kv_cache_dtype in _SAME:
        return None
    if kv_cache_dtype not in _FP8:
        refuse(f"{operator}(kv_cache_dtype={kv_cache_dtype!r})", f"give one of {', '.join((*_SAME, *_FP8))}")
    return _FP8[kv_cache_dtype]


def _scale(scale: Any, heads_last: int = 0) -> Any:
    """Return a scale that multiplies; one for each head stands in front of that many dimensions."""
    if not isinstance(scale, torch.Tensor) or scale.numel() == 1:
        return scale
    return scale.view(-1, *[1] * heads_last)


def _stored(value: Any, cache: Any, kind: Any, scale: Any) -> Any:
    """Return values as the cache holds them."""
    if kind is None:
        return value.to(cache.dtype)
    return (value.float() / scale).to(kind).view(cache.dtype)


def _loaded(cache: Any, kind: Any, scale: Any, dtype: Any) -> Any:
    """Return what a cache holds as values."""
    return cache.to(dtype) if kind is None else (cache.view(kind).float() * scale).to(dtype)


def _write(cache: Any, where: Any, slots: Any, value: Any) -> None:
    """Write a value for each slot but those below 0, which are padding.

    Padding writes what the first real slot gets once more; without one it writes what is there.
    """
    real = slots >= 0
    first = real.int().argmax(0, keepdim=True)  # an index of no dimension would wait for the device
    column = real.view(-1, *[1] * (value.dim() - 1))
    value = torch.where(column, value, value[first])
    where = where(torch.where(real, slots, slots[first].clamp(min=0)))
    cache[where] = torch.where(real.any(), value, cache[where])


def reshape_and_cache(
    key: Any, value: Any, key_cache: Any, value_cache: Any, slot_mapping: Any, kv_cache_dtype: str, k_scale: Any,
    v_scale: Any,
) -> None:  # fmt: skip
    """Write keys into (blocks, heads, width / x, block size, x), and values into (blocks, heads, width, block size)."""
    kind = _kind("reshape_and_cache", kv_cache_dtype)
    slots = slot_mapping.long()
    size, x = key_cache.shape[3], key_cache.shape[4]
    key, value = key[: slots.shape[0]].unflatten(-1, (-1, x)), value[: slots.shape[0]]
    _write(
        key_cache, lambda at: (at // size, slice(None), slice(None), at % size), slots,
        _stored(key, key_cache, kind, k_scale),
    )  # fmt: skip
    _write(
        value_cache, lambda at: (at // size, slice(None), slice(None), at % size), slots,
        _stored(value, value_cache, kind, v_scale),
    )  # fmt: skip


def reshape_and_cache_flash(
    key: Any, value: Any, key_cache: Any, value_cache: Any, slot_mapping: Any, kv_cache_dtype: str, k_scale: Any,
    v_scale: Any,
) -> None:  # fmt: skip
    """Write keys and values into caches of shape (blocks, block size, heads, width)."""
    kind = _kind("reshape_and_cache_flash", kv_cache_dtype)
    slots, size = slot_mapping.long(), key_cache.shape[1]
    for new, cache, scale in ((key, key_cache, k_scale), (value, value_cache, v_scale)):
        stored = _stored(new[: slots.shape[0]], cache, kind, _scale(scale, 1))
        _write(cache, lambda at: (at // size, at % size), slots, stored)


def concat_and_cache_mla(
    kv_c: Any, k_pe: Any, kv_cache: Any, slot_mapping: Any, kv_cache_dtype: str, scale: Any
) -> None:
    """Write latent keys and their rotated parts, one behind the other, into (blocks, block size, width)."""
    kind = _kind("concat_and_cache_mla", kv_cache_dtype)
    slots, size = slot_mapping.long(), kv_cache.shape[1]
    count = slots.shape[0]
    joined = torch.cat((kv_c[:count], k_pe[:count].reshape(count, -1)), -1)
    _write(kv_cache, lambda at: (at // size, at % size), slots, _stored(joined, kv_cache, kind, scale))


def convert_fp8(dst_cache: Any, src_cache: Any, scale: float, kv_cache_dtype: str) -> None:
    """Convert a cache to 8 bits, or one of 8 bits back."""
    kind = _FP8["fp8"] if kv_cache_dtype == "auto" else _kind("convert_fp8", kv_cache_dtype)
    if src_cache.element_size() == 1:
        dst_cache.copy_(_loaded(src_cache, kind, scale, dst_cache.dtype))
    else:
        dst_cache.copy_(_stored(src_cache, dst_cache, kind, scale))


def copy_blocks(key_caches: Any, value_caches: Any, block_mapping: Any) -> None:
    """Copy blocks of each cache to others of it: block_mapping is (pairs, 2)."""
    source, target = block_mapping.long().unbind(1)
    for cache in (*key_caches, *value_caches):
        cache[target] = cache[source]


def swap_blocks(src: Any, dst: Any, block_mapping: Any) -> None:
    """Copy blocks of a cache to blocks of another one, which may be in the host's memory."""
    for source, target in block_mapping.tolist():
        dst[target].copy_(src[source], non_blocking=True)


def _swap_blocks_of_bytes(src: Any, dst: Any, block_size_in_bytes: int, block_mapping: Any) -> None:
    """Do the same where the caches are taken as bytes."""
    source, target = (one.view(-1).view(torch.uint8).view(-1, block_size_in_bytes) for one in (src, dst))
    swap_blocks(source, target, block_mapping)


def _gathered(dst: Any, src_cache: Any, block_table: Any, cu_seq_lens: Any, seq_starts: Any, convert: Any) -> None:
    """Write what the tables' sequences hold one behind the other, from their start tokens on."""
    token, starts = torch.arange(dst.shape[0], device=dst.device), cu_seq_lens.long()
    sequence = (torch.searchsorted(starts, token, right=True) - 1).clamp(max=block_table.shape[0] - 1)
    place = token - starts[sequence]
    if seq_starts is not None:
        place = place + seq_starts.long()[sequence]
    size, there = src_cache.shape[1], token < starts[-1]
    place = torch.where(there, place, 0)
    found = convert(src_cache[block_table.long()[sequence, place // size], place % size])
    dst.copy_(torch.where(there.view(-1, *[1] * (dst.dim() - 1)), found.view(dst.shape), dst))


def cp_gather_cache(
    src_cache: Any, dst: Any, block_table: Any, cu_seq_lens: Any, batch_size: int, seq_starts: Any = None
) -> None:
    """Write what sequences hold in a cache of shape (blocks, block size, ...) one behind the other."""
    _gathered(dst, src_cache, block_table[:batch_size], cu_seq_lens[: batch_size + 1], seq_starts, lambda one: one)


def gather_and_maybe_dequant_cache(
    src_cache: Any, dst: Any, block_table: Any, cu_seq_lens: Any, token_to_seq: Any, num_tokens: int,
    kv_cache_dtype: str, scale: Any, seq_starts: Any = None,
) -> None:  # fmt: skip
    """Do the same with values of 8 bits converted."""
    kind = _kind("gather_and_maybe_dequant_cache", kv_cache_dtype)
    _gathered(
        dst[:num_tokens], src_cache, block_table, cu_seq_lens, seq_starts,
        lambda one: _loaded(one, kind, scale, dst.dtype),
    )  # fmt: skip


def _gather_of_batch(
    src_cache: Any, dst: Any, block_table: Any, cu_seq_lens: Any, batch_size: int, kv_cache_dtype: str, scale: Any,
    seq_starts: Any = None,
) -> None:  # fmt: skip
    """Do the same with the arguments that it had before vLLM 0.13."""
    gather_and_maybe_dequant_cache(
        src_cache, dst, block_table[:batch_size], cu_seq_lens[: batch_size + 1], None, dst.shape[0], kv_cache_dtype,
        scale, seq_starts,
    )  # fmt: skip


# -- attention ------------------------------------------------------------------


def _attention_of_pages(
    operator: str, out: Any, query: Any, key_cache: Any, value_cache: Any, scale: float, block_tables: Any,
    seq_lens: Any, alibi_slopes: Any, kv_cache_dtype: str, k_scale: Any, v_scale: Any, vert_stride: int,
) -> Any:  # fmt: skip
    """Write the result and return the logarithms of the sums, (sequences, heads)."""
    if vert_stride > 1:
        refuse(f"{operator}(blocksparse_vert_stride={vert_stride})", "give 1 for attention to all blocks")
    kind = _kind(operator, kv_cache_dtype)
    table = block_tables.long().clamp(0, key_cache.shape[0] - 1)
    keys = _loaded(key_cache[table], kind, k_scale, query.dtype)  # (sequences, blocks, heads, width / x, size, x)
    keys = keys.permute(0, 1, 4, 2, 3, 5).flatten(4, 5).flatten(1, 2)
    values = _loaded(value_cache[table], kind, v_scale, query.dtype)  # (sequences, blocks, heads, width, size)
    values = values.permute(0, 1, 4, 2, 3).flatten(1, 2)
    rule = _attention.Rule(scale=scale, slopes=alibi_slopes, k_lengths=seq_lens)
    found, lse, _ = _attention.attend(query.unsqueeze(1), keys, values, rule)
    out.copy_(found.squeeze(1))
    return lse.squeeze(-1)


def paged_attention_v1(
    out: Any, query: Any, key_cache: Any, value_cache: Any, num_kv_heads: int, scale: float, block_tables: Any,
    seq_lens: Any, block_size: int, max_seq_len: int, alibi_slopes: Any, kv_cache_dtype: str, k_scale: Any,
    v_scale: Any, tp_rank: int, blocksparse_local_blocks: int, blocksparse_vert_stride: int,
    blocksparse_block_size: int, blocksparse_head_sliding_step: int,
) -> None:  # fmt: skip
    """Attention of one query for each sequence to the pages of its table."""
    _attention_of_pages(
        "paged_attention_v1", out, query, key_cache, value_cache, scale, block_tables, seq_lens, alibi_slopes,
        kv_cache_dtype, k_scale, v_scale, blocksparse_vert_stride,
    )  # fmt: skip


def paged_attention_v2(
    out: Any, exp_sums: Any, max_logits: Any, tmp_out: Any, query: Any, key_cache: Any, value_cache: Any,
    num_kv_heads: int, scale: float, block_tables: Any, seq_lens: Any, block_size: int, max_seq_len: int,
    alibi_slopes: Any, kv_cache_dtype: str, k_scale: Any, v_scale: Any, tp_rank: int, blocksparse_local_blocks: int,
    blocksparse_vert_stride: int, blocksparse_block_size: int, blocksparse_head_sliding_step: int,
) -> None:  # fmt: skip
    """Do the same, and write parts that add up to the result: the first one has all of it."""
    lse = _attention_of_pages(
        "paged_attention_v2", out, query, key_cache, value_cache, scale, block_tables, seq_lens, alibi_slopes,
        kv_cache_dtype, k_scale, v_scale, blocksparse_vert_stride,
    )  # fmt: skip
    for part, rest, first in ((exp_sums, 0, 1), (max_logits, float("-inf"), lse), (tmp_out, 0, out)):
        part.fill_(rest)
        part[:, :, 0] = first


def merge_attn_states(
    output: Any, output_lse: Any, prefix_output: Any, prefix_lse: Any, suffix_output: Any, suffix_lse: Any,
    prefill_tokens_with_context: int | None = None, output_scale: Any = None,
) -> None:  # fmt: skip
    """Write attention to two sets of keys from that to each: results (tokens, heads, width), sums (heads, tokens)."""
    if output_scale is not None:
        refuse("merge_attn_states(output_scale=...)", "convert the result to 8 bits afterwards")
    tokens = output.shape[0]
    merged = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    # A part without keys has infinite logarithms, and no weight.
    parts = [one.masked_fill(one == float("inf"), float("-inf")) for one in (prefix_lse, suffix_lse)]
    parts[0] = parts[0].masked_fill(torch.arange(tokens, device=output.device) >= merged, float("-inf"))
    lse = torch.logaddexp(*parts)
    weights = [torch.exp(one - lse).nan_to_num(0).t().unsqueeze(-1) for one in parts]
    whole = sum(w * accumulated(one) for w, one in zip(weights, (prefix_output, suffix_output), strict=True))
    output.copy_(whole)
    if output_lse is not None:
        output_lse.copy_(lse)


# -- the rest -------------------------------------------------------------------


def fatrelu_and_mul(out: Any, input: Any, threshold: float) -> None:
    """Write the first half where it is above the threshold, times the other half."""
    gate, up = input.chunk(2, -1)
    out.copy_(torch.where(gate > threshold, gate, 0) * up)


def swigluoai_and_mul(out: Any, input: Any, alpha: float = 1.702, limit: float = 7.0) -> None:
    """Write the gated activation of GPT-OSS, whose gates stand at even places."""
    gate = accumulated(input[..., ::2]).clamp(max=limit)
    up = accumulated(input[..., 1::2]).clamp(-limit, limit)
    out.copy_((up + 1) * gate * torch.sigmoid(alpha * gate))


def apply_repetition_penalties_(logits: Any, prompt_mask: Any, output_mask: Any, repetition_penalties: Any) -> None:
    """Divide logits above 0 of tokens that were there, and multiply the others."""
    by = torch.where(prompt_mask | output_mask, repetition_penalties.unsqueeze(1).to(logits.dtype), 1)
    logits.copy_(torch.where(logits > 0, logits / by, logits * by))


_PAGED = (
    "Tensor query, Tensor key_cache, Tensor value_cache, int num_kv_heads, float scale, Tensor block_tables, "
    "Tensor seq_lens, int block_size, int max_seq_len, Tensor? alibi_slopes, str kv_cache_dtype, Tensor k_scale, "
    "Tensor v_scale, int tp_rank, int blocksparse_local_blocks, int blocksparse_vert_stride, "
    "int blocksparse_block_size, int blocksparse_head_sliding_step) -> ()"
)
_CACHED = (
    "(Tensor key, Tensor value, Tensor! key_cache, Tensor! value_cache, Tensor slot_mapping, str kv_cache_dtype, "
    "Tensor k_scale, Tensor v_scale) -> ()"
)
_GATHER = "(Tensor src_cache, Tensor! dst, Tensor block_table, Tensor cu_seq_lens, "

_operators.register(
    "vllm",
    "_C",
    {
        f"paged_attention_v1(Tensor! out, {_PAGED}": paged_attention_v1,
        f"paged_attention_v2(Tensor! out, Tensor! exp_sums, Tensor! max_logits, Tensor! tmp_out, {_PAGED}": (
            paged_attention_v2
        ),
        "merge_attn_states(Tensor! output, Tensor!? output_lse, Tensor prefix_output, Tensor prefix_lse, "
        "Tensor suffix_output, Tensor suffix_lse, int? prefill_tokens_with_context=None, Tensor? output_scale=None) "
        "-> ()": merge_attn_states,
        **{f"{name}(Tensor! out, Tensor input) -> ()": kernel for name, kernel in _serving.GATED.items()},
        **{f"{name}(Tensor! out, Tensor input) -> ()": kernel for name, kernel in _serving.ACTIVATIONS.items()},
        "fatrelu_and_mul(Tensor! out, Tensor input, float threshold) -> ()": fatrelu_and_mul,
        "swigluoai_and_mul(Tensor! out, Tensor input, float alpha=1.702, float limit=7.0) -> ()": swigluoai_and_mul,
        "rms_norm(Tensor! result, Tensor input, Tensor? weight, float epsilon) -> ()": _serving.rms_norm,
        "fused_add_rms_norm(Tensor! input, Tensor! residual, Tensor? weight, float epsilon) -> ()": (
            _serving.fused_add_rms_norm
        ),
        "rotary_embedding(Tensor positions, Tensor! query, Tensor!? key, int head_size, Tensor cos_sin_cache, "
        "bool is_neox, int rope_dim_offset=0, bool inverse=False) -> ()": _serving.rotary_embedding,
        "apply_repetition_penalties_(Tensor! logits, Tensor prompt_mask, Tensor output_mask, "
        "Tensor repetition_penalties) -> ()": apply_repetition_penalties_,
    },
)
_operators.register(
    "vllm",
    "_C_cache_ops",
    {
        f"reshape_and_cache{_CACHED}": reshape_and_cache,
        f"reshape_and_cache_flash{_CACHED}": reshape_and_cache_flash,
        "concat_and_cache_mla(Tensor kv_c, Tensor k_pe, Tensor! kv_cache, Tensor slot_mapping, str kv_cache_dtype, "
        "Tensor scale) -> ()": concat_and_cache_mla,
        "convert_fp8(Tensor! dst_cache, Tensor src_cache, float scale, str kv_cache_dtype) -> ()": convert_fp8,
        "copy_blocks(Tensor(a!)[] key_caches, Tensor(b!)[] value_caches, Tensor block_mapping) -> ()": copy_blocks,
        "swap_blocks(Tensor src, Tensor! dst, Tensor block_mapping) -> ()": swap_blocks,
        "swap_blocks.of_bytes(Tensor src, Tensor! dst, int block_size_in_bytes, Tensor block_mapping) -> ()": (
            _swap_blocks_of_bytes
        ),
        f"gather_cache{_GATHER}int batch_size, Tensor? seq_starts=None) -> ()": cp_gather_cache,
        f"cp_gather_cache{_GATHER}int batch_size, Tensor? seq_starts=None) -> ()": cp_gather_cache,
        f"gather_and_maybe_dequant_cache{_GATHER}Tensor token_to_seq, int num_tokens, str kv_cache_dtype, "
        "Tensor scale, Tensor? seq_starts=None) -> ()": gather_and_maybe_dequant_cache,
        f"gather_and_maybe_dequant_cache.of_batch{_GATHER}int batch_size, str kv_cache_dtype, Tensor scale, "
        "Tensor? seq_starts=None) -> ()": _gather_of_batch,
    },
)
