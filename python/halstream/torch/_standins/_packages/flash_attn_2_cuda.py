"""Stand-in for flash_attn_2_cuda, the compiled part of an installed flash_attn."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._packages.flash_attn import flash_attn_interface as _interface

__all__ = ["bwd", "fwd", "fwd_kvcache", "varlen_bwd", "varlen_fwd"]


def _filled(given: Any, found: Any) -> Any:
    return found if given is None else given.copy_(found)


def fwd(
    q: Any, k: Any, v: Any, out: Any, alibi_slopes: Any, p_dropout: float, softmax_scale: float, is_causal: bool,
    window_size_left: int, window_size_right: int, softcap: float, return_softmax: bool, generator: Any = None,
) -> list[Any]:  # fmt: skip
    """Return result, logarithms of the sums, probabilities (none) and the state of random numbers."""
    found = _interface._flash_attn_forward(
        q, k, v, p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, softcap, alibi_slopes,
        return_softmax,
    )  # fmt: skip
    return [_filled(out, found[0]), *found[1:]]


def varlen_fwd(
    q: Any, k: Any, v: Any, out: Any, cu_seqlens_q: Any, cu_seqlens_k: Any, seqused_k: Any, leftpad_k: Any,
    block_table: Any, alibi_slopes: Any, max_seqlen_q: int, max_seqlen_k: int, p_dropout: float, softmax_scale: float,
    zero_tensors: bool, is_causal: bool, window_size_left: int, window_size_right: int, softcap: float,
    return_softmax: bool, generator: Any = None, num_splits: int = 0,
) -> list[Any]:  # fmt: skip
    """Return the same for sequences that lie one behind the other."""
    found = _interface._flash_attn_varlen_forward(
        q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, p_dropout, softmax_scale, is_causal,
        window_size_left, window_size_right, softcap, alibi_slopes, return_softmax, block_table, leftpad_k, seqused_k,
    )  # fmt: skip
    return [_filled(out, found[0]), *found[1:]]


def bwd(
    dout: Any, q: Any, k: Any, v: Any, out: Any, softmax_lse: Any, dq: Any, dk: Any, dv: Any, alibi_slopes: Any,
    p_dropout: float, softmax_scale: float, is_causal: bool, window_size_left: int, window_size_right: int,
    softcap: float, deterministic: bool, generator: Any = None, rng_state: Any = None,
) -> list[Any]:  # fmt: skip
    """Return the gradients of q, k and v, written where the caller wants them, and the sums of the backward pass."""
    dq, dk, dv = (one.new_empty(one.shape) if given is None else given for given, one in ((dq, q), (dk, k), (dv, v)))
    sums = _interface._flash_attn_backward(
        dout, q, k, v, out, softmax_lse, dq, dk, dv, p_dropout, softmax_scale, is_causal, window_size_left,
        window_size_right, softcap, alibi_slopes, deterministic, rng_state,
    )  # fmt: skip
    return [dq, dk, dv, sums]


def varlen_bwd(
    dout: Any, q: Any, k: Any, v: Any, out: Any, softmax_lse: Any, dq: Any, dk: Any, dv: Any, cu_seqlens_q: Any,
    cu_seqlens_k: Any, alibi_slopes: Any, max_seqlen_q: int, max_seqlen_k: int, p_dropout: float, softmax_scale: float,
    zero_tensors: bool, is_causal: bool, window_size_left: int, window_size_right: int, softcap: float,
    deterministic: bool, generator: Any = None, rng_state: Any = None,
) -> list[Any]:  # fmt: skip
    """Return the same for sequences that lie one behind the other."""
    dq, dk, dv = (one.new_empty(one.shape) if given is None else given for given, one in ((dq, q), (dk, k), (dv, v)))
    sums = _interface._flash_attn_varlen_backward(
        dout, q, k, v, out, softmax_lse, dq, dk, dv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k,
        p_dropout, softmax_scale, is_causal, window_size_left, window_size_right, softcap, alibi_slopes, deterministic,
        rng_state, zero_tensors,
    )  # fmt: skip
    return [dq, dk, dv, sums]


def fwd_kvcache(
    q: Any, kcache: Any, vcache: Any, k: Any, v: Any, seqlens_k: Any, rotary_cos: Any, rotary_sin: Any,
    cache_batch_idx: Any, leftpad_k: Any, block_table: Any, alibi_slopes: Any, out: Any, softmax_scale: float,
    is_causal: bool, window_size_left: int, window_size_right: int, softcap: float, is_rotary_interleaved: bool,
    num_splits: int,
) -> list[Any]:  # fmt: skip
    """Return result and logarithms of the sums for a cache, into which new keys and values are written."""
    found = _interface.flash_attn_with_kvcache(
        q, kcache, vcache, k, v, rotary_cos, rotary_sin, seqlens_k, cache_batch_idx, leftpad_k, block_table,
        softmax_scale, is_causal, (window_size_left, window_size_right), softcap, is_rotary_interleaved, alibi_slopes,
        num_splits, return_softmax_lse=True,
    )  # fmt: skip
    return [_filled(out, found[0]), found[1]]
