"""Stand-in for mamba_ssm.ops.triton.selective_state_update: one step of a selective scan."""

from __future__ import annotations

from typing import Any

from halstream.torch._standins._common import accumulated, check, need_cuda, without_autocast

import torch

__all__ = ["selective_state_update"]


@without_autocast
def selective_state_update(
    state: Any,
    x: Any,
    dt: Any,
    A: Any,
    B: Any,
    C: Any,
    D: Any = None,
    z: Any = None,
    dt_bias: Any = None,
    dt_softplus: bool = False,
) -> Any:
    """Write the next state (batch, channels, size), and return the outputs for x (batch, channels)."""
    need_cuda("mamba_ssm", state=state, x=x)
    check(state.dim() == 3, "state must be (batch, channels, size); flatten the heads of one with four dimensions")
    step, inputs = accumulated(dt), accumulated(x)
    if dt_bias is not None:
        step = step + accumulated(dt_bias)
    if dt_softplus:
        step = torch.nn.functional.softplus(step)
    step = step.unsqueeze(-1)
    after = accumulated(state) * torch.exp(step * accumulated(A))
    after = after + step * accumulated(B).unsqueeze(1) * inputs.unsqueeze(-1)
    state.copy_(after)
    out = (after * accumulated(C).unsqueeze(1)).sum(-1)
    if D is not None:
        out = out + inputs * accumulated(D)
    return (out if z is None else out * torch.nn.functional.silu(accumulated(z))).to(x.dtype)
