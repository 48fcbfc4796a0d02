"""Stand-in for causal_conv1d.causal_conv1d_interface: convolutions over each channel's past."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._common import accumulated, need_cuda, without_autocast

import torch

__all__ = ["causal_conv1d_fn", "causal_conv1d_update"]


def _active(activation: str | None) -> bool:
    if activation not in (None, "silu", "swish"):
        raise NotImplementedError("activation must be None, silu, or swish")
    return activation is not None


def _finished(out: Any, bias: Any, activation: str | None, dtype: Any) -> Any:
    if bias is not None:
        out = out + accumulated(bias).unsqueeze(-1)
    return (torch.nn.functional.silu(out) if _active(activation) else out).to(dtype)


@without_autocast
def causal_conv1d_fn(
    x: Any,
    weight: Any,
    bias: Any = None,
    seq_idx: Any = None,
    initial_states: Any = None,
    return_final_states: bool = False,
    final_states_out: Any = None,
    activation: str | None = None,
) -> Any:
    """Return the convolution of x (batch, channels, length) with weight (channels, width), and the last inputs."""
    need_cuda("causal_conv1d", x=x, weight=weight)
    _active(activation)
    if seq_idx is not None and (initial_states is not None or return_final_states):
        raise ValueError("with seq_idx there are no initial_states and no final states")
    width, length = weight.shape[1], x.shape[2]
    before = x.new_zeros(*x.shape[:2], width - 1) if initial_states is None else initial_states.to(x.dtype)
    past = torch.cat((before, x), 2)
    if seq_idx is not None:
        numbers = torch.nn.functional.pad(seq_idx, (width - 1, 0), value=-1)
    out: Any = 0.0
    for tap in range(width):
        part = accumulated(past[:, :, tap : tap + length]) * accumulated(weight[:, tap]).unsqueeze(-1)
        if seq_idx is not None:
            part = part.masked_fill((numbers[:, tap : tap + length] != seq_idx).unsqueeze(1), 0)
        out = out + part
    out = _finished(out, bias, activation, x.dtype)
    if not return_final_states:
        return out
    last = past[:, :, past.shape[2] - (width - 1) :]
    return out, last.clone() if final_states_out is None else final_states_out.copy_(last)


@without_autocast
def causal_conv1d_update(
    x: Any,
    conv_state: Any,
    weight: Any,
    bias: Any = None,
    activation: str | None = None,
    cache_seqlens: Any = None,
    conv_state_indices: Any = None,
) -> Any:
    """Return the convolution of new inputs, (batch, channels) or with a length, and write them into the state."""
    need_cuda("causal_conv1d", x=x, conv_state=conv_state)
    single = x.dim() == 2
    new = x.unsqueeze(-1) if single else x
    width, length, kept = weight.shape[1], new.shape[2], conv_state.shape[2]
    rows = slice(None) if conv_state_indices is None else conv_state_indices.long()
    state = conv_state[rows]
    if cache_seqlens is None:
        past = torch.cat((state, new.to(state.dtype)), 2)
        after = past[:, :, -kept:]
    else:
        steps = torch.arange(1 - width, 0, device=x.device)
        from_ring = (cache_seqlens.long().unsqueeze(1) + steps) % kept
        past = torch.cat(
            (state.gather(2, from_ring.unsqueeze(1).expand(-1, state.shape[1], -1)), new.to(state.dtype)), 2
        )
        into_ring = (cache_seqlens.long().unsqueeze(1) + torch.arange(length, device=x.device)) % kept
        after = state.scatter(2, into_ring.unsqueeze(1).expand(-1, state.shape[1], -1), new.to(state.dtype))
    conv_state[rows] = after
    taps = past[:, :, past.shape[2] - (length + width - 1) :]
    out: Any = 0.0
    for tap in range(width):
        out = out + accumulated(taps[:, :, tap : tap + length]) * accumulated(weight[:, tap]).unsqueeze(-1)
    out = _finished(out, bias, activation, x.dtype)
    return out.squeeze(-1) if single else out
