"""Attention on torch's operators, forward and backward, as the stand-ins of several packages need it.

Nothing here waits for the device: lengths and tables stay tensors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ._common import accumulated, without_autocast

__all__ = ["Rule", "attend", "attend_backward", "of_pages", "padded", "unpadded"]


@dataclass
class Rule:
    """Which keys a query sees, and how its scores are made.

    The last query stands at the last key, so that position i of the queries is position
    ``i + keys - queries`` of the keys.

    Attributes
    ----------
    scale : float
    left, right : int
        How many keys before and after its own position a query sees; all if negative.
    softcap : float
        Scores s become ``softcap * tanh(s / softcap)`` if it is positive.
    slopes : tensor or None
        Of shape (heads,) or (batch, heads): the bias per key of distance.
    q_lengths, k_lengths, k_starts : tensor or None
        Of shape (batch,): how many queries and keys there are, and the first key.
    bias : tensor or None
        Added to the scores; it can be expanded to (batch, heads, queries, keys).
    mask : tensor or None
        False where a query does not see a key; it can be expanded to the shape of the bias.
    """

    scale: float
    left: int = -1
    right: int = -1
    softcap: float = 0.0
    slopes: Any = None
    q_lengths: Any = None
    k_lengths: Any = None
    k_starts: Any = None
    bias: Any = None
    mask: Any = None


def _column(lengths: Any) -> Any:
    return lengths.view(-1, 1, 1, 1)


def _scores(q: Any, k: Any, rule: Rule) -> tuple[Any, Any, Any]:
    """Return the scores, the derivative of the softcap, and which keys each query sees (None for all).

    q is (batch, heads, queries, width), k likewise with as many heads.
    """
    scores = (q @ k.transpose(-1, -2)) * rule.scale
    softcap_derivative = None
    if rule.softcap > 0:
        bent = torch.tanh(scores / rule.softcap)
        scores, softcap_derivative = rule.softcap * bent, 1 - bent * bent
    queries, keys = q.shape[2], k.shape[2]
    row = torch.arange(queries, device=q.device).view(1, 1, -1, 1)
    column = torch.arange(keys, device=q.device).view(1, 1, 1, -1)
    shift: Any = keys if rule.k_lengths is None else _column(rule.k_lengths)
    shift = shift - (queries if rule.q_lengths is None else _column(rule.q_lengths))
    ahead = column - row - shift  # by how much a key stands after the position of the query
    if rule.slopes is not None:
        slopes = rule.slopes.view(-1, rule.slopes.shape[-1], 1, 1)
        scores = scores - slopes * ahead.abs()
    if rule.bias is not None:
        scores = scores + rule.bias
    seen = [] if rule.mask is None else [rule.mask]
    if rule.right >= 0:
        seen.append(ahead <= rule.right)
    if rule.left >= 0:
        seen.append(ahead >= -rule.left)
    if rule.k_lengths is not None:
        seen.append(column < _column(rule.k_lengths))
    if rule.k_starts is not None:
        seen.append(column >= _column(rule.k_starts))
    allowed = None
    for one in seen:
        allowed = one if allowed is None else allowed & one
    return scores, softcap_derivative, allowed


def _prepared(q: Any, k: Any, v: Any, rule: Rule) -> tuple[Any, Any, Any]:
    """Return the three as (batch, heads, length, width) in the accumulating type, heads of keys repeated."""
    if rule.k_lengths is not None:
        # What stands behind the keys of a sequence may be anything, and 0 * inf is no 0.
        behind = torch.arange(k.shape[1], device=k.device).view(1, -1, 1, 1) >= _column(rule.k_lengths)
        k, v = k.masked_fill(behind, 0), v.masked_fill(behind, 0)
    groups = q.shape[2] // k.shape[2]
    q, k, v = (accumulated(one).transpose(1, 2) for one in (q, k, v))
    return q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)


@without_autocast
def attend(q: Any, k: Any, v: Any, rule: Rule, dropout_p: float = 0.0) -> tuple[Any, Any, Any]:
    """Return what the queries read from the values.

    Parameters
    ----------
    q : tensor of shape (batch, queries, heads, width)
    k, v : tensor of shape (batch, keys, heads of keys, width)
        The number of heads of the queries is a multiple of theirs.
    rule : Rule
    dropout_p : float

    Returns
    -------
    out : tensor of the queries' type and shape
        0 for a query that sees no key.
    lse : tensor of shape (batch, heads, queries)
        Logarithm of the sum of the exponentials of the scores, infinite for a query that sees no key.
    probabilities : tensor of shape (batch, heads, queries, keys) or None
        None without dropout; what was dropped is negative.
    """
    dtype = q.dtype
    q, k, v = _prepared(q, k, v, rule)
    scores, _, allowed = _scores(q, k, rule)
    blind = None
    if allowed is not None:
        blind = ~allowed.any(-1, keepdim=True)
        scores = scores.masked_fill(~allowed & ~blind, float("-inf"))  # a row of -inf alone has no derivative
    weights, lse = scores.softmax(-1), scores.logsumexp(-1)
    if blind is not None:
        weights, lse = weights.masked_fill(blind, 0), lse.masked_fill(blind.squeeze(-1), float("inf"))
    shown = None
    if dropout_p > 0:
        dropped = torch.rand_like(weights) < dropout_p
        shown = torch.where(dropped, -weights, weights).to(dtype)
        weights = weights.masked_fill(dropped, 0) / (1 - dropout_p)
    return (weights @ v).transpose(1, 2).to(dtype), lse, shown


@without_autocast
def attend_backward(grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, rule: Rule) -> tuple[Any, Any, Any, Any]:
    """Return the gradients of queries, keys and values, and the sums over ``grad * out``.

    The result and `lse` are those of the forward pass. They may come from more keys than are given
    here, as where each process of a ring computes with a part of them.
    """
    heads, dtypes = k.shape[2], (q.dtype, k.dtype, v.dtype)
    q, k, v = _prepared(q, k, v, rule)
    grad, out = accumulated(grad).transpose(1, 2), accumulated(out).transpose(1, 2)
    scores, softcap_derivative, allowed = _scores(q, k, rule)
    weights = (scores - lse.unsqueeze(-1)).exp()
    if allowed is not None:
        weights = weights.masked_fill(~allowed, 0)
    sums = (grad * out).sum(-1)
    of_scores = weights * (grad @ v.transpose(-1, -2) - sums.unsqueeze(-1))
    if softcap_derivative is not None:
        of_scores = of_scores * softcap_derivative

    def of_keys(one: Any) -> Any:
        return one.view(one.shape[0], heads, -1, *one.shape[2:]).sum(2).transpose(1, 2)

    dq = (of_scores @ k * rule.scale).transpose(1, 2)
    dk = of_keys(of_scores.transpose(-1, -2) @ q * rule.scale)
    dv = of_keys(weights.transpose(-1, -2) @ grad)
    dq, dk, dv = (one.to(dtype) for one, dtype in zip((dq, dk, dv), dtypes, strict=True))
    return dq, dk, dv, sums


# -- sequences of different lengths ---------------------------------------------


def padded(packed: Any, starts: Any, longest: int) -> Any:
    """Return sequences that lie one behind the other as (batch, longest, ...); what is behind one is arbitrary.

    Parameters
    ----------
    packed : tensor of shape (total, ...)
    starts : tensor of shape (batch + 1,)
        Where each begins, and the end of the last.
    longest : int
    """
    places = starts[:-1, None].long() + torch.arange(longest, device=starts.device)
    return packed[places.clamp(max=packed.shape[0] - 1)]


def unpadded(batch: Any, starts: Any, total: int) -> Any:
    """Return sequences of `padded`'s shape one behind the other again."""
    token = torch.arange(total, device=starts.device)
    sequence = (torch.searchsorted(starts.long(), token, right=True) - 1).clamp(max=batch.shape[0] - 1)
    place = (token - starts.long()[sequence]).clamp(max=batch.shape[1] - 1)
    return batch[sequence, place]


def of_pages(pages: Any, table: Any) -> Any:
    """Return the keys or values of sequences that lie in pages.

    Parameters
    ----------
    pages : tensor of shape (pages, page size, heads, width)
    table : tensor of shape (batch, pages of a sequence)
        Entries behind the last page of a sequence may be anything.

    Returns
    -------
    tensor of shape (batch, pages of a sequence * page size, heads, width)
    """
    found = pages[table.long().clamp(0, pages.shape[0] - 1)]
    return found.flatten(1, 2)
