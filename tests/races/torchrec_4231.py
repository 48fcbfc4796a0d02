"""Embeddings are stashed on the host, and their memory is given back while it is being copied.

Source: meta-pytorch/torchrec#4231.
Seen: weights are copied to the host on a side stream and freed by `resize_(0)`. Without `record_stream` the next
tensor of the main stream got the memory under the copy, and NaN came back from the host.
Must be found: the copy to the host beside the tensor that gets the memory.
"""

from __future__ import annotations

import torch


def _run(ordered: bool) -> None:
    copies, compute = torch.cuda.Stream(), torch.cuda.current_stream()
    stash = torch.zeros(4096, pin_memory=True)
    weights = torch.ones(4096, device="cuda")
    copies.wait_stream(compute)
    with torch.cuda.stream(copies):
        stash.copy_(weights, non_blocking=True)
    if ordered:
        weights.record_stream(copies)
    weights.untyped_storage().resize_(0)
    activation = torch.full((4096,), -1.0, device="cuda")
    torch.cuda.synchronize()
    assert (stash.sum().item(), activation[0].item()) == (4096, -1)


def broken() -> None:
    """Run the program as it was."""
    _run(ordered=False)


def fixed() -> None:
    """Run its repaired twin."""
    _run(ordered=True)
