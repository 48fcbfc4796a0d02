"""Rotary position embeddings on torch's operators."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["rotated"]


def rotated(x: Any, cos: Any, sin: Any, interleaved: bool, offsets: Any = 0) -> Any:
    """Return x with its first dimensions rotated.

    Parameters
    ----------
    x : tensor of shape (batch, length, heads, width)
    cos, sin : tensor of shape (positions, half of the rotated dimensions)
    interleaved : bool
        Whether neighbours are a pair, and not the two halves.
    offsets : int or tensor of shape (batch,)
        The position of each sequence's first token.
    """
    length, half = x.shape[1], cos.shape[-1]
    places = torch.arange(length, device=x.device)
    if isinstance(offsets, torch.Tensor):
        where = (places + offsets.long()[:, None]).clamp(max=cos.shape[0] - 1)
        cos, sin = cos[where].unsqueeze(2), sin[where].unsqueeze(2)
    else:
        cos, sin = (one[offsets : offsets + length].view(1, length, 1, half) for one in (cos, sin))
    cos, sin = cos.float(), sin.float()
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    first, second = (turned[..., ::2], turned[..., 1::2]) if interleaved else turned.chunk(2, -1)
    first, second = first.float(), second.float()
    pair = (first * cos - second * sin, first * sin + second * cos)
    joined = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat((joined.to(x.dtype), rest), -1)
