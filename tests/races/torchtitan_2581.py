"""A stream waits for itself: the current stream was asked for inside its own block.

Source: pytorch/torchtitan#2581.
Seen: activations were copied to a pinned slab inside `with torch.cuda.stream(d2h)`, after
`d2h.wait_stream(torch.cuda.current_stream())`. There the current stream is `d2h`, so it waited for nothing, and
gradients were wrong from the step on in which the slab was used again.
Must be found: the product on the default stream beside the copy on `d2h`.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    d2h, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    slab = torch.zeros(256, pin_memory=True)
    weight = torch.ones(256, device="cuda")
    torch.cuda.synchronize()
    activation = weight * 2
    with torch.cuda.stream(d2h):
        d2h.wait_stream(compute if ordered else torch.cuda.current_stream())
        slab.copy_(activation, non_blocking=True)
    activation.record_stream(d2h)
    torch.cuda.synchronize()
    assert slab.sum().item() == 512


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
