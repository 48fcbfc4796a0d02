"""Stand-in for flash_attn.bert_padding: from padded batches to sequences one behind the other, and back."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["index_first_axis", "index_put_first_axis", "pad_input", "unpad_input"]


def index_first_axis(input: Any, indices: Any) -> Any:
    """Return the rows of these indices."""
    return input[indices]


def index_first_axis_residual(input: Any, indices: Any) -> tuple[Any, Any]:
    """Return the rows of these indices, and all rows for the residual path."""
    return input[indices], input


def index_put_first_axis(values: Any, indices: Any, first_axis_dim: int) -> Any:
    """Return zeros with the values as the rows of these indices."""
    return values.new_zeros(first_axis_dim, *values.shape[1:]).index_put((indices,), values)


def _unpadded(hidden_states: Any, kept: Any, lengths: Any) -> tuple[Any, Any, Any, int]:
    indices = torch.nonzero(kept.flatten()).flatten()
    starts = torch.nn.functional.pad(torch.cumsum(lengths, 0, dtype=torch.int32), (1, 0))
    return hidden_states.flatten(0, 1)[indices], indices, starts, int(lengths.max().item())


def unpad_input(hidden_states: Any, attention_mask: Any, unused_mask: Any = None) -> tuple[Any, Any, Any, int, Any]:
    """Return the tokens that the masks keep, their places, where sequences start, the longest, and the used ones."""
    kept = attention_mask if unused_mask is None else attention_mask + unused_mask
    found = _unpadded(hidden_states, kept, kept.sum(-1, dtype=torch.int32))
    return *found, attention_mask.sum(-1, dtype=torch.int32)


def unpad_input_for_concatenated_sequences(
    hidden_states: Any, attention_mask_in_length: Any
) -> tuple[Any, Any, Any, int]:
    """Return the same for rows that hold several sequences, whose lengths the mask gives."""
    given = attention_mask_in_length
    kept = torch.arange(given.shape[-1], device=given.device) < given.sum(-1, keepdim=True)
    return _unpadded(hidden_states, kept, given.flatten()[given.flatten().nonzero().flatten()])


def pad_input(hidden_states: Any, indices: Any, batch: int, seqlen: int) -> Any:
    """Return the tokens at their places of a padded batch, zeros elsewhere."""
    return index_put_first_axis(hidden_states, indices, batch * seqlen).unflatten(0, (batch, seqlen))
