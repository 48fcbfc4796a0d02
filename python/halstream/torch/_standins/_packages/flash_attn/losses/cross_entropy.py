"""Stand-in for flash_attn.losses.cross_entropy."""

from __future__ import annotations

from typing import Any

import torch

from ..ops.triton.cross_entropy import cross_entropy_loss

__all__ = ["CrossEntropyLoss"]


class CrossEntropyLoss(torch.nn.Module):
    """Cross entropy of (batch, classes) with a scale, smoothing and a squared normalizer."""

    def __init__(
        self,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        logit_scale: float = 1.0,
        lse_square_scale: float = 0.0,
        inplace_backward: bool = False,
        process_group: Any = None,
        return_z_loss: bool = False,
    ) -> None:
        super().__init__()
        if reduction not in ("mean", "none", "sum"):
            raise NotImplementedError("Only support reduction = 'mean' or 'none' or 'sum'")
        self.ignore_index, self.reduction, self.return_z_loss = ignore_index, reduction, return_z_loss
        self._options = {
            "label_smoothing": label_smoothing, "logit_scale": logit_scale, "lse_square_scale": lse_square_scale,
            "ignore_index": ignore_index, "inplace_backward": inplace_backward, "process_group": process_group,
        }  # fmt: skip

    def forward(self, input: Any, target: Any, precomputed_lse: Any = None) -> Any:
        """Return the loss, with the part of the squared normalizer if asked for."""
        parts = cross_entropy_loss(input, target, precomputed_lse, **self._options)
        if self.reduction != "none":
            parts = (parts[0].sum(), parts[1].sum())
        if self.reduction == "mean":
            counted = (target != self.ignore_index).sum()
            parts = (parts[0] / counted, parts[1] / counted)
        return parts if self.return_z_loss else parts[0]
