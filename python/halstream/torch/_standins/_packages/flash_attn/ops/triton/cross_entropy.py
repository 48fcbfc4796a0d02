"""Stand-in for flash_attn.ops.triton.cross_entropy."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._common import accumulated, refuse, without_autocast

__all__ = ["cross_entropy_loss"]


@without_autocast
def cross_entropy_loss(
    logits: Any,
    labels: Any,
    precomputed_lse: Any = None,
    label_smoothing: float = 0.0,
    logit_scale: float = 1.0,
    lse_square_scale: float = 0.0,
    ignore_index: int = -100,
    inplace_backward: bool = False,
    process_group: Any = None,
) -> tuple[Any, Any]:
    """Return the loss of each row, with the part of the squared normalizer, and that part alone."""
    if process_group is not None:
        refuse("cross_entropy_loss(process_group=...)", "gather the logits of all ranks first and leave it out")
    scaled = accumulated(logits) * logit_scale
    lse = scaled.logsumexp(-1) if precomputed_lse is None else precomputed_lse
    ignored = labels == ignore_index
    own = scaled.gather(-1, labels.masked_fill(ignored, 0).long().unsqueeze(-1)).squeeze(-1)
    loss = lse - (1 - label_smoothing) * own - label_smoothing * scaled.mean(-1)
    square = (lse_square_scale * lse.square()).masked_fill(ignored, 0)
    return (loss + lse_square_scale * lse.square()).masked_fill(ignored, 0), square.detach()
