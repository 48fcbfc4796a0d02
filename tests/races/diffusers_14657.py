"""Weights are given back to the allocator while the forward pass still reads them.

Source: huggingface/diffusers#14657.
Seen: after a module's forward pass its weights were replaced by empty ones on the host, without a wait for the
computing stream. The next module's copy got their memory, and the output was NaN throughout.
Must be found: the product on the default stream beside the next copy, which gets the same memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    transfer, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    first, second = (torch.full((4096,), value).pin_memory() for value in (1.0, 2.0))
    module = torch.nn.Module()
    with torch.cuda.stream(transfer):
        module.weight = first.to("cuda", non_blocking=True)
    compute.wait_stream(transfer)
    output = module.weight * 3
    if ordered:
        compute.synchronize()
    module.weight = torch.empty(4096)  # offloaded
    with torch.cuda.stream(transfer):
        following = second.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert (output.sum().item(), following[0].item()) == (3 * 4096, 2)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
