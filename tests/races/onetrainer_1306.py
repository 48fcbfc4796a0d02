"""The event that frees a layer is recorded behind its forward pass, and the backward pass reads it once more.

Source: Nerogar/OneTrainer#1306.
Seen: the transfer stream waits for an event before it overwrites the weights of a layer. It was recorded after the
forward pass, so that the next weights could come while the backward pass still read the old ones.
Must be found: the backward operator beside the copy on the transfer stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    transfer, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    following = torch.full((256,), 9.0).pin_memory()
    x = torch.ones(256, device="cuda", requires_grad=True)
    weight = torch.full((256,), 3.0, device="cuda")
    output = x * weight
    done = compute.record_event()
    output.backward(torch.ones_like(output))
    if ordered:
        done = compute.record_event()
    transfer.wait_event(done)
    with torch.cuda.stream(transfer):
        weight.copy_(following, non_blocking=True)
    torch.cuda.synchronize()
    assert x.grad is not None and x.grad.sum().item() == 768


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
