"""Stand-in for flash_attn.flash_attn_interface: attention of float16 and bfloat16 tensors."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._attention import (
    Rule,
    attend,
    attend_backward,
    of_pages,
    padded,
    unpadded,
)
from halstream.torch._standins._common import check, need_cuda, need_half, refuse
from halstream.torch._standins._rotary import rotated

import torch

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
]

_PACKAGE = "FlashAttention"
_WIDEST = 256  #: the greatest width of a head
_PAGE = 256  #: sizes of pages are multiples of it


def _checked(q: Any, k: Any, v: Any, slopes: Any, dropout_p: float, softcap: float) -> None:
    need_cuda(_PACKAGE, q=q, k=k, v=v, alibi_slopes=slopes)
    need_half(_PACKAGE, q)
    check(k.dtype == q.dtype, "query and key must have the same dtype")
    check(v.dtype == q.dtype, "query and value must have the same dtype")
    check(q.shape[-1] <= _WIDEST, "FlashAttention forward only supports head dimension at most 256")
    check(q.shape[-2] % k.shape[-2] == 0, "Number of heads in key/value must divide number of heads in query")
    check(slopes is None or slopes.dtype == torch.float32, "ALiBi slopes must have dtype fp32")
    check(softcap <= 0 or dropout_p == 0, "Softcapping does not support dropout for now")
    check(dropout_p < 1, "p_dropout must be less than 1")


def _rule(q: Any, scale: Any, causal: bool, window: Any, softcap: float, slopes: Any, **lengths: Any) -> Rule:
    left, right = window
    return Rule(
        scale=q.shape[-1] ** -0.5 if scale is None else scale,
        left=left,
        right=0 if causal else right,
        softcap=softcap,
        slopes=slopes,
        **lengths,
    )


def _shown(q: Any, probabilities: Any) -> Any:
    """Return the probabilities, or the empty tensor that stands for none."""
    return q.new_empty(0) if probabilities is None else probabilities


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Attention of q (batch, queries, heads, width) to k and v (batch, keys, heads of keys, width)."""
    _checked(q, k, v, alibi_slopes, dropout_p, softcap)
    out, lse, shown = attend(q, k, v, _rule(q, softmax_scale, causal, window_size, softcap, alibi_slopes), dropout_p)
    return (out, lse, _shown(q, shown)) if return_attn_probs else out


def flash_attn_qkvpacked_func(
    qkv: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Do as `flash_attn_func` with qkv of shape (batch, length, 3, heads, width)."""
    rest = (dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)
    q, k, v = qkv.unbind(2)
    return flash_attn_func(q, k, v, *rest)


def flash_attn_kvpacked_func(
    q: Any,
    kv: Any,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Do as `flash_attn_func` with kv of shape (batch, keys, 2, heads of keys, width)."""
    rest = (dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)
    k, v = kv.unbind(2)
    return flash_attn_func(q, k, v, *rest)


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: Any = None,
) -> Any:
    """Attention of sequences that lie one behind the other: q is (total of queries, heads, width)."""
    _checked(q, k, v, alibi_slopes, dropout_p, softcap)
    window = (window_size, softcap, alibi_slopes)
    out, lse, shown = _varlen(
        q, k, v, (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k), dropout_p, softmax_scale, causal, *window,
        block_table=block_table,
    )  # fmt: skip
    return (out, lse, _shown(q, shown)) if return_attn_probs else out


def _varlen(
    q: Any, k: Any, v: Any, lengths: Any, dropout_p: float, scale: Any, causal: bool, window: Any, softcap: float,
    slopes: Any, block_table: Any = None, used: Any = None, starts: Any = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    q_starts, k_starts, longest_q, longest_k = lengths
    _check_starts(q_starts, k_starts)
    k_lengths = k_starts[1:] - k_starts[:-1] if used is None else used
    if block_table is None:
        keys, values = padded(k, k_starts, longest_k), padded(v, k_starts, longest_k)
    else:
        _check_pages(k, block_table)
        keys, values = of_pages(k, block_table), of_pages(v, block_table)
    rule = _rule(
        q, scale, causal, window, softcap, slopes, q_lengths=q_starts[1:] - q_starts[:-1], k_lengths=k_lengths,
        k_starts=starts,
    )  # fmt: skip
    out, lse, shown = attend(padded(q, q_starts, longest_q), keys, values, rule, dropout_p)
    total = q.shape[0]
    return unpadded(out, q_starts, total), unpadded(lse.transpose(1, 2), q_starts, total).t(), shown


def _check_starts(q_starts: Any, k_starts: Any) -> None:
    need_cuda(_PACKAGE, cu_seqlens_q=q_starts, cu_seqlens_k=k_starts)
    check(q_starts.dtype == torch.int32, "cu_seqlens_q must have dtype int32")
    check(k_starts.dtype == torch.int32, "cu_seqlens_k must have dtype int32")


def _check_pages(pages: Any, table: Any) -> None:
    check(table.dtype == torch.int32, "block_table must have dtype torch.int32")
    check(pages.shape[1] % _PAGE == 0, "Paged KV cache block size must be divisible by 256")


def flash_attn_varlen_qkvpacked_func(
    qkv: Any,
    cu_seqlens: Any,
    max_seqlen: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Do as `flash_attn_varlen_func` with qkv of shape (total, 3, heads, width)."""
    rest = (dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)
    q, k, v = qkv.unbind(1)
    return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *rest)


def flash_attn_varlen_kvpacked_func(
    q: Any,
    kv: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> Any:
    """Do as `flash_attn_varlen_func` with kv of shape (total of keys, 2, heads of keys, width)."""
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    rest = (dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, deterministic, return_attn_probs)
    k, v = kv.unbind(1)
    return flash_attn_varlen_func(q, k, v, *lengths, *rest)


def flash_attn_with_kvcache(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    k: Any = None,
    v: Any = None,
    rotary_cos: Any = None,
    rotary_sin: Any = None,
    cache_seqlens: Any = None,
    cache_batch_idx: Any = None,
    cache_leftpad: Any = None,
    block_table: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Any = (-1, -1),
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Any = None,
    num_splits: int = 0,
    return_softmax_lse: bool = False,
) -> Any:
    """Attention to keys and values in a cache, into which new ones are written first; it has no backward."""
    _checked(q, k_cache, v_cache, alibi_slopes, 0.0, softcap)
    check(k is None or cache_seqlens is not None, "If key is supplied, seqlens_k must also be passed in")
    check(rotary_cos is None or k is not None, "If rotary cos/sin are provided, new key / value must be provided")
    check(
        block_table is None or (cache_batch_idx is None and cache_leftpad is None),
        "Paged KVcache does not support cache_batch_idx or cache_leftpad",
    )
    with torch.no_grad():
        batch, device = q.shape[0], q.device
        if isinstance(cache_seqlens, int):
            cache_seqlens = torch.full((batch,), cache_seqlens, dtype=torch.int32, device=device)
        if rotary_cos is not None:
            q, k = _rotated(
                q, k, (rotary_cos, rotary_sin), cache_seqlens,
                interleaved=rotary_interleaved, rows=causal or tuple(window_size) != (-1, -1),
            )  # fmt: skip
        if block_table is not None:
            _check_pages(k_cache, block_table)
        rows = torch.arange(batch, device=device) if cache_batch_idx is None else cache_batch_idx.long()
        lengths = cache_seqlens
        if k is not None:
            _append(k_cache, v_cache, k, v, rows, cache_seqlens.long(), block_table)
            lengths = cache_seqlens + k.shape[1]
        if block_table is not None:
            keys, values = of_pages(k_cache, block_table), of_pages(v_cache, block_table)
        elif cache_batch_idx is None:
            keys, values = k_cache[:batch], v_cache[:batch]
        else:
            keys, values = k_cache[rows], v_cache[rows]
        rule = _rule(
            q, softmax_scale, causal, window_size, softcap, alibi_slopes, k_lengths=lengths, k_starts=cache_leftpad
        )
        out, lse, _ = attend(q, keys, values, rule)
    return (out, lse) if return_softmax_lse else out


def _append(k_cache: Any, v_cache: Any, k: Any, v: Any, rows: Any, lengths: Any, table: Any) -> None:
    places = lengths[:, None] + torch.arange(k.shape[1], device=k.device)
    if table is None:
        where = (rows[:, None], places)
    else:
        size = k_cache.shape[1]
        where = (table.long().gather(1, places // size), places % size)
    k_cache[where] = k
    v_cache[where] = v


def _rotated(q: Any, k: Any, angles: Any, lengths: Any, interleaved: bool, rows: bool) -> tuple[Any, Any]:
    """Return queries and new keys rotated for their positions behind the cache; all queries for one if not `rows`.

    Padding on the left counts, as it does where the keys are written.
    """
    cos, sin = angles
    k = rotated(k, cos, sin, interleaved, lengths)
    if rows:
        return rotated(q, cos, sin, interleaved, lengths), k
    batch, length, heads, width = q.shape
    one = q.reshape(batch, 1, length * heads, width)
    one = rotated(one, cos, sin, interleaved, lengths)
    return one.view(batch, length, heads, width), k


# -- what libraries for rings of processes call -------------------------------------


def _no_state(q: Any) -> Any:
    """Return the state of random numbers, which is of use with dropout only."""
    return torch.zeros(2, dtype=torch.int64, device=q.device)


def _flash_attn_forward(
    q: Any,
    k: Any,
    v: Any,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Any,
    return_softmax: bool,
) -> tuple[Any, Any, Any, Any]:
    _refuse_dropout("_flash_attn_forward", dropout_p)
    _checked(q, k, v, alibi_slopes, dropout_p, softcap)
    window = (window_size_left, window_size_right)
    with torch.no_grad():
        out, lse, _ = attend(q, k, v, _rule(q, softmax_scale, causal, window, softcap, alibi_slopes))
    return out, lse, q.new_empty(0), _no_state(q)


def _flash_attn_varlen_forward(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int = -1,
    window_size_right: int = -1,
    softcap: float = 0.0,
    alibi_slopes: Any = None,
    return_softmax: bool = False,
    block_table: Any = None,
    leftpad_k: Any = None,
    seqused_k: Any = None,
    zero_tensors: bool = False,
    num_splits: int = 0,
) -> tuple[Any, Any, Any, Any]:
    _refuse_dropout("_flash_attn_varlen_forward", dropout_p)
    if leftpad_k is not None:
        refuse("_flash_attn_varlen_forward(leftpad_k=...)", "leave the padding out by cu_seqlens_k")
    _checked(q, k, v, alibi_slopes, dropout_p, softcap)
    lengths = (cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    with torch.no_grad():
        out, lse, _ = _varlen(
            q, k, v, lengths, 0.0, softmax_scale, causal, (window_size_left, window_size_right), softcap, alibi_slopes,
            block_table, seqused_k,
        )  # fmt: skip
    return out, lse, q.new_empty(0), _no_state(q)


def _refuse_dropout(name: str, dropout_p: float) -> None:
    if dropout_p > 0:
        refuse(f"{name}(dropout_p={dropout_p})", "call flash_attn_func, whose dropout autograd follows, or give 0.0")


def _into(given: Any, found: Any) -> Any:
    """Write a gradient into the tensor that was given for it."""
    return found if given is None else given.copy_(found)


def _flash_attn_backward(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    softmax_lse: Any,
    dq: Any,
    dk: Any,
    dv: Any,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Any,
    deterministic: bool,
    rng_state: Any = None,
) -> Any:
    _refuse_dropout("_flash_attn_backward", dropout_p)
    rule = _rule(q, softmax_scale, causal, (window_size_left, window_size_right), softcap, alibi_slopes)
    with torch.no_grad():
        *found, sums = attend_backward(dout, q, k, v, out, softmax_lse, rule)
        for given, one in zip((dq, dk, dv), found, strict=True):
            _into(given, one)
    return sums


def _flash_attn_varlen_backward(
    dout: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    softmax_lse: Any,
    dq: Any,
    dk: Any,
    dv: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float,
    softmax_scale: float,
    causal: bool,
    window_size_left: int,
    window_size_right: int,
    softcap: float,
    alibi_slopes: Any,
    deterministic: bool,
    rng_state: Any = None,
    zero_tensors: bool = False,
) -> Any:
    _refuse_dropout("_flash_attn_varlen_backward", dropout_p)
    q_lengths, k_lengths = cu_seqlens_q[1:] - cu_seqlens_q[:-1], cu_seqlens_k[1:] - cu_seqlens_k[:-1]
    rule = _rule(
        q, softmax_scale, causal, (window_size_left, window_size_right), softcap, alibi_slopes,
        q_lengths=q_lengths, k_lengths=k_lengths,
    )  # fmt: skip
    with torch.no_grad():
        behind = torch.arange(max_seqlen_q, device=q.device).view(1, -1, 1, 1) >= q_lengths.view(-1, 1, 1, 1)
        grad = padded(dout, cu_seqlens_q, max_seqlen_q).masked_fill(behind, 0)
        queries, outs = padded(q, cu_seqlens_q, max_seqlen_q), padded(out, cu_seqlens_q, max_seqlen_q)
        keys, values = padded(k, cu_seqlens_k, max_seqlen_k), padded(v, cu_seqlens_k, max_seqlen_k)
        lse = padded(softmax_lse.t(), cu_seqlens_q, max_seqlen_q).transpose(1, 2)
        # Of a query behind its sequence, what it would have added to the keys is left out.
        lse = lse.masked_fill(behind.view(behind.shape[0], 1, -1), float("inf"))
        *found, sums = attend_backward(grad, queries, keys, values, outs, lse, rule)
        starts = (cu_seqlens_q, cu_seqlens_k, cu_seqlens_k)
        totals = (q.shape[0], k.shape[0], v.shape[0])
        for given, one, begin, total in zip((dq, dk, dv), found, starts, totals, strict=True):
            _into(given, unpadded(one, begin, total))
    return unpadded(sums.transpose(1, 2), cu_seqlens_q, q.shape[0]).t()
