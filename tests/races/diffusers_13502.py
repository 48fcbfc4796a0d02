"""A module computes with weights that the transfer stream is still copying.

Source: huggingface/diffusers#13502.
Seen: group offloading copies the weights of a module to the device on a transfer stream and returns. Nothing made
the stream of the forward pass wait; the output was wrong on some machines only.
Must be found: the copy on the transfer stream beside the linear layer on the default stream.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    transfer, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    host = torch.full((16, 16), 2.0).pin_memory()
    weight = torch.zeros(16, 16, device="cuda")
    x = torch.ones(4, 16, device="cuda")
    transfer.wait_stream(compute)
    with torch.cuda.stream(transfer):
        weight.copy_(host, non_blocking=True)
    if ordered:
        compute.wait_stream(transfer)
    y = torch.nn.functional.linear(x, weight)
    torch.cuda.synchronize()
    assert y.sum().item() == 2048


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
