"""Stand-in for mamba_ssm.ops.selective_scan_interface."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._common import accumulated, need_cuda, refuse, without_autocast
from halstream.torch._standins._packages.causal_conv1d.causal_conv1d_interface import causal_conv1d_fn

import torch

__all__ = ["mamba_inner_fn", "selective_scan_fn"]


def _of_channels(one: Any, channels: int) -> Any:
    """Return an input matrix as (batch, channels, state, length); what does not vary gets dimensions of 1."""
    wide = accumulated(one)
    if one.dim() == 2:
        return wide[None, :, :, None]
    if one.dim() == 3:
        return wide.unsqueeze(1)
    return wide.repeat_interleave(channels // one.shape[1], 1)


@without_autocast
def selective_scan_fn(
    u: Any,
    delta: Any,
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    z: Any = None,
    delta_bias: Any = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    cu_seqlens: Any = None,
) -> Any:
    """Return the outputs of a state-space model for u (batch, channels, length), and its last state."""
    need_cuda("mamba_ssm", u=u, delta=delta, A=A)
    if A.is_complex():
        refuse("selective_scan_fn with a complex A", "give a real one")
    if cu_seqlens is not None:
        refuse("selective_scan_fn(cu_seqlens=...)", "call it for each sequence")
    channels, step, inputs = A.shape[0], accumulated(delta), accumulated(u)
    if delta_bias is not None:
        step = step + accumulated(delta_bias).unsqueeze(-1)
    if delta_softplus:
        step = torch.nn.functional.softplus(step)
    decay = torch.exp(step.unsqueeze(2) * accumulated(A).unsqueeze(-1))
    added = (step * inputs).unsqueeze(2) * _of_channels(B, channels)
    read = _of_channels(C, channels).expand_as(added)
    state = added.new_zeros(added.shape[:3])
    found = []
    for i in range(u.shape[2]):
        state = decay[..., i] * state + added[..., i]
        found.append((state * read[..., i]).sum(2))
    out = torch.stack(found, 2)
    if D is not None:
        out = out + inputs * accumulated(D).unsqueeze(-1)
    if z is not None:
        out = out * torch.nn.functional.silu(accumulated(z))
    out = out.to(u.dtype)
    return (out, state.detach()) if return_last_state else out


def mamba_inner_fn(
    xz: Any,
    conv1d_weight: Any,
    conv1d_bias: Any,
    x_proj_weight: Any,
    delta_proj_weight: Any,
    out_proj_weight: Any,
    out_proj_bias: Any,
    A: Any,
    B: Any = None,
    C: Any = None,
    D: Any = None,
    delta_bias: Any = None,
    B_proj_bias: Any = None,
    C_proj_bias: Any = None,
    delta_softplus: bool = True,
) -> Any:
    """Return what a block of Mamba makes of xz (batch, 2 * channels, length), as (batch, length, width)."""
    x, z = xz.chunk(2, 1)
    x = causal_conv1d_fn(x, conv1d_weight.squeeze(1), conv1d_bias, activation="silu")
    rank, size = delta_proj_weight.shape[1], A.shape[1]
    parts = torch.nn.functional.linear(x.transpose(1, 2), x_proj_weight)
    delta = torch.nn.functional.linear(parts[..., :rank], delta_proj_weight).transpose(1, 2)
    given = []
    for one, bias, place in ((B, B_proj_bias, slice(rank, rank + size)), (C, C_proj_bias, slice(-size, None))):
        if one is None:
            one = parts[..., place] if bias is None else parts[..., place] + bias
            one = one.transpose(1, 2)
        given.append(one)
    out = selective_scan_fn(x, delta, A, *given, D, z, delta_bias, delta_softplus)
    return torch.nn.functional.linear(out.transpose(1, 2), out_proj_weight, out_proj_bias)
